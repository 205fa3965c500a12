package llm

import (
	"fmt"
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

// size is a key of a config.json with a whole number from 1 to most. The products of
// all sizes at their most have 63 bits.
type size struct {
	key  string
	most int64
	to   func(*Config) *int64
	need bool // or it follows from others
}

var sizes = []size{
	{"hidden_size", 1 << 18, func(c *Config) *int64 { return &c.Hidden }, true},
	{"intermediate_size", 1 << 22, func(c *Config) *int64 { return &c.FFN }, true},
	{"num_hidden_layers", 1 << 14, func(c *Config) *int64 { return &c.Layers }, true},
	{"num_attention_heads", 1 << 13, func(c *Config) *int64 { return &c.Heads }, true},
	{"vocab_size", 1 << 24, func(c *Config) *int64 { return &c.Vocab }, true},
	{"num_key_value_heads", 1 << 13, func(c *Config) *int64 { return &c.KVHeads }, false},
	{"head_dim", 1 << 12, func(c *Config) *int64 { return &c.HeadDim }, false},
}

// file is a config.json under way.
type file struct {
	name    string
	members map[string]jsontext.Member
	end     int // line
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
	all, end, wrong := jsontext.Members(b)
	if wrong != nil {
		return nil, fmt.Errorf("%s:%w", name, wrong)
	}
	f := &file{name, map[string]jsontext.Member{}, end}
	for _, m := range all {
		if string(m.Value) != "null" { // as if it were not there
			f.members[m.Key] = m
		}
	}
	c := &Config{Name: name, Type: BF16}
	for _, s := range sizes {
		if err := f.size(&s, c); err != nil {
			return nil, err
		}
	}
	if err := f.rest(c); err != nil {
		return nil, err
	}
	return c, f.heads(c)
}

func (f *file) size(s *size, c *Config) error {
	m, ok := f.members[s.key]
	if !ok {
		if _, inner := f.members["text_config"]; inner && s.need {
			return f.errorf("text_config", ": the sizes of the language model are in it: want that object alone as a file")
		}
		if s.need {
			return f.errorf(s.key, " is missing: want a whole number from 1 to %d, as in the config.json of a decoder model", s.most)
		}
		return nil
	}
	n, err := strconv.ParseInt(string(m.Value), 10, 64)
	if err != nil || n < 1 || n > s.most {
		return f.errorf(s.key, " %s: want a whole number from 1 to %d", clip(m.Value), s.most)
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

// others are keys of architectures that are counted otherwise.
var others = []struct{ key, what string }{
	{"num_local_experts", "a mixture of experts: want a dense model"},
	{"num_experts", "a mixture of experts: want a dense model"},
	{"n_routed_experts", "a mixture of experts: want a dense model"},
	{"kv_lora_rank", "keys and values in a latent space: want grouped-query attention"},
}

// rest reads what is no size.
func (f *file) rest(c *Config) error {
	for _, o := range others {
		if m, ok := f.members[o.key]; ok && string(m.Value) != "0" {
			return f.errorf(o.key, " %s: %s", clip(m.Value), o.what)
		}
	}
	if m, ok := f.members["tie_word_embeddings"]; ok {
		c.Tied = string(m.Value) == "true"
		if !c.Tied && string(m.Value) != "false" {
			return f.errorf(m.Key, " %s: want true or false", clip(m.Value))
		}
	}
	for _, key := range []string{"torch_dtype", "dtype"} { // the name until 2025, and since
		m, ok := f.members[key]
		if !ok {
			continue
		}
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
	return nil
}
