package spec

import (
	"fmt"
	"strings"
)

// token is a piece of Python; its text is "" at the end.
type token struct {
	text   string
	column int // from 1
	quoted bool
	number bool
	name   bool
}

// operators are Python's, the longer ones first.
var operators = []string{"**", "//", "==", "!=", "<=", ">=", "<", ">", "+", "-", "*", "/", "%", "(", ")", "[", "]", ",", "."}

// scan splits an expression of Python.
func scan(text string) ([]token, error) {
	var tokens []token
	for at := 0; at < len(text); {
		c := text[at]
		t := token{column: at + 1}
		end := at + 1
		switch {
		case c == ' ' || c == '\t' || c == '\n' || c == '\r':
			at++
			continue
		case isLetter(c):
			for end < len(text) && (isLetter(text[end]) || isDigit(text[end])) {
				end++
			}
			t.text, t.name = text[at:end], true
			switch t.text {
			case "and", "or", "not", "in", "if", "else":
				t.name = false
			}
		case isDigit(c):
			for end < len(text) && (isDigit(text[end]) || text[end] == '.') {
				end++
			}
			t.text, t.number = text[at:end], true
			if end < len(text) && isLetter(text[end]) {
				return nil, fmt.Errorf("column %d: %s: want a decimal number", t.column, text[at:end+1])
			}
		case c == '\'' || c == '"':
			n := strings.IndexByte(text[end:], c)
			if n < 0 {
				return nil, fmt.Errorf("column %d: a string without an end", t.column)
			}
			t.text, t.quoted = text[end:end+n], true
			end += n + 1
		default:
			for _, op := range operators {
				if strings.HasPrefix(text[at:], op) {
					t.text, end = op, at+len(op)
					break
				}
			}
			if t.text == "" {
				return nil, fmt.Errorf("column %d: %q cannot be translated", t.column, c)
			}
		}
		tokens = append(tokens, t)
		at = end
	}
	return append(tokens, token{column: len(text) + 1}), nil
}

func isLetter(c byte) bool { return c == '_' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' }
func isDigit(c byte) bool  { return c >= '0' && c <= '9' }
