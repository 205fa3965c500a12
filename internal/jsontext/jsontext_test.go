package jsontext

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestLocate(t *testing.T) {
	type inner struct {
		Sizes []int64 `json:"sizes"`
	}
	var into struct {
		Time  float64 `json:"time_us"`
		Name  string  `json:"name"`
		Count *uint8  `json:"count"`
		Own   bool    `json:"own"`
		Inner inner   `json:"inner"`
	}
	for text, want := range map[string]string{
		"{\n\"time_us\": \"3\"}":          "2: time_us: found a string: want a number",
		"{\"name\": 3}":                   "1: name: found a number: want a string",
		"{\"count\": -1}":                 "1: count: found -1: want a whole number from 0",
		"{\"own\": []}":                   "1: own: found a list: want true or false",
		"{\"inner\":\n{\"sizes\": true}}": "2: inner.sizes: found true or false: want a list",
		"{\"inner\": {\"sizes\": [1.5]}}": "1: inner.sizes: found 1.5: want a whole number",
		"{\"inner\": [\n]}":               "1: inner: found a list: want an object",
		"{\n\n\"name\": \"":               "3: the text ends early",
		"{\n\"name\": \"x\",\n}":          "3: invalid character '}' looking for beginning of object key string",
		"":                                "1: the text ends early",
		"{\n\"name\": ,}":                 "2: invalid character ',' looking for beginning of value",
	} {
		err := json.Unmarshal([]byte(text), &into)
		require.Error(t, err, text)
		require.EqualError(t, Locate([]byte(text), err), want, text)
	}
}

func TestMembers(t *testing.T) {
	all, end, err := Members([]byte("{\"a\": [1,\n2],\n\"b\": {\"a\": 3}\n}\n"))
	require.Nil(t, err)
	require.Equal(t, []Member{{"a", []byte("[1,\n2]"), 1}, {"b", []byte(`{"a": 3}`), 3}}, all)
	require.Equal(t, 4, end)
	for text, want := range map[string]string{
		"\n[1]":                 "2: want an object, in braces",
		"{\"a\": 1,\n\"a\": 2}": "2: a: there in line 1 too: want it once",
		"{\"a\": 1}\n{}":        "2: text after the object's end",
		"{\"a\": 1":             "1: the text ends early",
		"{\"a\": 1,\n2: 3}":     "2: invalid character '2'",
		"{\"a\":\n nul}":        "2: invalid character",
		"":                      "1: the text ends early",
		`{"a": ` + strings.Repeat("[", 20000) + "}": "exceeded max depth",
	} {
		_, _, err := Members([]byte(text))
		require.NotNil(t, err)
		require.ErrorContains(t, err, want)
	}
}

func FuzzMembers(f *testing.F) {
	f.Add([]byte(`{"a": [1, {"b": null}], "c": "d"}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		all, _, err := Members(text)
		var want map[string]json.RawMessage
		if err == nil {
			require.NoError(t, json.Unmarshal(text, &want))
			require.Len(t, all, len(want))
		}
	})
}

func TestNumbers(t *testing.T) {
	var got []string
	f := func(path string, n json.Number) error {
		got = append(got, path+"="+n.String())
		if strings.HasPrefix(n.String(), "-") {
			return errors.New(path + " is negative")
		}
		return nil
	}
	require.Nil(t, Numbers([]byte(`{"a": [1, {"b": 2.5}], "c": "3", "d": {}, "e": 4}`), f))
	require.Equal(t, []string{"a.0=1", "a.1.b=2.5", "e=4"}, got)
	require.EqualError(t, Numbers([]byte("{\"a\": 1,\n\"b\": [\n-1]}"), f), "3: b.0 is negative")
}

func TestLineOf(t *testing.T) {
	text := []byte("{\n \"a\": [\n  {\"b\": 1},\n  {\"c\": {\n   \"d\": 2}}\n ],\n \"e\": 3\n}")
	for path, want := range map[string]int{"a": 2, "a.0.b": 3, "a.1.c": 4, "a.1.c.d": 5, "e": 7, "a.1.x": 4, "a.7": 2, "x": 1, "e.f": 7} {
		require.Equal(t, want, LineOf(text, path), path)
	}
}
