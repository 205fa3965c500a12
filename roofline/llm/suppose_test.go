package llm

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestUnsaidOfDeepSeek: a file that lacks the shared expert and the rank of queries has what
// the code supposes, with a note; null says that there is none.
func TestUnsaidOfDeepSeek(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("testdata", "models", "DeepSeek-V3.json"))
	require.NoError(t, err)
	whole, err := lookup(t, string(text))
	require.NoError(t, err)
	without := strings.NewReplacer(`"n_shared_experts": 1,`, "", `"q_lora_rank": 1536,`, "").Replace(string(text))
	c, err := lookup(t, without)
	require.NoError(t, err)
	require.Equal(t, whole.Parameters(), c.Parameters())
	require.Contains(t, c.Notes, "the file lacks what deepseek_v3 supposes, by Transformers' code: n_shared_experts 1, q_lora_rank 1536")
	c, err = lookup(t, strings.NewReplacer(`"n_shared_experts": 1,`, `"n_shared_experts": null,`, `"q_lora_rank": 1536,`, `"q_lora_rank": null,`).Replace(string(text)))
	require.NoError(t, err)
	require.Zero(t, c.Experts.Shared)
	require.Zero(t, c.Latent.Query)
	require.Equal(t, whole.Notes, c.Notes)

	// Of others nobody knows.
	c, err = lookup(t, strings.ReplaceAll(without, "deepseek_v3", "kimi_k2"))
	require.NoError(t, err)
	require.Contains(t, c.Notes, "n_shared_experts is missing: no expert is counted that every token goes to")
	require.Contains(t, c.Notes, "q_lora_rank is missing: queries are counted as made from the layer's input, as where it is null")
}

// TestUnsaid: the published file of Gemma 3 4B leaves its heads and vocabulary to the code.
func TestUnsaid(t *testing.T) {
	c, err := lookup(t, `{"model_type": "gemma3", "torch_dtype": "bfloat16", "vision_config": {"hidden_size": 1152}, "text_config": {
		"hidden_size": 2560, "intermediate_size": 10240, "model_type": "gemma3_text", "num_hidden_layers": 34, "sliding_window": 1024}}`)
	require.NoError(t, err)
	require.Equal(t, int64(3_880_263_168), c.Parameters())
	require.Equal(t, []string{
		"text_config alone is counted: not what sees images",
		"the file lacks what gemma3_text supposes, by Transformers' code: vocab_size 262208, num_attention_heads 8, num_key_value_heads 4, head_dim 256",
	}, c.Notes)
	require.False(t, c.Windowed[5], "every sixth layer sees all")
	require.True(t, c.Windowed[0])
}
