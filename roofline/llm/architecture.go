package llm

import (
	"slices"
	"strings"
)

// architecture is what a decoder's model_type tells beside the sizes, as Hugging
// Face's Transformers build it.
type architecture struct {
	names string // model_type, several by spaces
	plain bool   // an MLP of two matrices; else a gated one, of three
	tied  bool   // unless tie_word_embeddings says otherwise
	norms int64  // vectors as wide as a layer, in it: a norm's weights, and its biases
	last  int64  // of the last norm
	heads int64  // vectors as wide as a head: norms of queries and keys
	asked bool   // these only if use_qk_norm is true

	biases    biases
	positions bool // a learned vector for each
	windows   windows

	mixture *mixture // of experts in the place of the MLP
	latent  bool     // keys and values in one vector of a token
	sinks   bool     // a number for each head that its softmax sums up too
}

// biases are those of matrices.
type biases struct {
	qkv, out, mlp, head bool
	never               bool // out, whatever attention_bias says
}

// windows says which layers see a sliding window of tokens alone.
type windows uint8

const (
	windowAll   windows = iota // where sliding_window is a number
	windowAsked                // those from max_window_layers on, if use_sliding_window is true
	windowTurns                // all but every sliding_window_pattern-th
	windowChunk                // those that rotate positions, in chunks of attention_chunk_size
)

// architectures are the known ones; the first is taken for a config.json that names none.
var architectures = []architecture{
	{names: "llama mistral ministral phi3 granite internlm2", norms: 2, last: 1},
	{names: "smollm3", norms: 2, last: 1, tied: true},
	{names: "qwen2", norms: 2, last: 1, biases: biases{qkv: true}, windows: windowAsked},
	{names: "qwen3", norms: 2, last: 1, heads: 2, windows: windowAsked},
	{names: "gemma", norms: 2, last: 1, tied: true},
	{names: "gemma2", norms: 4, last: 1, tied: true, windows: windowTurns},
	{names: "gemma3_text", norms: 4, last: 1, heads: 2, tied: true, windows: windowTurns},
	{names: "cohere", norms: 1, last: 1, tied: true},
	{names: "phi", norms: 2, last: 2, plain: true, biases: biases{qkv: true, out: true, mlp: true, head: true}},
	{names: "gpt_neox", norms: 4, last: 2, plain: true, biases: biases{qkv: true, out: true, mlp: true}},
	{names: "starcoder2", norms: 4, last: 2, plain: true, tied: true, biases: biases{qkv: true, out: true, mlp: true}},
	{names: "mixtral", norms: 2, last: 1, mixture: &mixture{count: "num_local_experts", width: "intermediate_size"}},
	{names: "phimoe", norms: 4, last: 2, mixture: &mixture{count: "num_local_experts", width: "intermediate_size"}},
	{names: "olmoe", norms: 4, last: 1, mixture: &mixture{count: "num_experts", width: "intermediate_size"}},
	{names: "qwen2_moe", norms: 2, last: 1, biases: biases{qkv: true}, windows: windowAsked,
		mixture: &mixture{count: "num_experts", width: "moe_intermediate_size", sharedWidth: "shared_expert_intermediate_size", gate: true, layers: qwenLayers}},
	{names: "qwen3_moe", norms: 2, last: 1, heads: 2, windows: windowAsked, mixture: &mixture{count: "num_experts", width: "moe_intermediate_size", layers: qwenLayers}},
	{names: "deepseek_v2", norms: 2, last: 1, latent: true, mixture: &mixture{count: "n_routed_experts", width: "moe_intermediate_size", layers: deepLayers}},
	{names: "deepseek_v3 kimi_k2", norms: 2, last: 1, latent: true, mixture: &mixture{count: "n_routed_experts", width: "moe_intermediate_size", layers: deepLayers, correction: true}},
	{names: "glm4_moe", norms: 2, last: 1, heads: 2, asked: true, biases: biases{never: true},
		mixture: &mixture{count: "n_routed_experts", width: "moe_intermediate_size", layers: deepLayers, correction: true}},
	{names: "gpt_oss", norms: 2, last: 1, biases: biases{qkv: true, out: true}, sinks: true, windows: windowTurns,
		mixture: &mixture{count: "num_local_experts", width: "intermediate_size", biased: true}},
	{names: "llama4_text", norms: 2, last: 1, windows: windowChunk,
		mixture: &mixture{count: "num_local_experts", width: "intermediate_size", shared: 1, dense: "intermediate_size_mlp", layers: llamaLayers}},
	{names: "gpt2", norms: 4, last: 2, plain: true, tied: true, biases: biases{qkv: true, out: true, mlp: true}, positions: true},
}

// architectureOf finds a model_type; false where it is not known.
func architectureOf(modelType string) (architecture, bool) {
	for _, a := range architectures {
		if slices.Contains(strings.Fields(a.names), modelType) {
			return a, true
		}
	}
	return architectures[0], modelType == ""
}

// ModelTypes lists the model_types of a config.json whose norms, biases, MLP and windows
// are known.
func ModelTypes() string {
	var all []string
	for _, a := range architectures {
		all = append(all, strings.Fields(a.names)...)
	}
	return strings.Join(all, ", ")
}

// noDecoders are model_types whose layers are no attention with an MLP, or not those alone.
var noDecoders = []string{
	"mamba", "mamba2", "falcon_mamba", "rwkv", "rwkv5", "rwkv6", "rwkv7", "retnet", "xlstm", "hyena", // no attention
	"jamba", "zamba", "zamba2", "bamba", "recurrent_gemma", "falcon_h1", "nemotron_h", "granitemoehybrid", "lfm2", "qwen3_next", "kimi_linear", "minimax",
	"t5", "mt5", "bart", "mbart", "pegasus", "marian", "whisper", "bert", "roberta", "xlm-roberta", "deberta-v2", "electra", "modernbert", "vit", "clip",
}

// others are keys of architectures that are counted otherwise, if their value is not 0,
// false or an empty list.
var others = []struct{ key, what string }{
	{"num_local_experts", "a mixture of experts that is not known: want model_type " + mixtures},
	{"num_experts", "a mixture of experts that is not known: want model_type " + mixtures},
	{"n_routed_experts", "a mixture of experts that is not known: want model_type " + mixtures},
	{"moe_num_experts", "a mixture of experts that is not known: want model_type " + mixtures},
	{"kv_lora_rank", "keys and values in a latent space: want model_type deepseek_v2, deepseek_v3 or kimi_k2"},
	{"state_size", "layers of a state space: want attention in each"},
	{"ssm_state_size", "layers of a state space: want attention in each"},
	{"mamba_d_state", "layers of a state space: want attention in each"},
	{"attn_layer_period", "layers without attention: want it in each"},
	{"block_types", "layers without attention: want it in each"},
	{"layers_block_type", "layers without attention: want it in each"},
	{"hybrid_override_pattern", "layers without attention: want it in each"},
	{"linear_num_key_heads", "layers of linear attention: want softmax in each"},
	{"attention_hidden_size", "attention without heads: want grouped-query attention"},
	{"cross_attention_layers", "layers that attend to images: want a decoder of text alone"},
	{"num_kv_shared_layers", "layers that share keys and values: want each to have its own"},
	{"attention_chunk_size", "attention in chunks: want full or sliding windows"},
	{"is_encoder_decoder", "an encoder: want a decoder alone"},
	{"multi_query", "one head of keys by a key of its own: want num_key_value_heads"},
	{"index_topk", "attention to chosen keys alone: want attention to all, or windows"},
}

// mixtures are the model_types whose experts are known.
const mixtures = "mixtral, phimoe, olmoe, qwen2_moe, qwen3_moe, deepseek_v2, deepseek_v3, kimi_k2, glm4_moe, gpt_oss or llama4_text"

// known are the keys among others that an architecture is counted by.
func (a *architecture) known(key string) bool {
	switch key {
	case "kv_lora_rank":
		return a.latent
	case "attention_chunk_size":
		return a.windows == windowChunk
	}
	return a.mixture != nil && key == a.mixture.count
}
