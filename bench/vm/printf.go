package vm

import (
	"math"
	"strconv"
	"strings"
)

// Bounds on what a block may print, and on the width and precision of one
// conversion.
const (
	maxPrinted = 1 << 16
	maxWidth   = 1 << 10
)

// printf is vprintf(format, arguments): the arguments lie one after the other,
// each at its own alignment. It gives back how many the format takes, or -1 of no
// format, as CUDA's does.
func printf(w *warp, in *inst, lanes uint32) {
	for l := lanes; l != 0; l &= l - 1 {
		lane := firstLane(l)
		from := w.argument(in, 0, lane)
		if from == 0 {
			w.result(in, lane, math.MaxUint64)
			continue
		}
		f := formatter{w: w, lane: lane, at: w.argument(in, 1, lane)}
		f.format(w.text(lane, from))
		w.result(in, lane, uint64(f.taken))
		if w.b.printed.Len() < maxPrinted {
			w.b.printed.WriteString(f.out.String())
		}
	}
}

// formatter fills in a C format, as the host's printf does for CUDA's.
type formatter struct {
	w     *warp
	lane  int
	at    uint64 // the next argument
	taken int
	out   strings.Builder
}

// fieldSpec is what stands between % and the letter.
type fieldSpec struct {
	minus, plus, space, alt, zero bool

	width     int
	precision int // -1 if there is none
	bytes     int // of an integer
}

// next is the next argument; zero where there is no memory.
func (f *formatter) next(size uint64) uint64 {
	f.at = (f.at + size - 1) &^ (size - 1)
	p := f.w.genericBytes(f.lane, f.at, int(size))
	f.at += size
	f.taken++
	if p == nil {
		return 0
	}
	return readElement(p, int(size))
}

func (f *formatter) format(format string) {
	for format != "" {
		i := strings.IndexByte(format, '%')
		if i < 0 {
			f.out.WriteString(format)
			return
		}
		f.out.WriteString(format[:i])
		c, n := f.spec(format[i+1:])
		if i += 1 + n; i == len(format) {
			return // % and no letter
		}
		if !f.convert(format[i], c) {
			f.out.WriteString(format[i-n-1 : i+1])
		}
		format = format[i+1:]
	}
}

// fieldSpec reads flags, width, precision and size, and says how long they are.
func (f *formatter) spec(s string) (c fieldSpec, n int) {
	c.precision, c.bytes = -1, 4
	flags := map[byte]*bool{'-': &c.minus, '+': &c.plus, ' ': &c.space, '#': &c.alt, '0': &c.zero, '\'': new(bool)}
	for n < len(s) && flags[s[n]] != nil {
		*flags[s[n]] = true
		n++
	}
	c.width, n = f.number(s, n)
	if c.width < 0 {
		c.minus, c.width = true, -c.width
	}
	if n < len(s) && s[n] == '.' {
		c.precision, n = f.number(s, n+1)
		c.precision = max(c.precision, -1)
	}
	for n < len(s) && strings.IndexByte("hlLqjzt", s[n]) >= 0 {
		if s[n] == 'h' {
			c.bytes = max(c.bytes/2, 1)
		} else {
			c.bytes = 8
		}
		n++
	}
	return c, n
}

// number reads a width or a precision at s[n:], which * takes from the
// arguments, and says where it ends.
func (f *formatter) number(s string, n int) (v, end int) {
	if n < len(s) && s[n] == '*' {
		return int(min(max(int32(f.next(4)), -maxWidth), maxWidth)), n + 1
	}
	for ; n < len(s) && '0' <= s[n] && s[n] <= '9'; n++ {
		v = min(10*v+int(s[n]-'0'), maxWidth)
	}
	return v, n
}

// convert writes one conversion; false if C has none of that letter.
func (f *formatter) convert(letter byte, c fieldSpec) bool {
	switch letter {
	case '%':
		f.out.WriteByte('%')
	case 'd', 'i':
		v := int64(extend(f.next(uint64(max(c.bytes, 4))), 8*c.bytes))
		magnitude := uint64(v)
		if v < 0 {
			magnitude = -magnitude
		}
		f.integer(c, c.sign(v < 0), magnitude, 10)
	case 'u':
		f.integer(c, "", f.unsigned(c), 10)
	case 'o':
		f.integer(c, "", f.unsigned(c), 8)
	case 'x', 'X':
		v, prefix := f.unsigned(c), ""
		if c.alt && v != 0 {
			prefix = "0x"
		}
		from := f.out.Len()
		f.integer(c, prefix, v, 16)
		f.upper(letter == 'X', from)
	case 'c':
		c.zero = false
		f.pad(c, "", string([]byte{byte(f.next(4))}))
	case 's':
		s := f.w.text(f.lane, f.next(8))
		if c.precision >= 0 && c.precision < len(s) {
			s = s[:c.precision]
		}
		c.zero = false
		f.pad(c, "", s)
	case 'p':
		c.zero = false
		if v := f.next(8); v != 0 {
			f.pad(c, "", "0x"+strconv.FormatUint(v, 16))
		} else {
			f.pad(c, "", "(nil)")
		}
	case 'f', 'F', 'e', 'E', 'g', 'G', 'a', 'A':
		from := f.out.Len()
		f.float(c, letter|0x20, math.Float64frombits(f.next(8)))
		f.upper(letter < 'a', from)
	default:
		return false
	}
	return true
}

// upper makes capitals of what was written since, if it shall.
func (f *formatter) upper(yes bool, from int) {
	if !yes {
		return
	}
	s := f.out.String()
	f.out.Reset()
	f.out.WriteString(s[:from] + strings.ToUpper(s[from:]))
}

func (f *formatter) unsigned(c fieldSpec) uint64 {
	v := f.next(uint64(max(c.bytes, 4)))
	return v << (64 - 8*c.bytes) >> (64 - 8*c.bytes)
}

func (c fieldSpec) sign(negative bool) string {
	switch {
	case negative:
		return "-"
	case c.plus:
		return "+"
	case c.space:
		return " "
	}
	return ""
}

func (f *formatter) integer(c fieldSpec, prefix string, v uint64, base int) {
	digits := strconv.FormatUint(v, base)
	if c.precision == 0 && v == 0 {
		digits = ""
	}
	if c.precision >= 0 {
		c.zero = false
		digits = strings.Repeat("0", max(c.precision-len(digits), 0)) + digits
	}
	if base == 8 && c.alt && !strings.HasPrefix(digits, "0") {
		digits = "0" + digits
	}
	f.pad(c, prefix, digits)
}

func (f *formatter) float(c fieldSpec, letter byte, v float64) {
	sign, v := c.sign(math.Signbit(v)), math.Abs(v)
	switch {
	case v != v:
		c.zero = false
		f.pad(c, sign, "nan")
	case math.IsInf(v, 0):
		c.zero = false
		f.pad(c, sign, "inf")
	case letter == 'a':
		f.pad(c, sign+"0x", hexadecimal(c, v))
	case letter == 'g':
		f.pad(c, sign, general(c, v))
	default:
		if c.precision < 0 {
			c.precision = 6
		}
		f.pad(c, sign, c.point(strconv.FormatFloat(v, letter, c.precision, 64)))
	}
}

// point adds the point that # asks for to digits without one.
func (c fieldSpec) point(digits string) string {
	if !c.alt || strings.Contains(digits, ".") {
		return digits
	}
	if i := strings.IndexAny(digits, "ep"); i >= 0 {
		return digits[:i] + "." + digits[i:]
	}
	return digits + "."
}

// general is %g: as many significant digits as the precision says, and an
// exponent only where it is below -4 or the precision isn't above it.
func general(c fieldSpec, v float64) string {
	digits := c.precision
	switch {
	case digits < 0:
		digits = 6
	case digits == 0:
		digits = 1
	}
	s := strconv.FormatFloat(v, 'e', digits-1, 64)
	mantissa, e, _ := strings.Cut(s, "e")
	exponent, _ := strconv.Atoi(e)
	if -4 <= exponent && exponent < digits {
		mantissa, e = strconv.FormatFloat(v, 'f', digits-1-exponent, 64), ""
	} else {
		e = "e" + e
	}
	if c.alt {
		return c.point(mantissa + e)
	}
	if strings.Contains(mantissa, ".") {
		mantissa = strings.TrimRight(strings.TrimRight(mantissa, "0"), ".")
	}
	return mantissa + e
}

// hexadecimal is %a without 0x: Go's, but for zeros in front of the exponent.
func hexadecimal(c fieldSpec, v float64) string {
	mantissa, e, _ := strings.Cut(strconv.FormatFloat(v, 'x', c.precision, 64)[2:], "p")
	digits := strings.TrimLeft(e[1:], "0")
	if digits == "" {
		digits = "0"
	}
	return c.point(mantissa + "p" + e[:1] + digits)
}

// pad writes a prefix (sign, 0x) and digits, filled up to the width.
func (f *formatter) pad(c fieldSpec, prefix, digits string) {
	n := max(c.width-len(prefix)-len(digits), 0)
	switch {
	case c.minus:
		f.out.WriteString(prefix + digits + strings.Repeat(" ", n))
	case c.zero:
		f.out.WriteString(prefix + strings.Repeat("0", n) + digits)
	default:
		f.out.WriteString(strings.Repeat(" ", n) + prefix + digits)
	}
}
