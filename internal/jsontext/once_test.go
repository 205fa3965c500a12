package jsontext

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestOnce(t *testing.T) {
	for text, want := range map[string]string{
		"{\"a\": 1,\n\"a\": 2}":        "2: a: there in line 1 too: want it once",
		"{\"a\": 1,\n\"\\u0061\" : 2}": "2: a: there in line 1 too: want it once",
		"[{\"a\": {}}, {\"b\": [{\"c\": 1},\n{\"c\": 1, \"d\": {}, \"c\": 3}]}]": "2: c: there in line 2 too: want it once",
		`{"a": 1, "b": {"a": "a", "b": {"a": ["a", "a"]}}}`:                      "",
		`[{"a": 1}, {"a": 1}, "{\"a\": 1, \"a\": 2}"]`:                           "",
		`{"a": 1, "A": 2}`:             "",
		`{"a\"": 1, "a": 2, "a\\": 3}`: "",
		many(100):                      "",
		strings.Replace(many(100), `"k99"`, `"k50"`, 1): "1: k50: there in line 1 too: want it once",
		`{"a": 1, "a`: "",
		`}}"`:         "",
		"":            "",
	} {
		err := Once([]byte(text))
		if want == "" {
			require.Nil(t, err, text)
			continue
		}
		require.NotNil(t, err, text)
		require.EqualError(t, err, want)
	}
	require.Equal(t, &Repeated{"A", 1, 9}, Repeats([]byte(`{"a": 1, "A": 2}`), true))
}

// many is an object of n keys, each an object of one.
func many(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, `, "k%d": {"k%d": 0}`, i, i)
	}
	return "{" + b.String()[2:] + "}"
}

// FuzzOnce holds Once to encoding/json's own tokens.
func FuzzOnce(f *testing.F) {
	f.Add([]byte(`{"a": [1, {"b": null, "b": "}"}], "c": "d"}`))
	f.Add([]byte(`[{"a": {"a": 1}, "b": 2, "\u0061": 3}]`))
	f.Fuzz(func(t *testing.T, text []byte) {
		err := Once(text)
		if json.Valid(text) {
			require.Equal(t, repeats(t, json.NewDecoder(bytes.NewReader(text))), err != nil)
		}
	})
}

// repeats says whether the next value has an object with a key twice.
func repeats(t *testing.T, d *json.Decoder) bool {
	next := func() json.Token {
		token, err := d.Token()
		if err != io.EOF {
			require.NoError(t, err)
		}
		return token
	}
	token := next()
	if token != json.Delim('{') && token != json.Delim('[') {
		return false
	}
	seen, again := map[json.Token]bool{}, false
	for d.More() {
		if token == json.Delim('{') {
			key := next()
			again = again || seen[key]
			seen[key] = true
		}
		again = repeats(t, d) || again
	}
	next()
	return again
}

// BenchmarkRepeats reads the records of a published space, beside what decoding them takes.
func BenchmarkRepeats(b *testing.B) {
	const record = `{"configuration": {"block_size_x": 128, "tile_size_x": 4, "order": "strided"}, "invalidity": "correct", "measurements": [{"name": "time", "value": 1.25, "unit": "ms"}]},`
	text := []byte("[" + strings.Repeat(record, 1000) + "{}]")
	b.Run("repeats", func(b *testing.B) {
		b.SetBytes(int64(len(text)))
		for b.Loop() {
			require.Nil(b, Repeats(text, false))
		}
	})
	b.Run("decode", func(b *testing.B) {
		b.SetBytes(int64(len(text)))
		for b.Loop() {
			var all []map[string]any
			require.NoError(b, json.Unmarshal(text, &all))
		}
	})
}
