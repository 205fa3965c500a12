package llm

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strconv"

	"github.com/kgen-dev/kgen/internal/jsontext"
	"github.com/kgen-dev/kgen/internal/userfile"
)

// mostBytes bounds a config.json: one has a few kilobytes, with lists of labels some
// hundred.
const mostBytes = 16 << 20

func read(name string) ([]byte, error) {
	return userfile.Read(name, mostBytes)
}

// size is a key of a config.json with a whole number from 1 to most, and GPT-2's word
// for it. The products of all sizes at their most have 63 bits.
type size struct {
	key, short string
	most       int64
	to         func(*Config) *int64
	need       bool // or it follows from others
}

var sizes = []size{
	{"hidden_size", "n_embd", 1 << 18, func(c *Config) *int64 { return &c.Hidden }, true},
	{"intermediate_size", "n_inner", 1 << 22, func(c *Config) *int64 { return &c.FFN }, true},
	{"num_hidden_layers", "n_layer", 1 << 14, func(c *Config) *int64 { return &c.Layers }, true},
	{"num_attention_heads", "n_head", 1 << 13, func(c *Config) *int64 { return &c.Heads }, true},
	{"vocab_size", "vocab_size", 1 << 24, func(c *Config) *int64 { return &c.Vocab }, true},
	{"num_key_value_heads", "", 1 << 13, func(c *Config) *int64 { return &c.KVHeads }, false},
	{"head_dim", "", 1 << 12, func(c *Config) *int64 { return &c.HeadDim }, false},
}

// file is a config.json under way.
type file struct {
	name    string
	members map[string]jsontext.Member
	nulls   map[string]bool // keys that are null, as if they were not there, but said so
	end     int             // line
	within  string          // the key of the object that the sizes are in, "" for the file's
}

// errorf is an error at a key's line, or at the object's end where the key is missing.
func (f *file) errorf(key, format string, args ...any) error {
	line := f.end
	if m, ok := f.members[key]; ok {
		line = m.Line
	}
	return fmt.Errorf("%s:%d: %s%s", f.name, line, key, fmt.Sprintf(format, args...))
}

// parse reads a config.json. The errors name file, line and key.
func parse(name string, b []byte) (*Config, error) {
	f, note, err := open(name, b)
	if err != nil {
		return nil, err
	}
	c := &Config{Name: name, Type: BF16}
	if note != "" {
		c.Notes = append(c.Notes, note)
	}
	a, err := f.architecture(c)
	if err != nil {
		return nil, err
	}
	if err := f.agree(); err != nil {
		return nil, err
	}
	f.suppose(c)
	for _, s := range sizes {
		if err := f.size(&s, c); err != nil {
			return nil, err
		}
	}
	if err := f.rest(c, a); err != nil {
		return nil, err
	}
	if err := f.attention(c, a); err != nil {
		return nil, err
	}
	if a.mixture != nil {
		if err := f.experts(c, a.mixture); err != nil {
			return nil, err
		}
	}
	if err := f.quantised(c); err != nil {
		return nil, err
	}
	c.vectors(a)
	return c, f.windows(c, a)
}

// attention reads how wide heads are, and what is kept of a token.
func (f *file) attention(c *Config, a *architecture) error {
	if a.latent {
		return f.latent(c)
	}
	return f.heads(c)
}

// nested are the objects that a model of text and images keeps its decoder in.
var nested = []string{"text_config", "llm_config", "language_config"}

// open reads the object with the decoder's sizes: the file's, or one in it.
func open(name string, b []byte) (f *file, note string, err error) {
	f = &file{name: name, members: map[string]jsontext.Member{}, nulls: map[string]bool{}}
	if err := f.add("", b, 1); err != nil {
		return nil, "", err
	}
	for _, key := range nested {
		m, ok := f.members[key]
		if _, flat := f.members["num_hidden_layers"]; !ok || flat {
			continue
		}
		delete(f.members, "model_type") // of the whole
		delete(f.members, "architectures")
		f.within = key
		return f, key + " alone is counted: not what sees images", f.add(key, m.Value, m.Line)
	}
	for _, key := range senses {
		if _, ok := f.members[key]; ok {
			note = key + " is not counted: the decoder alone is"
			break
		}
	}
	return f, note, nil
}

// senses are the objects of what sees images or hears, beside a decoder's keys.
var senses = []string{"vision_config", "visual", "vision_tower", "audio_config"}

// add reads an object, a key's or the file's, that begins in a line; its keys hide those that are there.
func (f *file) add(key string, b []byte, line int) error {
	if key != "" && !bytes.HasPrefix(bytes.TrimSpace(b), []byte("{")) {
		return f.errorf(key, " %s: want an object, in braces", clip(b))
	}
	all, end, wrong := jsontext.Members(b)
	if wrong != nil {
		return fmt.Errorf("%s:%w", f.name, &jsontext.Error{Line: wrong.Line + line - 1, Err: wrong.Err})
	}
	f.end = end + line - 1
	for _, words := range synonyms() {
		if slices.ContainsFunc(all, func(m jsontext.Member) bool { return slices.Contains(words, m.Key) }) {
			for _, w := range words { // of the object around it
				delete(f.members, w)
			}
		}
	}
	for _, m := range all {
		m.Line += line - 1
		if f.nulls[m.Key] = string(m.Value) == "null"; !f.nulls[m.Key] {
			f.members[m.Key] = m
		}
	}
	return nil
}

// synonyms are the keys that say the same.
func synonyms() [][]string {
	all := [][]string{
		{"torch_dtype", "dtype"}, // the name until 2025, and since
		{"num_experts_per_tok", "experts_per_token"},
	}
	for _, s := range sizes {
		if s.short != "" && s.short != s.key {
			all = append(all, []string{s.key, s.short})
		}
	}
	return all
}

// agree refuses synonyms that say different things.
func (f *file) agree() error {
	for _, words := range synonyms() {
		a, inA := f.members[words[0]]
		b, inB := f.members[words[1]]
		if inA && inB && string(a.Value) != string(b.Value) {
			return f.errorf(b.Key, " %s beside %s %s: want one of them", clip(b.Value), a.Key, clip(a.Value))
		}
	}
	return nil
}

// architecture finds what the file says it is, and refuses what is no decoder.
func (f *file) architecture(c *Config) (*architecture, error) {
	modelType, err := f.word("model_type")
	if err != nil {
		return nil, err
	}
	if slices.Contains(noDecoders, modelType) {
		return nil, f.errorf("model_type", " %q: want a decoder with attention in every layer, such as %s", modelType, ModelTypes())
	}
	if m, ok := f.members["architectures"]; ok && otherClass.Match(m.Value) {
		return nil, f.errorf("architectures", " %s: want those of a decoder with attention in every layer, such as LlamaForCausalLM", clip(m.Value))
	}
	if modelType == "" && f.has("n_embd") {
		modelType = "gpt2"
	}
	a, known := architectureOf(modelType)
	if !known {
		if f.has("n_embd") {
			return nil, f.errorf("model_type", " %q with the keys of GPT-2: want one of %s", modelType, ModelTypes())
		}
		c.Notes = append(c.Notes, fmt.Sprintf("model_type %s is not known: its norms, biases and MLP are counted as Llama's", clip([]byte(modelType))))
	}
	return &a, f.others(&a)
}

// others refuses keys of what is counted otherwise.
func (f *file) others(a *architecture) error {
	for _, o := range others {
		m, ok := f.members[o.key]
		if ok && !a.known(o.key) && !slices.Contains([]string{"0", "false", "[]", "{}"}, string(m.Value)) {
			return f.errorf(o.key, " %s: %s", clip(m.Value), o.what)
		}
	}
	return nil
}

// otherClass matches classes of models that are no decoders with attention in every layer.
var otherClass = regexp.MustCompile(`(?i)mamba|rwkv|retnet|xlstm|hyena|jamba|zamba|bamba|recurrentgemma|ForMaskedLM|Encoder|ImageClassification`)

func (f *file) has(key string) bool {
	_, ok := f.members[key]
	return ok
}

// word is a key's text, "" where it is missing.
func (f *file) word(key string) (string, error) {
	m, ok := f.members[key]
	if !ok {
		return "", nil
	}
	var word string
	if err := json.Unmarshal(m.Value, &word); err != nil {
		return "", f.errorf(key, " %s: want a text", clip(m.Value))
	}
	return word, nil
}

// flag is a key's truth, or what it is where the key is missing.
func (f *file) flag(key string, otherwise bool) (bool, error) {
	switch m, ok := f.members[key]; {
	case !ok:
		return otherwise, nil
	case string(m.Value) == "true":
		return true, nil
	case string(m.Value) == "false":
		return false, nil
	default:
		return false, f.errorf(key, " %s: want true or false", clip(m.Value))
	}
}

// whole is a key's whole number from 1 to most, 0 where it is missing.
func (f *file) whole(key string, most int64) (int64, error) {
	m, ok := f.members[key]
	if !ok {
		return 0, nil
	}
	n, err := strconv.ParseInt(string(m.Value), 10, 64)
	if err != nil || n < 1 || n > most {
		return 0, f.errorf(key, " %s: want a whole number from 1 to %d", clip(m.Value), most)
	}
	return n, nil
}

func (f *file) size(s *size, c *Config) error {
	key := s.key
	if !f.has(key) && f.has("n_embd") && s.short != "" {
		key = s.short
	}
	n, err := f.whole(key, s.most)
	switch {
	case err != nil:
		return err
	case n == 0 && key == "n_inner": // GPT-2's default
		n = 4 * c.Hidden
	case n == 0 && s.need:
		what := "as in the config.json of a decoder model"
		if f.within != "" {
			what = "in " + f.within + ", even where it is what the model's code supposes unsaid"
		}
		return f.errorf(key, " is missing: want a whole number from 1 to %d, %s", s.most, what)
	}
	*s.to(c) = n
	return nil
}

// clip shortens a value for an error.
func clip(value []byte) string {
	const most = 40
	if len(value) > most {
		return fmt.Sprintf("%q...", value[:most])
	}
	return string(value)
}

// mostPositions bounds windows and learned positions.
const mostPositions = 1 << 26

// rest reads what is no size.
func (f *file) rest(c *Config, a *architecture) (err error) {
	if c.Tied, err = f.flag("tie_word_embeddings", a.tied); err != nil {
		return err
	}
	c.Plain = a.plain
	for _, b := range []struct {
		key string
		to  []*bool
	}{
		{"attention_bias", []*bool{&a.biases.qkv, &a.biases.out}}, {"mlp_bias", []*bool{&a.biases.mlp}},
		{"use_bias", []*bool{&a.biases.qkv, &a.biases.out, &a.biases.mlp}}, {"lm_head_bias", []*bool{&a.biases.head}},
	} {
		for _, to := range b.to {
			if *to, err = f.flag(b.key, *to); err != nil {
				return err
			}
		}
	}
	a.biases.out = a.biases.out && !a.biases.never
	if a.asked {
		normed, err := f.flag("use_qk_norm", false)
		if err != nil {
			return err
		}
		if !normed {
			a.heads = 0
		}
	}
	if a.positions {
		if c.Positions, err = f.whole("n_positions", mostPositions); err != nil {
			return err
		}
	}
	if c.Longest, err = f.whole("max_position_embeddings", mostPositions); err != nil {
		return err
	}
	if m, ok := f.members["num_nextn_predict_layers"]; ok && string(m.Value) != "0" {
		n, err := f.whole(m.Key, 1<<14)
		if err != nil {
			return err
		}
		c.Notes = append(c.Notes, fmt.Sprintf("%s %d: the layers that foretell further tokens are not counted", m.Key, n))
	}
	return f.typ(c)
}

// typ reads the type of weights and activations.
func (f *file) typ(c *Config) error {
	c.Untyped = true
	for _, key := range []string{"torch_dtype", "dtype"} {
		m, ok := f.members[key]
		if !ok {
			continue
		}
		c.Untyped = false
		name, err := strconv.Unquote(string(m.Value))
		if c.Type, ok = named[name]; !ok || err != nil {
			return f.errorf(key, ` %s: want "float16", "bfloat16" or "float32"`, clip(m.Value))
		}
	}
	return nil
}

// heads fills in what follows from the number of heads.
func (f *file) heads(c *Config) error {
	if c.KVHeads == 0 {
		c.KVHeads = c.Heads
	}
	switch {
	case c.Heads%c.KVHeads != 0:
		return f.errorf("num_key_value_heads", " %d: want a divisor of the %d heads", c.KVHeads, c.Heads)
	case c.HeadDim == 0 && c.Hidden%c.Heads != 0:
		return f.errorf("hidden_size", " %d: want a multiple of the %d heads, or head_dim", c.Hidden, c.Heads)
	case c.HeadDim == 0:
		c.HeadDim = c.Hidden / c.Heads
	}
	values, err := f.whole("v_head_dim", 1<<12)
	if err == nil && values != 0 && values != c.HeadDim {
		err = f.errorf("v_head_dim", " %d: values of another width than head_dim %d: want grouped-query attention", values, c.HeadDim)
	}
	return err
}

// windows finds the layers that see a sliding window alone.
func (f *file) windows(c *Config, a *architecture) error {
	asked, err := f.flag("use_sliding_window", a.windows != windowAsked)
	if err != nil {
		return err
	}
	key := "sliding_window"
	if c.Chunked = a.windows == windowChunk; c.Chunked {
		key = "attention_chunk_size"
	}
	window, err := f.whole(key, mostPositions)
	if err != nil {
		return err
	}
	types, err := f.layerTypes(c)
	if err != nil {
		return err
	}
	if window == 0 || !asked {
		if slices.Contains(types, true) {
			return f.errorf(key, " is missing: layer_types has windows")
		}
		return nil
	}
	if types == nil {
		if types, err = f.windowedLayers(c, a); err != nil {
			return err
		}
	}
	if slices.Contains(types, true) {
		c.Window, c.Windowed = window, types
	}
	return nil
}

// layerTypes reads the list of layer_types; nil where it is missing.
func (f *file) layerTypes(c *Config) ([]bool, error) {
	m, ok := f.members["layer_types"]
	if !ok {
		return nil, nil
	}
	var words []string
	if err := json.Unmarshal(m.Value, &words); err != nil || int64(len(words)) != c.Layers {
		return nil, f.errorf(m.Key, " %s: want a list of %d words, one for each layer", clip(m.Value), c.Layers)
	}
	types := make([]bool, len(words))
	for i, w := range words {
		switch w {
		case "full_attention":
		case map[bool]string{false: "sliding_attention", true: "chunked_attention"}[c.Chunked]:
			types[i] = true
		default:
			return nil, f.errorf(m.Key, " %q: want full_attention or sliding_attention", w)
		}
	}
	return types, nil
}

// windowedLayers follows from the architecture.
func (f *file) windowedLayers(c *Config, a *architecture) ([]bool, error) {
	types := make([]bool, c.Layers)
	from, err := int64(0), error(nil)
	if m := f.members["max_window_layers"]; string(m.Value) != "0" {
		from, err = f.whole(m.Key, 1<<14)
	}
	if err != nil {
		return nil, err
	}
	turn, err := f.whole("sliding_window_pattern", 1<<14)
	if err != nil {
		return nil, err
	}
	if turn == 0 {
		turn = 2
		if a.heads > 0 { // Gemma 3
			turn = 6
		}
	}
	var rotates []int64
	if m, ok := f.members["no_rope_layers"]; ok && string(m.Value) != "[]" && a.windows == windowChunk {
		if json.Unmarshal(m.Value, &rotates) != nil || int64(len(rotates)) != c.Layers {
			return nil, f.errorf(m.Key, " %s: want a list of %d numbers, 1 for each layer that rotates positions", clip(m.Value), c.Layers)
		}
	}
	for i := range types {
		switch a.windows {
		case windowAsked:
			types[i] = int64(i) >= from
		case windowTurns:
			types[i] = int64(i+1)%turn != 0
		case windowChunk: // every fourth layer rotates no positions and sees all
			types[i] = (i+1)%4 != 0
			if rotates != nil {
				types[i] = rotates[i] == 1
			}
		default:
			types[i] = true
		}
	}
	return types, nil
}
