package llm

import (
	"fmt"
	"strings"

	"github.com/kgen-dev/kgen/internal/jsontext"
)

// unsaid are the sizes that a model's code supposes where its file lacks them, as files of
// such models are published or cut down: Transformers' Gemma3TextConfig at 008f5c8c,
// DeepseekV2Config at 008e5743 and DeepseekV3Config at 001f85b3.
var unsaid = map[string][]struct{ key, value string }{
	"gemma3_text": {{"vocab_size", "262208"}, {"num_attention_heads", "8"}, {"num_key_value_heads", "4"}, {"head_dim", "256"}},
	"deepseek_v2": {{"n_shared_experts", "2"}, {"q_lora_rank", "1536"}},
	"deepseek_v3": {{"n_shared_experts", "1"}, {"q_lora_rank", "1536"}},
}

// suppose adds what the file leaves to the model's code, and notes it.
func (f *file) suppose(c *Config) {
	modelType, err := f.word("model_type")
	if err != nil {
		return // which others say
	}
	var added []string
	for _, u := range unsaid[modelType] {
		if !f.has(u.key) && !f.nulls[u.key] {
			f.members[u.key] = jsontext.Member{Key: u.key, Value: []byte(u.value), Line: f.end}
			added = append(added, u.key+" "+u.value)
		}
	}
	if added != nil {
		c.Notes = append(c.Notes, fmt.Sprintf("the file lacks what %s supposes, by Transformers' code: %s", modelType, strings.Join(added, ", ")))
	}
}
