package ptx

import "strings"

// Member is a component of a vector ("x" to "w", "r" to "a"), a selector of a
// video instruction ("b0", "h10", "b3210"), or "unified" after an address; 0
// is none. The low 12 bits are a selector's octal digits, bits 12 and 13 are
// how many less one, bit 14 is set for h and bit 15 in every selector.
type Member uint16

// unified is the member of an address.
const unified Member = 9

// memberNames are the members that are no selectors.
const memberNames = "xyzwrgba"

const (
	memberHalf     Member = 1 << 14
	memberSelector Member = 1 << 15
)

// parseMember reads a component or a selector.
func parseMember(s string) (Member, bool) {
	if len(s) == 1 {
		i := strings.IndexByte(memberNames, s[0])
		return Member(i + 1), i >= 0
	}
	if len(s) < 2 || len(s) > 5 || s[0] != 'b' && s[0] != 'h' {
		return 0, false
	}
	m := memberSelector | Member(len(s)-2)<<12
	if s[0] == 'h' {
		m |= memberHalf
	}
	for i := range len(s) - 1 {
		c := s[1+i]
		if c < '0' || c > '7' {
			return 0, false
		}
		m |= Member(c-'0') << (3 * i)
	}
	return m, true
}

// String is the member without its dot.
func (m Member) String() string {
	switch {
	case m == 0:
		return ""
	case m == unified:
		return "unified"
	case m&memberSelector == 0:
		return memberNames[m-1 : m]
	}
	text := []byte{'b'}
	if m&memberHalf != 0 {
		text[0] = 'h'
	}
	for i := range int(m>>12&3) + 1 {
		text = append(text, '0'+byte(m>>(3*i)&7))
	}
	return string(text)
}

// Component is the index of a vector component, or -1.
func (m Member) Component() int {
	if m == 0 || m >= unified {
		return -1
	}
	return int(m-1) % 4
}
