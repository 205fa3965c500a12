package exchange

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
)

// object is a JSON object whose members stay in order.
type object struct {
	names  []string
	values []json.RawMessage
}

// parseConfig reads `BM=128 load=bulk`.
func parseConfig(text string) (object, error) {
	var o object
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
		if err := o.add(name, of); err != nil {
			return o, err
		}
	}
	return o, nil
}

func (o *object) add(name string, value any) error {
	raw, err := json.Marshal(value)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	o.names, o.values = append(o.names, name), append(o.values, raw)
	return nil
}

// plain is a member's value as people write it: a string without its quotes.
func (o *object) plain(i int) string {
	var text string
	if json.Unmarshal(o.values[i], &text) == nil {
		return text
	}
	return string(o.values[i])
}

// MarshalJSON writes the members in order.
func (o object) MarshalJSON() ([]byte, error) {
	b := []byte{'{'}
	for i, name := range o.names {
		if i > 0 {
			b = append(b, ',')
		}
		quoted, err := json.Marshal(name)
		if err != nil {
			return nil, err
		}
		b = append(append(append(b, quoted...), ':'), o.values[i]...)
	}
	return append(b, '}'), nil
}
