package ptx

import "strings"

// token is a kind of token. Punctuation is its own byte.
type token uint8

const (
	tokEOF    token = 0
	tokIdent  token = 1 // name, %name, $name, _
	tokDot    token = 2 // .name, with any ::parts
	tokNumber token = 3
	tokString token = 4 // text without the quotes
	tokShl    token = 5 // <<
	tokShr    token = 6 // >>
	tokLE     token = 7
	tokGE     token = 8
	tokEQ     token = 9
	tokNE     token = 10
	tokAndAnd token = 11
	tokOrOr   token = 12
	tokDwarf  token = 14 // a whole @@DWARF line
)

// lexer cuts PTX text into tokens; tok, text and pos are the current one. It
// is always one token ahead of the parser, never more.
type lexer struct {
	file string
	src  string
	off  int // of the next byte
	line int32
	bol  int // offset of the line's first byte

	tok   token
	start int    // offset of the token
	text  string // of identifiers, dotted words (without the dot), numbers and strings
	pos   Pos
}

// Classes of bytes.
const (
	isLetter = 1 << iota // may start a name: letters
	isDigit
	isMark // $ % _: may start a name too
)

var byteClass = func() (c [256]uint8) {
	for b := 'a'; b <= 'z'; b++ {
		c[b], c[b-'a'+'A'] = isLetter, isLetter
	}
	for b := '0'; b <= '9'; b++ {
		c[b] = isDigit
	}
	c['$'], c['%'], c['_'] = isMark, isMark, isMark
	return c
}()

// inWord says whether a byte may continue a name.
func inWord(b byte) bool { return byteClass[b] != 0 && b != '%' }

func (l *lexer) here() Pos { return Pos{l.line, int32(l.off-l.bol) + 1} }

// skip moves over blanks and comments.
func (l *lexer) skip() {
	for l.off < len(l.src) {
		switch c := l.src[l.off]; {
		case c == '\n':
			l.off++
			l.line++
			l.bol = l.off
		case c == ' ' || c == '\t' || c == '\r' || c == '\f' || c == '\v':
			l.off++
		case c == '/' && strings.HasPrefix(l.src[l.off:], "//"):
			n := strings.IndexByte(l.src[l.off:], '\n')
			if n < 0 {
				n = len(l.src) - l.off
			}
			l.off += n
		case c == '/' && strings.HasPrefix(l.src[l.off:], "/*"):
			l.skipBlockComment()
		case c == 0 && strings.Trim(l.src[l.off:], "\x00") == "":
			l.off = len(l.src) // a C string's end
		default:
			return
		}
	}
}

func (l *lexer) skipBlockComment() {
	n := strings.Index(l.src[l.off+2:], "*/")
	if n < 0 {
		l.fail(l.here(), "comment without its end: want */")
	}
	end := l.off + 2 + n + 2
	l.countLines(l.off, end)
	l.off = end
}

// countLines moves line and bol over the newlines in src[from:to].
func (l *lexer) countLines(from, to int) {
	for i := from; i < to; i++ {
		if l.src[i] == '\n' {
			l.line++
			l.bol = i + 1
		}
	}
}

// next reads the next token.
func (l *lexer) next() {
	l.skip()
	l.start, l.pos = l.off, l.here()
	if l.off >= len(l.src) {
		l.tok, l.text = tokEOF, ""
		return
	}
	c := l.src[l.off]
	switch {
	case c == '%' && (l.off+1 == len(l.src) || !inWord(l.src[l.off+1])): // the operator: no name is so short
		l.punct(c)
	case byteClass[c]&(isLetter|isMark) != 0:
		l.off++
		l.word()
		l.tok, l.text = tokIdent, l.src[l.start:l.off]
	case c == '.' && l.off+1 < len(l.src) && inWord(l.src[l.off+1]):
		l.dotted()
	case byteClass[c] == isDigit:
		l.digits()
	case c == '"':
		l.string()
	case c == '@' && strings.HasPrefix(l.src[l.off:], "@@"):
		n := strings.IndexByte(l.src[l.off:], '\n')
		if n < 0 {
			n = len(l.src) - l.off
		}
		l.off += n
		l.tok, l.text = tokDwarf, strings.TrimRight(l.src[l.start:l.off], " \t\r")
	default:
		l.punct(c)
	}
}

func (l *lexer) word() {
	for l.off < len(l.src) && inWord(l.src[l.off]) {
		l.off++
	}
}

// dotted reads `.name` or `.name::name...`, and `.sp::2:4`.
func (l *lexer) dotted() {
	l.off++
	l.word()
	for l.off+2 < len(l.src) && l.src[l.off] == ':' && l.src[l.off+1] == ':' && inWord(l.src[l.off+2]) {
		l.off += 2
		l.word()
	}
	if l.off+1 < len(l.src) && l.src[l.off] == ':' && byteClass[l.src[l.off+1]] == isDigit &&
		strings.HasPrefix(l.src[l.start:l.off], ".sp::") {
		l.off++
		l.word()
	}
	l.tok, l.text = tokDot, l.src[l.start+1:l.off]
}

// digits reads a number: digits with what belongs to them: radix prefix, suffix, point
// and exponent. Whether they make sense is the parser's affair.
func (l *lexer) digits() {
	decimal := true
	if l.src[l.off] == '0' && l.off+1 < len(l.src) {
		switch l.src[l.off+1] {
		case 'x', 'X', 'f', 'F', 'd', 'D', 'b', 'B':
			decimal = false
		}
	}
	for l.off < len(l.src) {
		c := l.src[l.off]
		exponentSign := decimal && (c == '+' || c == '-') && l.off > l.start &&
			(l.src[l.off-1] == 'e' || l.src[l.off-1] == 'E')
		if !(inWord(c) || decimal && c == '.' || exponentSign) {
			break
		}
		l.off++
	}
	l.tok, l.text = tokNumber, l.src[l.start:l.off]
}

func (l *lexer) string() {
	rest := l.src[l.off+1:]
	n := strings.IndexAny(rest, "\"\n")
	if n < 0 || rest[n] == '\n' {
		l.fail(l.pos, "string without its end: want \" on the same line")
	}
	l.off += n + 2
	l.tok, l.text = tokString, rest[:n]
}

func (l *lexer) punct(c byte) {
	if l.off+1 < len(l.src) {
		if t := pair(c, l.src[l.off+1]); t != 0 {
			l.off += 2
			l.tok, l.text = t, l.src[l.start:l.off]
			return
		}
	}
	if strings.IndexByte("()[]{}<>,;:=+-*/%&|^!~?@.", c) < 0 {
		l.fail(l.pos, "byte %q: no PTX begins with it", c)
	}
	l.off++
	l.tok, l.text = token(c), l.src[l.start:l.off]
}

func pair(a, b byte) token {
	switch {
	case a == '<' && b == '<':
		return tokShl
	case a == '>' && b == '>':
		return tokShr
	case a == '<' && b == '=':
		return tokLE
	case a == '>' && b == '=':
		return tokGE
	case a == '=' && b == '=':
		return tokEQ
	case a == '!' && b == '=':
		return tokNE
	case a == '&' && b == '&':
		return tokAndAnd
	case a == '|' && b == '|':
		return tokOrOr
	}
	return 0
}
