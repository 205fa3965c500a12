package space

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Config is a value for each parameter, in the space's order. It is immutable, and
// its zero value has no parameters.
type Config struct {
	names  []string
	values []int
	words  [][]string // by parameter, what its values stand for; nil where none are words
}

// NewConfig pairs names with values; both have the same length.
func NewConfig(names []string, values []int) (Config, error) {
	if len(names) != len(values) {
		return Config{}, fmt.Errorf("configuration: %d names for %d values", len(names), len(values))
	}
	return Config{names: slices.Clone(names), values: slices.Clone(values)}, nil
}

// Of builds a configuration from name, value pairs: Of("BM", 128, "BN", 64). It panics
// on anything else.
func Of(pairs ...any) Config {
	var c Config
	for i := 0; i < len(pairs); i += 2 {
		c.names = append(c.names, pairs[i].(string))
		c.values = append(c.values, pairs[i+1].(int))
	}
	return c
}

// Len returns the number of parameters.
func (c Config) Len() int { return len(c.names) }

// At returns the i-th parameter's name and value.
func (c Config) At(i int) (name string, value int) { return c.names[i], c.values[i] }

// Text returns the i-th parameter's value as a space's user writes it.
func (c Config) Text(i int) string {
	if w := c.wordsOf(i); w != nil {
		return w[c.values[i]]
	}
	return strconv.Itoa(c.values[i])
}

func (c Config) wordsOf(i int) []string {
	if i < len(c.words) && c.words[i] != nil && c.values[i] >= 0 && c.values[i] < len(c.words[i]) {
		return c.words[i]
	}
	return nil
}

// Get returns the value of the parameter called name.
func (c Config) Get(name string) (int, bool) {
	i := slices.Index(c.names, name)
	if i < 0 {
		return 0, false
	}
	return c.values[i], true
}

// With returns a copy that has name at value, appended if it was not there.
func (c Config) With(name string, value int) Config {
	i := slices.Index(c.names, name)
	if i < 0 {
		return Config{names: append(slices.Clone(c.names), name), values: append(slices.Clone(c.values), value), words: c.words}
	}
	values := slices.Clone(c.values)
	values[i] = value
	return Config{names: c.names, values: values, words: c.words}
}

// Equal reports whether both hold the same names and values in the same order.
func (c Config) Equal(d Config) bool {
	return slices.Equal(c.names, d.names) && slices.Equal(c.values, d.values)
}

// String is the canonical text, `BM=128 BN=64`.
func (c Config) String() string {
	var b strings.Builder
	for i, name := range c.names {
		if i > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(name)
		b.WriteByte('=')
		b.WriteString(c.Text(i))
	}
	return b.String()
}

// MarshalJSON writes an object with the parameters in order.
func (c Config) MarshalJSON() ([]byte, error) {
	b := []byte{'{'}
	for i, name := range c.names {
		if i > 0 {
			b = append(b, ',')
		}
		b = strconv.AppendQuote(b, name)
		b = append(b, ':')
		if c.wordsOf(i) != nil {
			b = strconv.AppendQuote(b, c.Text(i))
			continue
		}
		b = strconv.AppendInt(b, int64(c.values[i]), 10)
	}
	return append(b, '}'), nil
}

// Reader reads parameters by name and keeps the first error.
type Reader struct {
	config Config
	err    error
}

// Read returns a Reader of c.
func (c Config) Read() *Reader { return &Reader{config: c} }

// Int returns the value of the parameter called name, 0 after an error.
func (r *Reader) Int(name string) int {
	v, ok := r.config.Get(name)
	if !ok && r.err == nil {
		r.err = fmt.Errorf("configuration %q: no value for %s", r.config, name)
	}
	return v
}

// Err returns the first error.
func (r *Reader) Err() error { return r.err }
