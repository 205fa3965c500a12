package llm

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// The sizes of models as their config.json files have them, with what such files hold
// beside, and the parameters that their publishers count.
var published = []struct {
	name, text string
	parameters int64
}{
	{"Qwen2.5-0.5B", `"architectures": ["Qwen2ForCausalLM"], "attention_dropout": 0.0, "bos_token_id": 151643, "hidden_act": "silu", "hidden_size": 896, "intermediate_size": 4864,
		"max_position_embeddings": 32768, "max_window_layers": 24, "model_type": "qwen2", "num_attention_heads": 14, "num_hidden_layers": 24, "num_key_value_heads": 2,
		"rms_norm_eps": 1e-06, "rope_theta": 1000000.0, "sliding_window": 32768, "tie_word_embeddings": true, "torch_dtype": "bfloat16", "use_cache": true,
		"use_mrope": false, "use_sliding_window": false, "vocab_size": 151936`, 494_032_768},
	{"Qwen2.5-7B", `"model_type": "qwen2", "hidden_size": 3584, "intermediate_size": 18944, "num_attention_heads": 28, "num_hidden_layers": 28, "num_key_value_heads": 4,
		"tie_word_embeddings": false, "vocab_size": 152064, "use_sliding_window": false, "sliding_window": 131072, "rope_scaling": {"type": "yarn", "factor": 4.0}`, 7_615_616_512},
	{"Qwen3-8B", `"model_type": "qwen3", "attention_bias": false, "head_dim": 128, "hidden_size": 4096, "intermediate_size": 12288, "num_attention_heads": 32, "num_hidden_layers": 36,
		"num_key_value_heads": 8, "rope_scaling": null, "sliding_window": null, "tie_word_embeddings": false, "vocab_size": 151936, "max_window_layers": 36`, 8_190_735_360},
	{"Mistral-7B-v0.1", `"model_type": "mistral", "hidden_size": 4096, "intermediate_size": 14336, "num_attention_heads": 32, "num_hidden_layers": 32, "num_key_value_heads": 8,
		"sliding_window": 4096, "tie_word_embeddings": false, "vocab_size": 32000, "dtype": "bfloat16"`, 7_241_732_096},
	{"gemma-2b", `"model_type": "gemma", "head_dim": 256, "hidden_activation": null, "hidden_size": 2048, "intermediate_size": 16384, "num_attention_heads": 8, "num_hidden_layers": 18,
		"num_key_value_heads": 1, "vocab_size": 256000`, 2_506_172_416},
	{"gemma-2-9b", `"model_type": "gemma2", "attn_logit_softcapping": 50.0, "cache_implementation": "hybrid", "head_dim": 256, "hidden_size": 3584, "intermediate_size": 14336, "num_attention_heads": 16,
		"num_hidden_layers": 42, "num_key_value_heads": 8, "query_pre_attn_scalar": 256, "sliding_window": 4096, "sliding_window_size": 4096, "vocab_size": 256000, "torch_dtype": "float32"`, 9_241_705_984},
	{"gemma-3-1b", `"model_type": "gemma3_text", "head_dim": 256, "hidden_size": 1152, "intermediate_size": 6912, "num_attention_heads": 4, "num_hidden_layers": 26, "num_key_value_heads": 1,
		"rope_local_base_freq": 10000, "sliding_window": 512, "sliding_window_pattern": 6, "vocab_size": 262144`, 999_885_952},
	{"phi-2", `"model_type": "phi", "architectures": ["PhiForCausalLM"], "hidden_size": 2560, "intermediate_size": 10240, "num_attention_heads": 32, "num_hidden_layers": 32, "num_key_value_heads": 32,
		"partial_rotary_factor": 0.4, "qk_layernorm": false, "tie_word_embeddings": false, "vocab_size": 51200, "torch_dtype": "float16"`, 2_779_683_840},
	{"Phi-3-mini-4k", `"model_type": "phi3", "auto_map": {"AutoConfig": "configuration_phi3.Phi3Config"}, "hidden_size": 3072, "intermediate_size": 8192, "num_attention_heads": 32, "num_hidden_layers": 32,
		"num_key_value_heads": 32, "sliding_window": 2047, "tie_word_embeddings": false, "vocab_size": 32064`, 3_821_079_552},
	{"gpt2", `"activation_function": "gelu_new", "architectures": ["GPT2LMHeadModel"], "model_type": "gpt2", "n_ctx": 1024, "n_embd": 768, "n_head": 12, "n_layer": 12, "n_positions": 1024,
		"task_specific_params": {"text-generation": {"do_sample": true}}, "vocab_size": 50257`, 124_439_808},
	{"gpt2-xl", `"model_type": "gpt2", "n_embd": 1600, "n_head": 25, "n_inner": null, "n_layer": 48, "n_positions": 1024, "vocab_size": 50257`, 1_557_611_200},
	{"starcoder2-3b", `"model_type": "starcoder2", "hidden_size": 3072, "intermediate_size": 12288, "num_attention_heads": 24, "num_hidden_layers": 30, "num_key_value_heads": 2,
		"sliding_window": 4096, "use_bias": true, "vocab_size": 49152`, 3_030_371_328},
	{"c4ai-command-r-v01", `"model_type": "cohere", "hidden_size": 8192, "intermediate_size": 22528, "logit_scale": 0.0625, "num_attention_heads": 64, "num_hidden_layers": 40, "num_key_value_heads": 64,
		"use_qk_norm": false, "vocab_size": 256000`, 34_980_831_232},
	{"Llama-3.2-1B", `"model_type": "llama", "head_dim": 64, "hidden_size": 2048, "intermediate_size": 8192, "mlp_bias": false, "attention_bias": false, "num_attention_heads": 32, "num_hidden_layers": 16,
		"num_key_value_heads": 8, "pretraining_tp": 1, "rope_scaling": {"factor": 32.0, "rope_type": "llama3"}, "tie_word_embeddings": true, "vocab_size": 128256, "eos_token_id": [128001, 128008]`, 1_235_814_400},
	{"gpt-neox-20b", `"model_type": "gpt_neox", "hidden_size": 6144, "intermediate_size": 24576, "num_attention_heads": 64, "num_hidden_layers": 44, "rotary_pct": 0.25,
		"tie_word_embeddings": false, "use_parallel_residual": true, "vocab_size": 50432, "torch_dtype": "float16"`, 20_554_567_680},
}

func lookup(t *testing.T, text string) (*Config, error) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "config.json")
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	c, err := Lookup(path)
	if err != nil {
		require.ErrorContains(t, err, path+":")
	}
	return c, err
}

// TestPublishedConfigs: files of other architectures are counted as those are built.
func TestPublishedConfigs(t *testing.T) {
	for _, p := range published {
		c, err := lookup(t, "{"+p.text+"}")
		require.NoError(t, err, p.name)
		require.Equal(t, p.parameters, c.Parameters(), p.name)
		require.Empty(t, c.Notes, p.name)
		for _, phase := range []Phase{Prefill, Decode, Train} {
			r := &Run{Config: c, GPU: gpu(t, "h100"), Phase: phase, Batch: 1, Seq: 1024, TP: 1, PP: 1, DP: 1, KV: BF16}
			rep := analyse(t, r)
			// What the rule of 2 or 6 for each parameter and token leaves out is attention and the embedding.
			require.InDelta(t, 1, rep.FLOPs/rep.RuleFLOPs, 0.4, p.name)
		}
	}
}

// TestWindows: layers that see a window attend to it, and keep it, alone.
func TestWindows(t *testing.T) {
	count := func(name, extra string) (all, windowed int64) {
		for _, p := range published {
			if p.name == name {
				c, err := lookup(t, "{"+p.text+extra+"}")
				require.NoError(t, err)
				return c.Layers, c.windowed(c.Layers)
			}
		}
		t.Fatal(name)
		return 0, 0
	}
	for name, want := range map[string]int64{"Mistral-7B-v0.1": 32, "gemma-2-9b": 21, "gemma-3-1b": 22, "Qwen2.5-7B": 0, "Qwen3-8B": 0, "Phi-3-mini-4k": 32, "gpt2": 0} {
		_, got := count(name, "")
		require.Equal(t, want, got, name)
	}
	const small = `"hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 4, "num_attention_heads": 4, "vocab_size": 100, `
	for text, want := range map[string]int64{
		`"sliding_window": 16`: 4, `"sliding_window": null`: 0, `"model_type": "qwen2", "use_sliding_window": true, "max_window_layers": 3, "sliding_window": 16`: 1,
		`"model_type": "qwen2", "use_sliding_window": true, "max_window_layers": 0, "sliding_window": 16`:                     4,
		`"layer_types": ["sliding_attention", "full_attention", "full_attention", "sliding_attention"], "sliding_window": 16`: 2,
	} {
		c, err := lookup(t, "{"+small+text+"}")
		require.NoError(t, err, text)
		require.Equal(t, want, c.windowed(4), text)
	}
	// By hand: a window of 16 over 100 tokens, two layers of four.
	c, err := lookup(t, "{"+small+`"layer_types": ["sliding_attention", "full_attention", "full_attention", "sliding_attention"], "sliding_window": 16}`)
	require.NoError(t, err)
	r := &Run{Config: c, GPU: gpu(t, "h100"), Phase: Decode, Batch: 1, Seq: 100, TP: 1, PP: 1, DP: 1, KV: BF16, Page: 1}
	require.Equal(t, 16.0, r.pairs(16))
	require.Equal(t, 100.0, r.pairs(0))
	require.Equal(t, 2.0*2*64*(2*100+2*16), analyse(t, r).Memory.KV)
	full := *c
	full.Window, full.Windowed = 0, nil
	r.Config = &full
	require.Equal(t, 2.0*2*64*4*100, analyse(t, r).Memory.KV)
	r.Config, r.Phase = c, Prefill
	sum := 0.0
	for i := 1; i <= 100; i++ {
		sum += float64(min(i, 16))
	}
	require.Equal(t, sum, r.pairs(16))
	r.PP = 2 // a stage has one of each
	names := map[string]int64{}
	for _, o := range analyse(t, r).Operators {
		names[o.Name] = o.Count
	}
	require.Equal(t, int64(1), names["attention"])
	require.Equal(t, int64(1), names["attention in windows"])
}

// TestNested: the decoder of a model of text and images, and what a file of an unknown
// model leaves open.
func TestNested(t *testing.T) {
	const sizes = `"hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2, "num_attention_heads": 4, "vocab_size": 100`
	plain, err := lookup(t, "{"+sizes+"}")
	require.NoError(t, err)
	for _, key := range nested {
		c, err := lookup(t, `{"architectures": ["LlavaForConditionalGeneration"], "model_type": "llava", "torch_dtype": "float16", "vision_config": {"hidden_size": 1024},
			"`+key+`": {"model_type": "llama", `+sizes+`}}`)
		require.NoError(t, err)
		require.Equal(t, plain.Parameters(), c.Parameters())
		require.Equal(t, F16, c.Type)
		require.Equal(t, []string{key + " alone is counted: not what sees images"}, c.Notes)
	}
	_, err = lookup(t, "{\n\"text_config\": {\n\"hidden_size\": 64,\n\"intermediate_size\": -1}\n}")
	require.ErrorContains(t, err, "config.json:4: intermediate_size -1: want a whole number from 1 to")
	_, err = lookup(t, "{\n\"text_config\": {\n\"model_type\": \"llama\"\n}\n}")
	require.ErrorContains(t, err, "config.json:4: hidden_size is missing")
	require.ErrorContains(t, err, "in text_config, even where it is what the model's code supposes unsaid")
	_, err = lookup(t, "{\n\"text_config\": 3}")
	require.ErrorContains(t, err, "config.json:2: text_config 3: want an object, in braces")
	c, err := lookup(t, `{"model_type": "llama", "vision_config": {"hidden_size": 1024}, `+sizes+"}")
	require.NoError(t, err)
	require.Equal(t, plain.Parameters(), c.Parameters())
	require.Equal(t, []string{"vision_config is not counted: the decoder alone is"}, c.Notes)
	c, err = lookup(t, `{"model_type": "newest", `+sizes+"}")
	require.NoError(t, err)
	require.Equal(t, []string{"model_type newest is not known: its norms, biases and MLP are counted as Llama's"}, c.Notes)
}

// TestOtherArchitectures: what is counted otherwise is refused by key and line.
func TestOtherArchitectures(t *testing.T) {
	for text, want := range map[string]string{
		`"model_type": "mamba"`:                                  `model_type "mamba": want a decoder with attention in every layer, such as llama, mistral`,
		`"architectures": ["MambaForCausalLM"]`:                  `architectures ["MambaForCausalLM"]: want those of a decoder`,
		`"state_size": 16`:                                       "state_size 16: layers of a state space",
		`"model_type": "rwkv", "attention_hidden_size": 768`:     `model_type "rwkv": want`,
		`"model_type": "jamba", "attn_layer_period": 8`:          `model_type "jamba": want`,
		`"attn_layer_period": 8`:                                 "attn_layer_period 8: layers without attention",
		`"model_type": "bert"`:                                   `model_type "bert": want`,
		`"architectures": ["BertForMaskedLM"]`:                   "architectures [\"BertForMaskedLM\"]: want",
		`"is_encoder_decoder": true`:                             "is_encoder_decoder true: an encoder",
		`"model_type": "dbrx", "num_local_experts": 8`:           "num_local_experts 8: a mixture of experts that is not known: want model_type mixtral",
		`"model_type": "qwen3", "num_experts": 128`:              "num_experts 128: a mixture of experts",
		`"model_type": "minicpm3", "kv_lora_rank": 512`:          "kv_lora_rank 512: keys and values in a latent space: want model_type deepseek_v2",
		`"layer_types": ["full_attention", "conv"]`:              `layer_types "conv": want full_attention or sliding_attention`,
		`"layer_types": ["full_attention"]`:                      `layer_types ["full_attention"]: want a list of 2 words`,
		`"layer_types": ["full_attention", "sliding_attention"]`: "sliding_window is missing",
		`"quantization_config": {"quant_method": "aqlm"}`:        `quant_method "aqlm": want one of fp8, gptq, awq, mxfp4`,
		`"sliding_window": -5`:                                   "sliding_window -5: want a whole number from 1",
		`"attention_bias": "yes"`:                                `attention_bias "yes": want true or false`,
		`"model_type": 7`:                                        "model_type 7: want a text",
		`"use_sliding_window": 1`:                                "use_sliding_window 1: want true or false",
		`"cross_attention_layers": [3]`:                          "cross_attention_layers [3]: layers that attend to images",
	} {
		_, err := lookup(t, "{\"hidden_size\": 64, \"intermediate_size\": 128, \"num_hidden_layers\": 2,\n"+text+",\n\"num_attention_heads\": 4, \"vocab_size\": 100}")
		require.ErrorContains(t, err, want)
		if !strings.Contains(want, "is missing") { // that is said at the object's end
			require.ErrorContains(t, err, "config.json:2: ")
		}
	}
	for _, harmless := range []string{`"num_experts": 0`, `"is_encoder_decoder": false`, `"quantization_config": null`, `"multi_query": false`, `"architectures": []`, `"n_routed_experts": null`} {
		_, err := lookup(t, "{\"hidden_size\": 64, \"intermediate_size\": 128, \"num_hidden_layers\": 2,\n"+harmless+",\n\"num_attention_heads\": 4, \"vocab_size\": 100}")
		require.NoError(t, err, harmless)
	}
}

// TestContradictions: two keys that say different things of one are refused, what is left
// out of the count is noted.
func TestContradictions(t *testing.T) {
	const sizes = `{"hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2, "num_attention_heads": 4, "vocab_size": 100,` + "\n"
	for text, want := range map[string]string{
		`"n_embd": 128`: "n_embd 128 beside hidden_size 64: want one of them",
		`"n_layer": 3`:  "n_layer 3 beside num_hidden_layers 2: want one of them",
		`"model_type": "gpt2", "n_positions": 10, "n_head": 8`: "n_head 8 beside num_attention_heads 4: want one of them",
		`"torch_dtype": "float16", "dtype": "bfloat16"`:        `dtype "bfloat16" beside torch_dtype "float16": want one of them`,
		`"v_head_dim": 32`:                                       "v_head_dim 32: values of another width than head_dim 16: want grouped-query attention",
		`"num_nextn_predict_layers": -1`:                         "num_nextn_predict_layers -1: want a whole number from 1",
		`"max_position_embeddings": "long"`:                      `max_position_embeddings "long": want a whole number`,
		`"num_nextn_predict_layers": 1, "v_head_dim": "sixteen"`: `v_head_dim "sixteen": want a whole number`,
	} {
		_, err := lookup(t, sizes+text+"}")
		require.ErrorContains(t, err, want)
		require.ErrorContains(t, err, "config.json:2: ")
	}
	c, err := lookup(t, sizes+`"n_embd": 64, "n_layer": 2, "torch_dtype": "float16", "dtype": "float16", "v_head_dim": 16, "num_nextn_predict_layers": 2, "max_position_embeddings": 1000}`)
	require.NoError(t, err)
	require.Equal(t, []string{"num_nextn_predict_layers 2: the layers that foretell further tokens are not counted"}, c.Notes)
	r := &Run{Config: c, Phase: Prefill, Seq: 1000}
	require.Equal(t, c.Notes, r.Notes())
	r.Seq = 1001
	require.Equal(t, append(c.Notes, "1001 tokens are more than the 1000 of max_position_embeddings"), r.Notes())
	// What a decoder within says hides what is said around it by another word.
	c, err = lookup(t, `{"dtype": "float32", "hidden_size": 7, "text_config": `+strings.Replace(sizes, "hidden_size", "n_embd", 1)+`"model_type": "gpt2", "torch_dtype": "float16", "n_positions": 64}}`)
	require.NoError(t, err)
	require.Equal(t, F16, c.Type)
	require.EqualValues(t, 64, c.Hidden)
	// Learned positions end; a type that no key tells is supposed.
	require.True(t, !c.Untyped)
	r = &Run{Config: c, GPU: gpu(t, "h100"), Phase: Prefill, Batch: 1, Seq: 65, TP: 1, PP: 1, DP: 1, KV: F16}
	_, err = Analyse(r)
	require.EqualError(t, err, "--seq 65: want at most the 64 positions that the model has vectors for")
	c, err = lookup(t, sizes+`"model_type": "llama"}`)
	require.NoError(t, err)
	r.Config = c
	require.Equal(t, []string{"no torch_dtype or dtype tells the type: counted as bf16; --type takes another"}, r.Notes())
}
