package jsontext

import (
	"bytes"
	"encoding/json"
	"fmt"
	"unicode/utf8"
)

// Once refuses a key that an object of the text has twice, of which encoding/json takes
// the last without a word. Of a text that is no JSON it may find nothing.
func Once(text []byte) *Error {
	r := Repeats(text, false)
	if r == nil {
		return nil
	}
	first := LineAt(text, r.First)
	return &Error{LineAt(text, r.Second), fmt.Errorf("%s: there in line %d too: want it once", clipped(r.Key), first)}
}

// Repeated is a key that is there twice in one object.
type Repeated struct {
	Key           string
	First, Second int64 // where the two are in the text, in bytes
}

// clipped is a key that is short enough for a message.
func clipped(key string) string {
	const most = 60
	if r := []rune(key); len(r) > most {
		return string(r[:most]) + "..."
	}
	return key
}

// Repeats finds the first key that is there twice; nil if there is none. encoding/json
// takes keys that differ only in case for one field's of a struct, but not of a map.
func Repeats(text []byte, anyCase bool) *Repeated {
	// Braces and strings are enough: a string before a colon is a key of the object that
	// was opened last.
	var open []keys
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '{':
			if len(open) < cap(open) {
				open = open[:len(open)+1] // with the room that a neighbour's keys took
				open[len(open)-1].reset()
			} else {
				open = append(open, keys{})
			}
		case '}':
			open = open[:max(0, len(open)-1)]
		case '"':
			end := i + quotedLength(text[i:])
			if n := len(open); n > 0 && colonFollows(text[end:]) {
				key := unquoted(text[i:end])
				if first, again := open[n-1].add(folded(key, anyCase), i); again {
					return &Repeated{string(key), int64(first), int64(i)}
				}
			}
			i = end - 1
		}
	}
	return nil
}

func folded(key []byte, anyCase bool) []byte {
	if anyCase {
		return bytes.ToLower(key)
	}
	return key
}

// keys are those of an object, with their places.
type keys struct {
	names  [][]byte
	places []int
	at     map[string]int // of more than few
}

// few keys are compared faster than looked up.
const few = 16

func (k *keys) reset() { k.names, k.places, k.at = k.names[:0], k.places[:0], nil }

// add adds a key, and returns the place of an equal one that is there.
func (k *keys) add(name []byte, place int) (first int, again bool) {
	if k.at == nil {
		for i, n := range k.names {
			if bytes.Equal(n, name) {
				return k.places[i], true
			}
		}
		k.names, k.places = append(k.names, name), append(k.places, place)
		if len(k.names) == few {
			k.at = map[string]int{}
			for i, n := range k.names {
				k.at[string(n)] = k.places[i]
			}
		}
		return 0, false
	}
	if first, again = k.at[string(name)]; !again {
		k.at[string(name)] = place
	}
	return first, again
}

// quotedLength is the length of a string that a text begins with, quotes included.
func quotedLength(text []byte) int {
	for i := 1; i < len(text); i++ {
		switch text[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}
	return len(text)
}

func colonFollows(text []byte) bool {
	for _, c := range text {
		switch c {
		case ' ', '\t', '\r', '\n':
			continue
		}
		return c == ':'
	}
	return false
}

// unquoted is the value of a JSON string, most often a part of the text.
func unquoted(quoted []byte) []byte {
	if bytes.IndexByte(quoted, '\\') < 0 && utf8.Valid(quoted) && len(quoted) > 1 {
		return quoted[1 : len(quoted)-1]
	}
	var key string
	if json.Unmarshal(quoted, &key) != nil {
		return quoted
	}
	return []byte(key)
}
