package exchange

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/kgen-dev/kgen/internal/jsontext"
)

// parseConfig reads `BM=128 load=bulk`.
func parseConfig(text string) (jsontext.Object, error) {
	var o jsontext.Object
	for _, field := range strings.Fields(text) {
		name, value, ok := strings.Cut(field, "=")
		if !ok || name == "" {
			return o, fmt.Errorf("configuration %.100q: %.40q is no NAME=VALUE", text, field)
		}
		raw := json.RawMessage(value)
		var of any = raw
		if _, err := strconv.ParseFloat(value, 64); err != nil || !json.Valid(raw) {
			of = value
		}
		if err := o.Add(name, of); err != nil {
			return o, err
		}
	}
	return o, nil
}
