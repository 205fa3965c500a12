package llm

import (
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// sparseModels are mixtures of experts with what their publishers count: all parameters of
// the weights' files, where they tell them to one, else in billions; active ones in billions,
// with the embedding or without.
var sparseModels = []struct {
	name           string
	parameters     int64
	billions       float64
	active, within float64
	embedding      bool // is among the active ones
}{
	{"Mixtral-8x7B-v0.1", 46_702_792_704, 46.7, 12.9, 0.05, true}, // arXiv 2401.04088: 47B, 13B
	{"Mixtral-8x22B-v0.1", 140_620_634_112, 141, 39, 0.5, true},   // Mistral AI, 17 April 2024
	{"Qwen1.5-MoE-A2.7B", 14_315_784_192, 14.3, 2.7, 0.05, true},  // the model card
	{"Qwen3-30B-A3B", 30_532_122_624, 30.5, 3.3, 0.1, true},       // the model card
	{"Qwen3-235B-A22B", 235_093_634_560, 235, 22, 0.5, true},      // the model card
	{"DeepSeek-V2-Lite", 15_706_484_224, 15.7, 2.4, 0.06, false},  // arXiv 2405.04434, appendix B
	{"DeepSeek-V3", 671_026_419_200, 671, 37, 0.5, false},         // arXiv 2412.19437
	{"Kimi-K2", 0, 1026, 32, 0.5, false},                          // arXiv 2507.20534: 1.04 T, 32.6 B with the rest
	{"gpt-oss-20b", 20_914_757_184, 20.91, 3.61, 0.005, false},    // arXiv 2508.10925, table 1
	{"gpt-oss-120b", 116_829_156_672, 116.83, 5.13, 0.005, false}, // the same
	{"OLMoE-1B-7B", 6_919_161_856, 6.9, 1.3, 0.05, true},          // arXiv 2409.02060
	{"Phi-3.5-MoE", 41_873_153_344, 41.9, 6.6, 0.05, true},        // the model card
	{"Llama-4-Scout-17B-16E", 0, 108, 17, 0.5, true},              // the model card: 109 B with what sees images
	{"Llama-4-Maverick-17B-128E", 0, 400, 17, 0.5, true},          // the model card
}

func model(t testing.TB, name string) *Config {
	t.Helper()
	c, err := Lookup(filepath.Join("testdata", "models", name+".json"))
	require.NoError(t, err)
	return c
}

// TestSparseModels: the parameters of published mixtures of experts, to one where that is
// told.
func TestSparseModels(t *testing.T) {
	for _, m := range sparseModels {
		c := model(t, m.name)
		if m.parameters > 0 {
			require.Equal(t, m.parameters, c.Parameters(), m.name)
		}
		require.InEpsilon(t, m.billions, float64(c.Parameters())/1e9, 0.005, m.name)
		active := float64(c.Active())
		if !m.embedding {
			active -= float64(c.Vocab * c.Hidden)
		}
		require.InDelta(t, m.active, active/1e9, m.within, m.name)
		for _, phase := range []Phase{Prefill, Decode} {
			rep := analyse(t, &Run{Config: c, GPU: gpu(t, "h200"), Phase: phase, Batch: 8, Seq: 512, TP: 1, PP: 1, DP: 1, KV: BF16})
			require.Positive(t, rep.TokensPerSec)
			require.LessOrEqual(t, rep.MFU, 1.0, m.name)
			require.Equal(t, c.Active(), rep.Active)
			sum := 0.0
			for _, o := range rep.Operators {
				sum += o.FLOPs
			}
			require.InEpsilon(t, rep.FLOPs, sum, 0.05, "%s %s: operators against the rule", m.name, phase)
		}
	}
}

// TestTouched: the expected number of distinct experts, against draws.
func TestTouched(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for _, c := range []struct{ experts, active, tokens int }{{8, 2, 1}, {8, 2, 3}, {64, 6, 10}, {128, 8, 64}, {4, 4, 1}} {
		const runs = 4000
		sum := 0
		for range runs {
			seen := map[int]bool{}
			for range c.tokens {
				for _, e := range random.Perm(c.experts)[:c.active] {
					seen[e] = true
				}
			}
			sum += len(seen)
		}
		e := Experts{Count: int64(c.experts), Active: int64(c.active)}
		require.InEpsilon(t, float64(sum)/runs, e.Touched(float64(c.tokens)), 0.01, "%+v", c)
	}
	e := Experts{Count: 256, Active: 8}
	require.InEpsilon(t, 8, e.Touched(1), 1e-12)
	require.InEpsilon(t, 256, e.Touched(1e9), 1e-12)
	require.Less(t, e.Touched(100), e.Touched(101))
}

// TestExpertBytes: decoding reads the experts that tokens go to, and with many tokens all.
func TestExpertBytes(t *testing.T) {
	c := model(t, "Mixtral-8x7B-v0.1")
	bytes := func(batch, dp, ep int64) float64 {
		for _, o := range analyse(t, &Run{Config: c, GPU: gpu(t, "h200"), Phase: Decode, Batch: batch, Seq: 100, TP: 1, PP: 1, DP: dp, EP: ep, KV: BF16}).Operators {
			if o.Name == "experts, down" {
				return o.Bytes
			}
		}
		return 0
	}
	one := 2 * 4096 * 14336.0
	tokens := func(m float64) float64 { return 2 * m * 2 * (4096 + 14336) }
	require.InEpsilon(t, 32*(2*one+tokens(1)), bytes(1, 1, 0), 1e-9)
	require.InEpsilon(t, 32*(8*one+tokens(4096)), bytes(4096, 1, 0), 1e-9)
	require.InEpsilon(t, 32*(8*(1-math.Pow(0.75, 4))*one+tokens(4)), bytes(4, 1, 0), 1e-9)
	// Two copies that share the experts: half of those of both copies' tokens.
	require.InEpsilon(t, 32*(4*(1-math.Pow(0.75, 8))*one+tokens(4)), bytes(8, 2, 2), 1e-9)

	r := &Run{Config: c, GPU: gpu(t, "h200"), Phase: Decode, Batch: 8, Seq: 100, TP: 1, PP: 1, DP: 2, EP: 2, KV: BF16}
	rep := analyse(t, r)
	routed := 2 * float64(c.sparse(32)*c.expertWeights())
	require.InEpsilon(t, 2*float64(c.Parameters())-routed/2, rep.Memory.Weights, 1e-12)
	require.Equal(t, "to experts and back", rep.Collectives[0].Name)
	require.InEpsilon(t, 2*32*2*4*4096*2, rep.Collectives[0].Bytes, 1e-12)
	require.InEpsilon(t, rep.Collectives[0].Bytes/2/450e3, rep.Collectives[0].US, 1e-9)
	for want, change := range map[string]func(r *Run){
		"--ep 3: want a divisor of the 2 copies":         func(r *Run) { r.EP = 3 },
		"--ep 2: want a divisor of the 1 copies":         func(r *Run) { r.DP = 1 },
		"--ep 2: training is counted with all experts":   func(r *Run) { r.Phase = Train },
		"--ep -1: want 0 to":                             func(r *Run) { r.EP = -1 },
		"--ep 2: the model has no experts":               func(r *Run) { r.Config, _ = Lookup("llama3.1-8b") },
		"--phase train: the weights are quantised (fp8)": func(r *Run) { r.Config, r.Phase, r.EP = model(t, "DeepSeek-V3"), Train, 0 },
	} {
		bad := *r
		change(&bad)
		_, err := Analyse(&bad)
		require.ErrorContains(t, err, want)
	}
}

// TestLatent: DeepSeek-V3's cache and operations as published, and the intensity of
// absorbed decoding.
func TestLatent(t *testing.T) {
	c := model(t, "DeepSeek-V3")
	r := &Run{Config: c, GPU: gpu(t, "h200"), Phase: Decode, Batch: 1, Seq: 1000, TP: 8, PP: 1, DP: 1, KV: BF16, Page: 1}
	// arXiv 2505.09343, table 1: 70.272 KB a token, on each GPU.
	require.InEpsilon(t, 70.272e3*1000, analyse(t, r).Memory.KV, 1e-12)
	r.TP = 1
	for _, o := range analyse(t, r).Operators {
		if o.Name == "attention, absorbed" { // FlashMLA: 1.89 a head and query, less the queries' own bytes
			require.Equal(t, int64(61), o.Count)
			require.InEpsilon(t, 2*1000*128*(576+512)*61.0, o.FLOPs, 1e-12)
			require.InEpsilon(t, 1.889*128, o.AI*(1000*576+128*(576+512))/(1000*576), 0.001)
		}
	}
	// arXiv 2505.09343, table 2: 250 GFLOP a token of training at 4096 tokens.
	dense := *c
	dense.Quantised = nil
	rep := analyse(t, &Run{Config: &dense, GPU: gpu(t, "h200"), Phase: Train, Batch: 1, Seq: 4096, TP: 1, PP: 1, DP: 1, KV: BF16})
	require.InDelta(t, 250, rep.FLOPs/4096/1e9, 1)
	// Whether or not queries pass a smaller rank.
	require.Equal(t, int64(2048*16*192+2048*576+512*16*256+16*128*2048), model(t, "DeepSeek-V2-Lite").attentionWeights())
}

// TestQuantised: bytes of weights with scales and zeros, as published files have them.
func TestQuantised(t *testing.T) {
	gib := func(name string) float64 { return model(t, name).WeightBytes() / (1 << 30) }
	require.InDelta(t, 60.8, gib("gpt-oss-120b"), 0.05) // arXiv 2508.10925, table 1
	require.InDelta(t, 12.8, gib("gpt-oss-20b"), 0.05)
	require.InDelta(t, 5.73, model(t, "Llama-3.1-8B-AWQ-INT4").WeightBytes()/1e9, 0.01) // the files' 5.74 GB
	plain, err := Lookup("llama3.1-8b")
	require.NoError(t, err)
	require.Equal(t, float64(2*plain.Parameters()), plain.WeightBytes())

	const sizes = `{"model_type": "llama", "hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2, "num_attention_heads": 4, "vocab_size": 100,` + "\n" + `"quantization_config": `
	attention, mlp := 2*4*64*64.0, 2*3*64*128.0
	rest := 2 * (2*100*64 + 5*64.0)
	for text, want := range map[string]float64{
		`{"quant_method": "fp8"}`:                                                                                  attention + mlp,
		`{"quant_method": "fp8", "weight_block_size": [128, 64]}`:                                                  (attention + mlp) * (1 + 4.0/8192),
		`{"quant_method": "gptq", "bits": 4, "group_size": 128}`:                                                   (attention + mlp) * (0.5 + 2.5/128),
		`{"quant_method": "gptq", "bits": 8, "group_size": -1}`:                                                    attention + mlp,
		`{"quant_method": "awq", "w_bit": 4, "q_group_size": 32}`:                                                  (attention + mlp) * (0.5 + 2.5/32),
		`{"quant_method": "awq", "bits": 4, "group_size": 64, "modules_to_not_convert": ["self_attn", "lm_head"]}`: 2*attention + mlp*(0.5+2.5/64),
		`{"quant_method": "fp8", "ignored_layers": ["model.layers.*.mlp", "model.layers.3.mlp.gate"]}`:             attention + 2*mlp,
		`{}`: 2 * (attention + mlp),
	} {
		c, err := lookup(t, sizes+text+"}")
		require.NoError(t, err, text)
		require.InEpsilon(t, want+rest, c.WeightBytes(), 1e-12, text)
	}
	for text, want := range map[string]string{
		`{"quant_method": "aqlm"}`:            `quant_method "aqlm": want one of fp8, gptq, awq, mxfp4, or`,
		`{}` + "x":                            "2: invalid character 'x'",
		`7`:                                   "quantization_config 7: want an object, in braces",
		`{"bits": 4}`:                         "quant_method is missing: want one of",
		`{"quant_method": "gptq"}`:            "bits is missing: want a whole number",
		`{"quant_method": "gptq", "bits": 5}`: "bits 5: want 2, 3, 4 or 8",
		`{"quant_method": "gptq", "bits": 4}`: "group_size is missing: want",
		`{"quant_method": "awq", "bits": 4, "group_size": 0}`:               "group_size 0: want a whole number from 1",
		`{"quant_method": "fp8", "weight_block_size": [128]}`:               "weight_block_size [128]: want the rows and columns",
		`{"quant_method": "fp8", "weight_block_size": [128, 0]}`:            "weight_block_size [128, 0]: want",
		`{"quant_method": "fp8", "lm_head": true}`:                          "lm_head true: want false",
		`{"quant_method": "fp8", "ignored_layers": ["model.layers.7.mlp"]}`: "ignored_layers model.layers.7.mlp: want names of parts of all layers",
		`{"quant_method": "fp8", "ignored_layers": "mlp"}`:                  `ignored_layers "mlp": want a list of names`,
		`{"quant_method": 3}`: "quant_method 3: want a text",
	} {
		_, err := lookup(t, sizes+text+"}")
		require.ErrorContains(t, err, want, text)
		require.ErrorContains(t, err, "config.json:2: ", text)
	}
}

// TestQuantisedProducts: fp8 products run at their own rate where a GPU has it, products of
// weights of fewer bits at the model's.
func TestQuantisedProducts(t *testing.T) {
	for name, want := range map[string]string{"h200": "fp8", "a100": "bf16"} {
		r := &Run{Config: model(t, "DeepSeek-V3"), GPU: gpu(t, name), Phase: Prefill, Batch: 1, Seq: 4096, TP: 8, PP: 1, DP: 1, KV: BF16}
		require.Contains(t, string(analyse(t, r).Math), want)
		require.Equal(t, name == "a100", strings.Contains(strings.Join(r.Notes(), "\n"), "has no rate for them"))
	}
	r := &Run{Config: model(t, "gpt-oss-20b"), GPU: gpu(t, "h200"), Phase: Decode, Batch: 1, Seq: 4096, TP: 1, PP: 1, DP: 1, KV: BF16}
	rep := analyse(t, r)
	require.Equal(t, "bf16", string(rep.Math))
	require.InEpsilon(t, rep.Crossover*0.53125/2*8, rep.ExpertsFrom, 1e-9)
}

// TestChunks: chunks of Llama 4 are triangles one after another.
func TestChunks(t *testing.T) {
	c := model(t, "Llama-4-Scout-17B-16E")
	require.Equal(t, int64(36), c.windowed(48))
	r := &Run{Config: c, Seq: 20000, Phase: Prefill}
	sum := 0.0
	for i := range 20000 {
		sum += float64(i%8192 + 1)
	}
	require.Equal(t, sum, r.pairs(c.Window))
	r.Phase = Decode
	require.Equal(t, float64(20000-2*8192), r.pairs(c.Window))
	require.Equal(t, int64(8192), r.held())
}

// TestBadMixtures: what is missing or does not fit is refused by key and line.
func TestBadMixtures(t *testing.T) {
	for _, c := range []struct{ file, old, new, want string }{
		{"Mixtral-8x7B-v0.1", `"num_experts_per_tok": 2`, `"num_experts_per_tok": 9`, ":9: num_experts_per_tok 9: want at most the 8 experts of num_local_experts"},
		{"Mixtral-8x7B-v0.1", `"num_experts_per_tok": 2`, `"x": 2`, "num_experts_per_tok is missing: want a whole number"},
		{"Mixtral-8x7B-v0.1", `"num_local_experts": 8`, `"num_local_experts": 0`, ":12: num_local_experts 0: want a whole number from 1"},
		{"Mixtral-8x7B-v0.1", `"mixtral"`, `"mixtral9"`, ":12: num_local_experts 8: a mixture of experts that is not known: want model_type mixtral"},
		{"Mixtral-8x7B-v0.1", `"intermediate_size": 14336`, `"intermediate_size": 4194304, "num_local_experts": 8192, "hidden_size": 262144, "num_hidden_layers": 16384`, "there in line"},
		{"Qwen3-30B-A3B", `"mlp_only_layers": []`, `"mlp_only_layers": 3`, "mlp_only_layers 3: want a list of layers"},
		{"Qwen3-30B-A3B", `"mlp_only_layers": []`, `"mlp_only_layers": [3, 48]`, "mlp_only_layers [3, 48]: layer 48: want 0 to 47, of 48 layers"},
		{"Qwen3-30B-A3B", `"mlp_only_layers": []`, `"mlp_only_layers": [-1]`, "mlp_only_layers [-1]: layer -1: want 0 to 47"},
		{"gpt-oss-20b", `"experts_per_token": 4`, `"experts_per_token": 8`, ":6: experts_per_token 8 beside num_experts_per_tok 4: want one of them"},
		{"gpt-oss-20b", `"experts_per_token": 4`, `"num_experts": 128`, ":6: num_experts 128: a mixture of experts that is not known"},
		{"DeepSeek-V3", `"n_routed_experts": 256`, `"n_routed_experts": 256, "num_local_experts": 64`, "num_local_experts 64: a mixture of experts that is not known"},
		{"Qwen3-30B-A3B", `"decoder_sparse_step": 1`, `"decoder_sparse_step": 100`, "num_experts 128: by the other keys no layer has experts"},
		{"DeepSeek-V3", `"kv_lora_rank": 512`, `"kv_lora_rank": null`, "kv_lora_rank is missing"},
		{"DeepSeek-V3", `"deepseek_v3"`, `"deepseek_v32"`, "a mixture of experts that is not known"},
		{"DeepSeek-V3", `"attention_bias": false`, `"attention_bias": true`, "attention_bias true beside kv_lora_rank"},
		{"DeepSeek-V3", `"num_key_value_heads": 128`, `"num_key_value_heads": 8`, "num_key_value_heads 8: want the 128 heads"},
		{"DeepSeek-V3", `"n_routed_experts": 256`, `"n_routed_experts": 8192`, ""},
		{"DeepSeek-V3", `"moe_intermediate_size": 2048`, `"moe_intermediate_size": 4194305`, "moe_intermediate_size 4194305: want a whole number from 1 to 4194304"},
		{"Llama-4-Scout-17B-16E", `"no_rope_layers": []`, `"no_rope_layers": [1]`, "no_rope_layers [1]: want a list of 48 numbers"},
	} {
		text, err := os.ReadFile(filepath.Join("testdata", "models", c.file+".json"))
		require.NoError(t, err)
		require.Contains(t, string(text), c.old)
		_, err = lookup(t, strings.Replace(string(text), c.old, c.new, 1))
		if c.want == "" {
			require.NoError(t, err)
			continue
		}
		require.ErrorContains(t, err, c.want)
	}
	// As large as keys may be: no sum overflows.
	_, err := lookup(t, `{"model_type": "deepseek_v3", "hidden_size": 262144, "intermediate_size": 4194304, "num_hidden_layers": 16384, "num_attention_heads": 8192, "vocab_size": 16777216,
		"n_routed_experts": 8192, "num_experts_per_tok": 8192, "moe_intermediate_size": 4194304, "n_shared_experts": 64, "kv_lora_rank": 8, "qk_nope_head_dim": 8, "qk_rope_head_dim": 8, "v_head_dim": 8}`)
	require.ErrorContains(t, err, "n_routed_experts 8192 of 262144 x 268435456: more than 1e+18 weights")
	_, err = lookup(t, `{"model_type": "deepseek_v3", "hidden_size": 262144, "intermediate_size": 4194304, "num_hidden_layers": 16384, "num_attention_heads": 8192, "vocab_size": 16777216,
		"n_routed_experts": 8192, "num_experts_per_tok": 8192, "moe_intermediate_size": 4194304, "kv_lora_rank": 65536, "qk_nope_head_dim": 65536, "qk_rope_head_dim": 65536, "v_head_dim": 65536}`)
	require.ErrorContains(t, err, "kv_lora_rank 65536 with 8192 heads of 131072: more than 1e+18 weights")
}

// TestGLM: parameters as arXiv 2508.06471 tells them, 355 and 106 billion; it counts those of
// a token, 32 and 12, without embedding and head.
func TestGLM(t *testing.T) {
	for name, want := range map[string]struct{ all, active float64 }{"GLM-4.5": {355, 32}, "GLM-4.5-Air": {106, 12}} {
		c := model(t, name)
		require.InEpsilon(t, want.all, float64(c.Parameters())/1e9, 0.01, name)
		require.InDelta(t, want.active, float64(c.Active()-2*c.Vocab*c.Hidden)/1e9, 0.5, name)
	}
	// A layer: two norms, biases of queries, keys and values, and in the larger one norms of heads.
	require.Equal(t, int64(2*5120+(96+2*8)*128+2*128), model(t, "GLM-4.5").perLayer)
	require.Equal(t, int64(2*4096+(96+2*8)*128), model(t, "GLM-4.5-Air").perLayer)
}
