package jsontext

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// Object is a JSON object whose members keep their order.
type Object struct {
	Names  []string
	Values []json.RawMessage // by name
}

// Add appends a member.
func (o *Object) Add(name string, value any) error {
	raw, err := json.Marshal(value)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	o.Names, o.Values = append(o.Names, name), append(o.Values, raw)
	return nil
}

// Plain is a member's value as people write it: a string without its quotes.
func (o *Object) Plain(i int) string {
	var text string
	if json.Unmarshal(o.Values[i], &text) == nil {
		return text
	}
	return string(o.Values[i])
}

// MarshalJSON writes the members in order.
func (o Object) MarshalJSON() ([]byte, error) {
	b := []byte{'{'}
	for i, name := range o.Names {
		if i > 0 {
			b = append(b, ',')
		}
		quoted, err := json.Marshal(name)
		if err != nil {
			return nil, err
		}
		b = append(append(append(b, quoted...), ':'), o.Values[i]...)
	}
	return append(b, '}'), nil
}

// UnmarshalJSON reads an object, with each member that it has twice, too.
func (o *Object) UnmarshalJSON(text []byte) error {
	*o = Object{}
	d := json.NewDecoder(bytes.NewReader(text))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return fmt.Errorf("found %.40q: want an object", text)
	}
	for d.More() {
		key, err := d.Token()
		if err != nil {
			return err
		}
		var value json.RawMessage
		if err := d.Decode(&value); err != nil {
			return err
		}
		o.Names, o.Values = append(o.Names, key.(string)), append(o.Values, value)
	}
	_, err := d.Token()
	return err
}
