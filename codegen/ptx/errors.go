package ptx

import (
	"fmt"
	"strings"
)

// Error is a complaint about a place in PTX text. It prints as
// `file:line:col: message`.
type Error struct {
	File string
	Pos  Pos
	Msg  string
}

func (e *Error) Error() string {
	if e.Pos == (Pos{}) {
		return fmt.Sprintf("%s: %s", e.File, e.Msg)
	}
	return fmt.Sprintf("%s:%d:%d: %s", e.File, e.Pos.Line, e.Pos.Col, e.Msg)
}

// Errors are complaints in the order of the text, at most maxErrors of them.
type Errors []*Error

const maxErrors = 20

func (l Errors) Error() string {
	var b strings.Builder
	for i, e := range l {
		if i > 0 {
			b.WriteByte('\n')
		}
		b.WriteString(e.Error())
	}
	return b.String()
}

// Unwrap gives the single errors.
func (l Errors) Unwrap() []error {
	all := make([]error, len(l))
	for i, e := range l {
		all[i] = e
	}
	return all
}

func (l Errors) orNil() error {
	if len(l) == 0 {
		return nil
	}
	return l
}
