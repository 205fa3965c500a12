package family

import (
	"encoding/json"
	"strconv"
	"strings"
)

// Setting is a flag and its value in canonical text.
type Setting struct{ Name, Value string }

// Settings are flags in a family's order.
type Settings []Setting

// String writes `m=4096 n=4096`.
func (s Settings) String() string {
	words := make([]string, len(s))
	for i, x := range s {
		words[i] = x.Name + "=" + x.Value
	}
	return strings.Join(words, " ")
}

// MarshalJSON writes an object in the order of s, with numbers and truth values as such.
func (s Settings) MarshalJSON() ([]byte, error) {
	b := []byte{'{'}
	for i, x := range s {
		if i > 0 {
			b = append(b, ',')
		}
		name, err := json.Marshal(x.Name)
		if err != nil {
			return nil, err
		}
		value := []byte(x.Value)
		if !json.Valid(value) {
			if value, err = json.Marshal(x.Value); err != nil {
				return nil, err
			}
		}
		b = append(append(append(b, name...), ':'), value...)
	}
	return append(b, '}'), nil
}

// FlagTexts are the members of an object, which MarshalJSON may have written, as Problem
// takes them.
func FlagTexts(object map[string]json.RawMessage) map[string]string {
	flags := map[string]string{}
	for name, v := range object {
		text := string(v)
		var word string
		if json.Unmarshal(v, &word) == nil {
			text = word
		}
		flags[name] = text
	}
	return flags
}

// Int returns the value of a flag that is a whole number; 0 if there is none such.
func (s Settings) Int(name string) int {
	for _, x := range s {
		if x.Name == name {
			n, err := strconv.Atoi(x.Value)
			must(name, err)
			return n
		}
	}
	return 0
}
