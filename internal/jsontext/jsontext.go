// Package jsontext says what is wrong with a JSON text, and where, in the words of the
// text: its lines, keys and kinds of values rather than Go's.
package jsontext

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strconv"
	"strings"
)

// Error is a mistake at a place in a text. Its text begins with the line, for a caller
// that puts the file and a colon before it.
type Error struct {
	Line int // from 1
	Err  error
}

func (e *Error) Error() string { return fmt.Sprintf("%d: %v", e.Line, e.Err) }

func (e *Error) Unwrap() error { return e.Err }

// Locate gives an error of encoding/json about the text its line, and words of JSON.
// Other errors are the first line's.
func Locate(text []byte, err error) *Error {
	var syntax *json.SyntaxError
	var kind *json.UnmarshalTypeError
	switch {
	case errors.As(err, &syntax) && strings.HasPrefix(syntax.Error(), "unexpected end"), // encoding/json has no value for it
		errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return &Error{LineAt(text, int64(len(text))), errors.New("the text ends early")}
	case errors.As(err, &syntax):
		return &Error{LineAt(text, syntax.Offset), syntax}
	case errors.As(err, &kind):
		return &Error{LineAt(text, kind.Offset), mismatch(kind)}
	case strings.HasPrefix(err.Error(), unknown): // encoding/json has no type for it
		name := strings.TrimPrefix(err.Error(), unknown)
		return &Error{LineAt(text, int64(bytes.Index(text, []byte(name)))), fmt.Errorf("unknown key %s", name)}
	}
	return &Error{1, err}
}

// unknown begins encoding/json's error about a key that the value has no field for.
const unknown = "json: unknown field "

// Plain is an error of encoding/json in words of JSON; any other stays as it is.
func Plain(err error) error {
	var kind *json.UnmarshalTypeError
	if errors.As(err, &kind) {
		return mismatch(kind)
	}
	return err
}

// LineAt is the line, from 1, of a place in the text.
func LineAt(text []byte, offset int64) int {
	return 1 + bytes.Count(text[:min(max(offset, 0), int64(len(text)))], []byte("\n"))
}

// mismatch says which key holds a value of another kind than it should.
func mismatch(e *json.UnmarshalTypeError) error {
	key := ""
	if e.Field != "" {
		key = e.Field + ": "
	}
	return fmt.Errorf("%sfound %s: want %s", key, found(e.Value), kindOf(e.Type))
}

// found names a kind of JSON value; of a number encoding/json gives its digits too.
func found(value string) string {
	switch value {
	case "string", "number":
		return "a " + value
	case "object":
		return "an object"
	case "array":
		return "a list"
	case "bool":
		return "true or false"
	}
	return strings.TrimPrefix(value, "number ")
}

// kindOf says what JSON a Go type is written as.
func kindOf(t reflect.Type) string {
	switch t.Kind() {
	case reflect.Pointer:
		return kindOf(t.Elem())
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return "a whole number"
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return "a whole number from 0"
	case reflect.Float32, reflect.Float64:
		return "a number"
	case reflect.String:
		return "a string"
	case reflect.Bool:
		return "true or false"
	case reflect.Slice, reflect.Array:
		return "a list"
	}
	return "an object"
}

// Member is a key of an object with its value.
type Member struct {
	Key   string
	Value json.RawMessage
	Line  int // of the key
}

// Members reads the text's one object, its keys in order, and returns the line of its
// end too. It refuses a key that is there twice, in objects within too, and text after the
// object.
func Members(text []byte) (all []Member, end int, err *Error) {
	d := json.NewDecoder(bytes.NewReader(text))
	line := func() int { return LineAt(text, d.InputOffset()) }
	t, wrong := d.Token()
	if wrong != nil {
		return nil, 0, Locate(text, wrong)
	}
	if t != json.Delim('{') {
		return nil, 0, &Error{line(), errors.New("want an object, in braces")}
	}
	for d.More() {
		if t, wrong = d.Token(); wrong != nil {
			return nil, 0, Locate(text, wrong)
		}
		m := Member{Key: t.(string), Line: line()} // what else stands before a colon is a syntax error
		if wrong = d.Decode(&m.Value); wrong != nil {
			return nil, 0, Locate(text, wrong)
		}
		all = append(all, m)
	}
	if _, wrong = d.Token(); wrong != nil {
		return nil, 0, Locate(text, wrong)
	}
	end = line()
	if _, wrong = d.Token(); !errors.Is(wrong, io.EOF) {
		return nil, 0, &Error{line(), errors.New("text after the object's end")}
	}
	return all, end, Once(text)
}

// LineOf is the line of what the keys and places lead to, as in shapes.0.regret, in a
// valid text; where there is no such thing, of the last that is there.
func LineOf(text []byte, path string) int {
	d := json.NewDecoder(bytes.NewReader(text))
	line := 1
	for step := range strings.SplitSeq(path, ".") {
		t, err := d.Token()
		if err != nil || t != json.Delim('{') && t != json.Delim('[') {
			return line
		}
		line = LineAt(text, d.InputOffset())
		for i := 0; ; i++ {
			if !d.More() {
				return line
			}
			name := strconv.Itoa(i)
			if t == json.Delim('{') {
				key, err := d.Token()
				if err != nil {
					return line
				}
				name = fmt.Sprint(key)
			}
			if name == step {
				break
			}
			var skip json.RawMessage
			if d.Decode(&skip) != nil {
				return line
			}
		}
		line = LineAt(text, d.InputOffset())
	}
	return line
}

// Numbers calls f with every number of a valid text, the keys and places that lead to it
// joined by dots, as in counters.tensor.0.count. An error of f gets the number's line.
func Numbers(text []byte, f func(path string, n json.Number) error) *Error {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	w := walk{d: d, f: f}
	if err := w.value(""); err != nil {
		return &Error{LineAt(text, d.InputOffset()), err}
	}
	return nil
}

type walk struct {
	d *json.Decoder
	f func(string, json.Number) error
}

func (w *walk) value(path string) error {
	t, err := w.d.Token()
	if err != nil {
		return err
	}
	switch t := t.(type) {
	case json.Number:
		return w.f(path, t)
	case json.Delim:
		for i := 0; w.d.More(); i++ {
			name := strconv.Itoa(i)
			if t == '{' {
				key, err := w.d.Token()
				if err != nil {
					return err
				}
				name = fmt.Sprint(key)
			}
			if err := w.value(strings.TrimPrefix(path+"."+name, ".")); err != nil {
				return err
			}
		}
		_, err = w.d.Token() // the end
	}
	return err
}
