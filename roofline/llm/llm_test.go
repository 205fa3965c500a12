package llm

import (
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kgen-dev/kgen/codegen/target"
	"github.com/kgen-dev/kgen/roofline"
)

func gpu(t testing.TB, name string) *target.GPU {
	g, err := target.Lookup(name)
	require.NoError(t, err)
	return g
}

func run(t testing.TB, model, on string, phase Phase) *Run {
	c, err := Lookup(model)
	require.NoError(t, err)
	return &Run{Config: c, GPU: gpu(t, on), Phase: phase, Batch: 1, Seq: 2048, TP: 1, PP: 1, DP: 1, KV: BF16}
}

func analyse(t testing.TB, r *Run) *Report {
	rep, err := Analyse(r)
	require.NoError(t, err)
	return rep
}

// near compares with a figure that was published rounded.
func near(t testing.TB, want, got, step float64, what string) {
	t.Helper()
	require.InDelta(t, want, got, step/2+1e-9*math.Abs(want), what)
}

// TestParameters: the counts that Meta and Hugging Face state for these models.
func TestParameters(t *testing.T) {
	for name, want := range map[string]int64{
		"llama3.1-8b": 8_030_261_248, "llama3.1-70b": 70_553_706_496, "llama3.1-405b": 405_853_388_800, "llama2-7b": 6_738_415_616,
	} {
		c, err := Lookup(name)
		require.NoError(t, err)
		require.Equal(t, want, c.Parameters(), name)
	}
}

// TestStates: 16 bytes a parameter in mixed precision with Adam, and what each stage
// of ZeRO leaves: the 7.5 billion parameters over 64 GPUs of its paper's figure 1.
func TestStates(t *testing.T) {
	total := func(stage int, n int64) float64 {
		w, g, o := States(stage, n)
		return w + g + o
	}
	require.Equal(t, 16.0, total(0, 64))
	near(t, 128.5, 16*8.030261248, 0.1, "GB of Llama 3.1 8B")
	near(t, 120, 7.5*total(0, 64), 1, "GB, none")
	near(t, 31.4, 7.5*total(1, 64), 0.1, "GB, optimiser states split")
	near(t, 16.6, 7.5*total(2, 64), 0.1, "GB, gradients split")
	near(t, 1.9, 7.5*total(3, 64), 0.1, "GB, parameters split")

	r := run(t, "llama3.1-8b", "h100", Train)
	r.DP, r.Batch = 8, 8
	whole := analyse(t, r).Memory
	near(t, 128.5e9, whole.Weights+whole.Gradients+whole.Optimiser, 0.1e9, "bytes")
	require.False(t, whole.Fits)
	for stage, want := range []float64{16, 2 + 2 + 12.0/8, 2 + 14.0/8, 16.0 / 8} {
		r.Zero = stage
		m := analyse(t, r).Memory
		require.InEpsilon(t, want*8030261248, m.Weights+m.Gradients+m.Optimiser, 1e-12, stage)
	}
}

// TestActivations: s = 8192, h = 4096, 32 layers.
func TestActivations(t *testing.T) {
	near(t, 1.14, RuleActivations(8192, 1, 4096)/1e9, 0.01, "GB a layer")
	near(t, 36.5, 32*RuleActivations(8192, 1, 4096)/1e9, 0.1, "GB")
	near(t, 2.15, 32*LayerInput(8192, 1, 4096)/1e9, 0.01, "GB of inputs")
	r := run(t, "llama3.1-8b", "h100", Train)
	r.Seq = 8192
	m := analyse(t, r).Memory
	near(t, 36.5e9, m.Rule, 0.1e9, "bytes by the rule")
	// Counted for this architecture: 139 400 bytes a token and layer, 136 more than 34 h.
	require.Equal(t, float64(139_400*8192*32), m.Activations)
	r.Checkpoint = true
	m = analyse(t, r).Memory
	near(t, 3.3e9, m.Rule, 0.1e9, "bytes by the rule, checkpointed")
	require.Equal(t, float64(2*4096*8192*32+139_400*8192), m.Activations)
}

func TestRing(t *testing.T) {
	near(t, 0.64, RingAllReduce(16e9, 1<<20, 50e9), 0.01, "s for 16 GB at 50 GB/s")
	require.Equal(t, 0.0, RingAllReduce(16e9, 1, 50e9))
	require.Equal(t, 16e9/50e9, RingAllReduce(16e9, 2, 50e9))
}

// TestLinks: 16 GB of gradients over links of 50 GB/s, each way, take 0.64 s among many.
func TestLinks(t *testing.T) {
	r := run(t, "llama3.1-8b", "l40s", Train)
	r.DP, r.Batch = 1024, 1024
	require.Empty(t, analyse(t, r).Collectives)
	r.Links = 50
	all := analyse(t, r).Collectives
	require.Len(t, all, 1)
	near(t, 16.06, all[0].Bytes/1e9, 0.01, "GB")
	near(t, 0.64, all[0].US/1e6, 0.01, "seconds")
	r.Links = -1
	_, err := Analyse(r)
	require.ErrorContains(t, err, "--links -1: want 0 to 1e40")
}

// TestRules: 8.1e22 operations a day at a tenth of an H100, and 395 TFLOP/s of it.
func TestRules(t *testing.T) {
	p, ok := gpu(t, "h100").Peak(target.BF16)
	require.True(t, ok)
	near(t, 8.2e8, 8.1e22/(0.1*p.TFLOPS*1e12), 0.1e8, "GPU-seconds")
	near(t, 40, 100*395/p.TFLOPS, 1, "% MFU")

	// 6 P tokens, 2 P tokens: what is beside them is attention, and the embedding, which
	// does no arithmetic.
	train, serve := run(t, "llama3.1-70b", "h100", Train), run(t, "llama3.1-70b", "h100", Prefill)
	train.Seq, serve.Seq = 1, 1
	p70 := float64(train.Config.Parameters())
	require.InEpsilon(t, 6*p70, analyse(t, train).FLOPs, 0.02)
	require.InEpsilon(t, 2*p70, analyse(t, serve).FLOPs, 0.02)
	require.InEpsilon(t, 3*analyse(t, serve).FLOPs, analyse(t, train).FLOPs, 1e-12)
}

// TestBounds: decoding is bound by memory, prefill by arithmetic, and the batch where
// that turns.
func TestBounds(t *testing.T) {
	decode := run(t, "llama3.1-8b", "h100", Decode)
	rep := analyse(t, decode)
	require.Equal(t, string(roofline.HBM), rep.Limit)
	for _, o := range rep.Operators {
		require.Equal(t, roofline.HBM, o.Limit, o.Name)
	}
	require.Equal(t, string(roofline.Tensor), analyse(t, run(t, "llama3.1-8b", "h100", Prefill)).Limit)
	near(t, 295, rep.Crossover, 2, "tokens, H100")
	near(t, 153, analyse(t, run(t, "llama3.1-8b", "a100", Decode)).Crossover, 1, "tokens, A100 80 GB")
	near(t, 206, analyse(t, run(t, "llama3.1-8b", "h200", Decode)).Crossover, 1, "tokens, H200")
	// A little above the crossover, the activations of the widest matrices counted.
	limit := func(batch int64) roofline.Unit {
		decode.Batch = batch
		for _, o := range analyse(t, decode).Operators {
			if o.Name == "gate and up" {
				return o.Limit
			}
		}
		return ""
	}
	require.Equal(t, roofline.HBM, limit(290))
	require.Equal(t, roofline.Tensor, limit(360))

	h200 := run(t, "llama3.1-8b", "h200", Decode)
	decode.Batch = 1
	near(t, 1.43, analyse(t, h200).TokensPerSec/analyse(t, decode).TokensPerSec, 0.01, "H200 over H100")
}

// TestParallel: what GPUs share, each has less of; copies do not change a step.
func TestParallel(t *testing.T) {
	one, eight := run(t, "llama3.1-70b", "h100", Decode), run(t, "llama3.1-70b", "h100", Decode)
	eight.TP = 8
	a, b := analyse(t, one), analyse(t, eight)
	require.InEpsilon(t, 8, a.Memory.KV/b.Memory.KV, 1e-12)
	norms := 2.0 * (80*2 + 1) * 8192 // bytes: each GPU has them all
	require.InEpsilon(t, (a.Memory.Weights-norms)/8+norms, b.Memory.Weights, 1e-12)
	require.Len(t, b.Collectives, 1)
	require.Equal(t, 2.0*80*2*8192, b.Collectives[0].Bytes)
	require.Greater(t, b.TokensPerSec, 6*a.TokensPerSec)
	stages := run(t, "llama3.1-70b", "h100", Decode)
	stages.PP = 8
	require.InEpsilon(t, 8, a.Memory.KV/analyse(t, stages).Memory.KV, 1e-12)
	train := run(t, "llama3.1-8b", "h100", Train)
	train.DP, train.Batch = 4, 4
	rep := analyse(t, train)
	require.Equal(t, "sums of gradients", rep.Collectives[0].Name)
	require.InEpsilon(t, 1.5*2*8030261248/450e9*1e6, rep.Collectives[0].US, 1e-9)
	require.Less(t, rep.MFU, 1.0)
}

// TestPages: the last page of each sequence is filled in part.
func TestPages(t *testing.T) {
	r := run(t, "llama3.1-8b", "h100", Decode)
	r.Batch, r.Seq, r.Page = 3, 1000, 64
	const token = 2 * 2 * 8 * 128 * 32 // 128 KiB
	m := analyse(t, r).Memory
	require.Equal(t, 3.0*1024*token, m.KV)
	require.Equal(t, 3.0*24*token, m.Waste)
	r.KV = F8
	require.Equal(t, m.KV/2, analyse(t, r).Memory.KV)
}

// TestViewer is LLM-Viewer's published table: Llama-2-7B on an A6000, 2048 tokens.
func TestViewer(t *testing.T) {
	type row struct{ flops, step, bytes, bstep, ai, aistep float64 }
	for phase, rows := range map[Phase]map[string]row{
		Prefill: {
			"q_proj": {69e9, 1e9, 67e6, 1e6, 1024, 1}, "k_proj": {69e9, 1e9, 67e6, 1e6, 1024, 1}, "out_proj": {69e9, 1e9, 67e6, 1e6, 1024, 1},
			"gate_proj": {185e9, 1e9, 152e6, 1e6, 1215, 1}, "down_proj": {185e9, 1e9, 152e6, 1e6, 1215, 1},
			"qk_matmul": {34e9, 1e9, 302e6, 1e6, 114, 1}, "sv_matmul": {34e9, 1e9, 302e6, 1e6, 114, 1},
			"softmax": {671e6, 1e6, 537e6, 1e6, 1.25, 0.01}, "norm": {59e6, 1e6, 34e6, 1e6, 1.75, 0.01}, "add": {8e6, 1e6, 34e6, 1e6, 0.25, 0.01},
		},
		Decode: {
			"q_proj": {34e6, 1e6, 34e6, 1e6, 1, 0.01}, "gate_proj": {90e6, 1e6, 90e6, 1e6, 1, 0.01},
			"qk_matmul": {17e6, 1e6, 17e6, 1e6, 0.99, 0.01}, "sv_matmul": {17e6, 1e6, 17e6, 1e6, 0.99, 0.01},
			"softmax": {328e3, 2e3, 262e3, 1e3, 1.25, 0.01}, "norm": {29e3, 1e3, 16e3, 1e3, 1.75, 0.01}, "add": {4e3, 1e3, 16e3, 1e3, 0.25, 0.01},
		},
	} {
		ops, err := Viewer(run(t, "llama2-7b", "a6000", phase))
		require.NoError(t, err)
		seen := 0
		for _, o := range ops {
			want, ok := rows[o.Name]
			if !ok {
				continue
			}
			seen++
			near(t, want.flops, o.FLOPs, want.step, string(phase)+" "+o.Name+" OPs")
			near(t, want.bytes, o.Bytes, want.bstep, string(phase)+" "+o.Name+" bytes")
			near(t, want.ai, o.AI, want.aistep, string(phase)+" "+o.Name+" intensity")
			compute := phase == Prefill && (o.AI > 1000)
			require.Equal(t, compute, o.Limit == roofline.Tensor, o.Name)
		}
		require.Len(t, rows, seen)
	}
}

// TestBadConfigs: every error names file, line and key, and says what is wanted.
func TestBadConfigs(t *testing.T) {
	// A right one, a key a line, with some keys other than they should be.
	with := func(changed ...string) string {
		text := "{\n"
		for _, key := range []string{"hidden_size: 64", "intermediate_size: 1", "num_hidden_layers: 1", "num_attention_heads: 4", "vocab_size: 1"} {
			name, value, _ := strings.Cut(key, ": ")
			for _, c := range changed {
				if n, v, ok := strings.Cut(c, ": "); ok && n == name {
					value = v
				}
			}
			if !slices.Contains(changed, name) {
				text += `"` + name + `": ` + value + ",\n"
			}
		}
		for _, c := range changed {
			if n, v, ok := strings.Cut(c, ": "); ok && !strings.Contains(text, `"`+n+`"`) {
				text += `"` + n + `": ` + v + ",\n"
			}
		}
		return text + "\"architectures\": [\"LlamaForCausalLM\"]\n}\n"
	}
	right, err := parse("config.json", []byte(with()))
	require.NoError(t, err)
	require.Equal(t, &Config{Name: "config.json", Hidden: 64, FFN: 1, Layers: 1, Heads: 4, KVHeads: 4, HeadDim: 16, Vocab: 1, Type: BF16, Untyped: true, perLayer: 128, once: 64}, right)
	for text, want := range map[string]string{
		`{`:                               "1: the text ends early",
		``:                                "1: the text ends early",
		"[]":                              "1: want an object, in braces",
		"{\n\"hidden_size\": x}":          "2: invalid character 'x'",
		with("intermediate_size"):         "7: intermediate_size is missing: want a whole number from 1 to 4194304",
		with("hidden_size: null"):         "8: hidden_size is missing: want a whole number from 1 to 262144",
		with("num_hidden_layers: \"32\""): `4: num_hidden_layers "32": want a whole number from 1 to 16384`,
		with("num_hidden_layers: 99999999999999999999"):             "4: num_hidden_layers 99999999999999999999: want a whole number from 1 to 16384",
		with("num_hidden_layers: -1"):                               "4: num_hidden_layers -1: want a whole number",
		with("hidden_size: 64.5"):                                   "2: hidden_size 64.5: want a whole number",
		with("hidden_size: 1e99"):                                   "2: hidden_size 1e99: want a whole number",
		with("hidden_size: 0"):                                      "2: hidden_size 0: want a whole number",
		with("vocab_size: [1]"):                                     "6: vocab_size [1]: want a whole number",
		with("hidden_size: 66"):                                     "2: hidden_size 66: want a multiple of the 4 heads, or head_dim",
		with("num_key_value_heads: 3"):                              "7: num_key_value_heads 3: want a divisor of the 4 heads",
		with("num_key_value_heads: 0"):                              "7: num_key_value_heads 0: want a whole number",
		with("head_dim: 5000"):                                      "7: head_dim 5000: want a whole number from 1 to 4096",
		with("torch_dtype: \"int3\""):                               `7: torch_dtype "int3": want "float16", "bfloat16" or "float32"`,
		with("dtype: 3"):                                            `7: dtype 3: want "float16"`,
		with("tie_word_embeddings: 1"):                              "7: tie_word_embeddings 1: want true or false",
		with("num_local_experts: 8"):                                "7: num_local_experts 8: a mixture of experts",
		with("kv_lora_rank: 512"):                                   "7: kv_lora_rank 512: keys and values in a latent space",
		with("hidden_size", "num_hidden_layers", "text_config: {}"): "5: hidden_size is missing: want a whole number",
		"{\"vocab_size\": 1,\n\"vocab_size\": 2}":                   "2: vocab_size: there in line 1 too",
		`{"a": ` + strings.Repeat("[", 1e5):                         "1: ",
		with() + "x":                                                "9: text after the object's end",
		with("hidden_size: \"" + strings.Repeat("9", 1e6) + "\""):   "...: want a whole number",
	} {
		path := filepath.Join(t.TempDir(), "config.json")
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		_, err := Lookup(path)
		require.ErrorContains(t, err, want)
		require.ErrorContains(t, err, path+":")
		require.Less(t, len(err.Error()), 500)
	}
	_, err = Lookup("llama9")
	require.ErrorContains(t, err, `model "llama9": want llama2-7b, llama3.1-405b, llama3.1-70b, llama3.1-8b or the path`)
	_, err = Lookup(filepath.Join(t.TempDir(), "none.json"))
	require.ErrorIs(t, err, os.ErrNotExist)
}

// TestTypes: a GPU without a rate for a model's type has others, and says so.
func TestTypes(t *testing.T) {
	r := run(t, "llama3.1-8b", "t4", Prefill)
	_, err := Analyse(r)
	require.EqualError(t, err, "--gpu t4: no rate is known for bf16: want --type f16 or f32, or a GPU that has it, such as a100-sxm4-40, h100-pcie-80, jetson-thor-t5000")
	for typ, want := range map[*Type]target.Math{&F16: target.F16Acc32, &F32: target.F32} {
		r.Config.Type = *typ
		require.Equal(t, want, analyse(t, r).Math)
	}
	r.GPU, r.Config.Type = gpu(t, "a100"), F32
	require.Equal(t, target.TF32, analyse(t, r).Math)
	r.GPU, r.Config.Type = gpu(t, "gb10"), F16
	_, err = Analyse(r)
	require.ErrorContains(t, err, "no rate is known for f16: want --type f32, or a GPU")
}

// TestRoofs: decoding is as fast as memory's roof.
func TestRoofs(t *testing.T) {
	r := run(t, "llama3.1-8b", "h100", Decode)
	device := analyse(t, r)
	r.Roofs = roofline.DeviceRoofs(r.GPU)
	require.Equal(t, device, analyse(t, r))
	r.Roofs.HBM.Value /= 2
	half := analyse(t, r)
	require.InEpsilon(t, 2*device.StepUS, half.StepUS, 0.01)
	require.InEpsilon(t, 2*device.Crossover, half.Crossover, 1e-9)
}

func TestBadRuns(t *testing.T) {
	for want, change := range map[string]func(r *Run){
		"--batch 0: want 1 to":            func(r *Run) { r.Batch = 0 },
		"--seq -1: want 1 to":             func(r *Run) { r.Seq = -1 },
		"--tp 3: want a divisor":          func(r *Run) { r.TP = 3 },
		"--pp 33: want at most one stage": func(r *Run) { r.PP = 33 },
		"--dp 2: want a divisor":          func(r *Run) { r.DP = 2 },
		"--zero 4: want 0 to 3":           func(r *Run) { r.Zero = 4 },
		"--zero 1: it splits":             func(r *Run) { r.Zero = 1 },
		"--checkpoint: it is of training": func(r *Run) { r.Checkpoint = true },
		"--gpu t4: no rate is known":      func(r *Run) { r.GPU = gpu(t, "t4") },
	} {
		r := run(t, "llama3.1-8b", "h100", Prefill)
		change(r)
		_, err := Analyse(r)
		require.ErrorContains(t, err, want)
		_, err = Viewer(r)
		require.ErrorContains(t, err, want)
	}
}

// FuzzConfig: no config.json makes the arithmetic panic or give what is no number.
func FuzzConfig(f *testing.F) {
	for _, name := range Names() {
		b, err := models.ReadFile("models/" + name + ".json")
		require.NoError(f, err)
		f.Add(b)
	}
	for _, m := range sparseModels {
		b, err := os.ReadFile(filepath.Join("testdata", "models", m.name+".json"))
		require.NoError(f, err)
		f.Add(b)
	}
	g := gpu(f, "h100")
	f.Fuzz(func(t *testing.T, b []byte) {
		c, err := parse("config.json", b)
		if err != nil {
			return
		}
		rep, err := Analyse(&Run{Config: c, GPU: g, Phase: Decode, Batch: 2, Seq: 100, TP: 1, PP: 1, DP: 1, KV: BF16})
		if err == nil {
			require.Positive(t, rep.TokensPerSec)
			require.False(t, math.IsInf(rep.TokensPerSec, 0))
		}
	})
}
