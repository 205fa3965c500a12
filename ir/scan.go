package ir

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// scanner reads the textual form byte by byte. The first mistake stops it: from
// then on nothing is accepted and the position stays.
type scanner struct {
	file string
	src  string
	pos  int
	open int // parentheses and brackets open: inside them a line end is a blank
	err  error
}

// here returns the position of the next byte.
func (s *scanner) here() Pos { return s.at(s.pos) }

func (s *scanner) at(pos int) Pos {
	before := s.src[:pos]
	line := strings.Count(before, "\n") + 1
	return Pos{File: s.file, Line: line, Col: pos - strings.LastIndexByte(before, '\n')}
}

// fail keeps the first mistake.
func (s *scanner) fail(pos int, format string, args ...any) {
	if s.err == nil {
		s.err = fmt.Errorf("%s: %w", s.at(pos), fmt.Errorf(format, args...))
	}
}

// want fails because something else than what comes next is needed.
func (s *scanner) want(what string) {
	s.blank()
	rest := s.src[s.pos:]
	if i := strings.IndexAny(rest, " \t\r\n"); i > 0 {
		rest = rest[:i]
	}
	switch {
	case rest == "":
		rest = "the end of the text"
	case rest[0] == '\n' || rest[0] == '\r':
		rest = "the end of the line"
	default:
		rest = strconv.Quote(rest[:min(len(rest), 24)])
	}
	s.fail(s.pos, "%s: want %s", rest, what)
}

// blank skips blanks, and in parentheses line ends and comments too.
func (s *scanner) blank() {
	for s.pos < len(s.src) {
		switch c := s.src[s.pos]; {
		case c == ' ' || c == '\t' || c == '\r':
			s.pos++
		case s.open > 0 && c == '\n':
			s.pos++
		case s.open > 0 && s.atComment():
			s.skipComment()
		default:
			return
		}
	}
}

func (s *scanner) atComment() bool {
	return s.src[s.pos] == ';' || strings.HasPrefix(s.src[s.pos:], "//")
}

func (s *scanner) skipComment() {
	for s.pos < len(s.src) && s.src[s.pos] != '\n' {
		s.pos++
	}
}

// lines skips blanks, comments and line ends; it reports whether text follows.
func (s *scanner) lines() bool {
	for s.err == nil && s.pos < len(s.src) {
		switch c := s.src[s.pos]; {
		case c == ' ' || c == '\t' || c == '\r' || c == '\n':
			s.pos++
		case s.atComment():
			s.skipComment()
		default:
			return true
		}
	}
	return false
}

// endLine requires that nothing but a comment follows on the line; a closing
// brace may.
func (s *scanner) endLine() {
	s.blank()
	if s.err != nil || s.pos == len(s.src) || s.src[s.pos] == '\n' || s.src[s.pos] == '}' || s.atComment() {
		return
	}
	s.want("the end of the line")
}

// accept reads text if it comes next; a word must not go on after it.
func (s *scanner) accept(text string) bool {
	s.blank()
	if s.err != nil || !strings.HasPrefix(s.src[s.pos:], text) {
		return false
	}
	end := s.pos + len(text)
	if isNameByte(text[len(text)-1]) && end < len(s.src) && isNameByte(s.src[end]) {
		return false
	}
	s.pos = end
	switch text {
	case "(", "[":
		s.open++
	case ")", "]":
		s.open = max(s.open-1, 0)
	}
	return true
}

func (s *scanner) expect(text string) {
	if !s.accept(text) {
		s.want(strconv.Quote(text))
	}
}

// peek reports whether c comes next.
func (s *scanner) peek(c byte) bool {
	s.blank()
	return s.err == nil && s.pos < len(s.src) && s.src[s.pos] == c
}

// word reads letters, digits, underscores and dots; "" if there are none.
func (s *scanner) word() string {
	s.blank()
	start := s.pos
	for s.err == nil && s.pos < len(s.src) && isNameByte(s.src[s.pos]) {
		s.pos++
	}
	return s.src[start:s.pos]
}

// name reads a word that is a name.
func (s *scanner) name(what string) string {
	s.blank()
	start := s.pos
	w := s.word()
	if !isName(w) {
		s.pos = start
		s.want(what)
		return ""
	}
	return w
}

// sigil reads a name after a sign: %x, @f.
func (s *scanner) sigil(sign, what string) string {
	if !s.accept(sign) {
		s.want(what)
		return ""
	}
	return s.name(what)
}

// int64 reads an integer in lo..hi.
func (s *scanner) int64(lo, hi int64) int64 {
	s.blank()
	start := s.pos
	sign := ""
	if s.accept("-") {
		sign = "-"
	}
	v, err := strconv.ParseInt(sign+s.word(), 10, 64)
	if err != nil || v < lo || v > hi {
		text := s.src[start:s.pos]
		s.pos = start
		if text == "" || sign == "" && (text[0] < '0' || text[0] > '9') {
			s.want("a number")
			return 0
		}
		s.fail(start, "number %s: want %d to %d", text[:min(len(text), 32)], lo, hi)
		return 0
	}
	return v
}

func (s *scanner) int() int { return int(s.int64(math.MinInt32, math.MaxInt32)) }

// float reads a number of a floating-point type, nan, inf or -inf.
func (s *scanner) float(e Elem) float64 {
	s.blank()
	start := s.pos
	for s.err == nil && s.pos < len(s.src) && s.isFloatByte(start) {
		s.pos++
	}
	text := s.src[start:s.pos]
	size := 32
	if e == F64 {
		size = 64
	}
	v, err := strconv.ParseFloat(text, size)
	if err != nil {
		s.pos = start
		s.want("a number in the range of " + e.String())
		return 0
	}
	if math.IsNaN(v) {
		return math.NaN()
	}
	return v
}

// isFloatByte reports whether the next byte goes on a number that began at start.
func (s *scanner) isFloatByte(start int) bool {
	c := s.src[s.pos]
	if c == '-' || c == '+' {
		last := byte(0)
		if s.pos > start {
			last = s.src[s.pos-1] | 0x20
		}
		return s.pos == start || last == 'e' || last == 'p'
	}
	return isNameByte(c) && c != '_'
}

// intList reads [1, 2, 3].
func (s *scanner) intList() []int {
	s.expect("[")
	var out []int
	for s.err == nil && !s.accept("]") {
		if len(out) > 0 {
			s.expect(",")
		}
		if len(out) == 16 {
			s.fail(s.pos, "a list of more than 16 numbers")
		}
		out = append(out, s.int())
	}
	return out
}
