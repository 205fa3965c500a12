package llm

import (
	"testing"

	"github.com/stretchr/testify/require"
)

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
