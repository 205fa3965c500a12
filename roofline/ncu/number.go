package ncu

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// notation is how a file writes numbers.
type notation uint8

const (
	point notation = iota + 1 // 1,209,252.43
	comma                     // 1.209.252,43
)

var (
	numeric  = regexp.MustCompile(`^[-+]?[0-9][0-9.,'\x{2019}\x{a0}\x{202f} ]*([eE][-+]?[0-9]+)?$`)
	byPoint  = regexp.MustCompile(`^[-+]?([0-9]{1,3}(,[0-9]{3})+|[0-9]+)(\.[0-9]+)?([eE][-+]?[0-9]+)?$`)
	byComma  = regexp.MustCompile(`^[-+]?([0-9]{1,3}(\.[0-9]{3})+|[0-9]+)(,[0-9]+)?([eE][-+]?[0-9]+)?$`)
	blanks   = strings.NewReplacer("'", "", "\u2019", "", "\u00a0", "", "\u202f", "", " ", "")
	absences = map[string]bool{"": true, "n/a": true, "(!) n/a": true, "no data": true, "nan": true, "-nan": true, "(!) nan": true, "(!) no data": true, "-": true}
)

// absent says whether a value is one of the words for none.
func absent(text string) bool {
	return !isDigits(text) && absences[strings.ToLower(strings.TrimSpace(text))]
}

// isNumeric says whether a value is meant as a number.
func isNumeric(text string) bool { return isDigits(text) || numeric.MatchString(text) }

// isDigits says whether a value is a whole number without separators, as most are: it
// reads the same in every notation.
func isDigits(text string) bool {
	for i := range len(text) {
		if text[i] < '0' || text[i] > '9' {
			return false
		}
	}
	return text != ""
}

// numbers are the first of a file that tell its notation; nil where none does.
type numbers struct {
	neither, notPoint, notComma, either *value
}

// add looks at a value, which may be none that is meant as a number.
func (n *numbers) add(v *value) {
	if n.notComma != nil && isDecimal(v.text) || !isNumeric(v.text) || isDigits(v.text) {
		return
	}
	first := func(of **value) {
		if *of == nil {
			kept := *v
			kept.text, kept.unit = strings.Clone(v.text), strings.Clone(v.unit)
			*of = &kept
		}
	}
	text := blanks.Replace(v.text)
	p, c := byPoint.MatchString(text), byComma.MatchString(text)
	switch {
	case !p && !c:
		first(&n.neither)
	case !p:
		first(&n.notPoint)
	case !c:
		first(&n.notComma)
	case strings.ContainsAny(text, ".,"):
		first(&n.either)
	}
}

// isDecimal says whether a value is digits, a point and digits: it tells at most that
// commas divide no decimals.
func isDecimal(text string) bool {
	whole, part, ok := strings.Cut(text, ".")
	return ok && isDigits(whole) && isDigits(part)
}

// decide finds a file's notation from all its numbers. Where every number reads
// in both ways and to different values, it refuses rather than guess.
func (n *numbers) decide() (notation, error) {
	notPoint, notComma, either := n.notPoint, n.notComma, n.either
	switch {
	case n.neither != nil:
		return 0, n.neither.errorf("number %q: neither 1,234.5 nor 1.234,5", n.neither.text)
	case notPoint != nil && notComma != nil:
		return 0, notPoint.errorf("number %q beside %q in line %d: the file mixes decimal points and commas", notPoint.text, notComma.text, notComma.line)
	case notPoint != nil:
		return comma, nil
	case notComma != nil:
		return point, nil
	case either != nil:
		return 0, either.errorf("number %q: may be a thousand times as much, and no other number of the file tells: export with --print-units base in the C locale", either.text)
	}
	return point, nil
}

// parse reads a number in the notation.
func (n notation) parse(text string) (float64, error) {
	if isDigits(text) || n == point && isDecimal(text) {
		return strconv.ParseFloat(text, 64)
	}
	text = blanks.Replace(text)
	if n == comma {
		text = strings.ReplaceAll(strings.ReplaceAll(text, ".", ""), ",", ".")
	} else {
		text = strings.ReplaceAll(text, ",", "")
	}
	v, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return 0, fmt.Errorf("number %q: want a finite one", text)
	}
	return v, nil
}

// dimensions are what units measure; a value is kept in bytes, microseconds, hertz or
// as it is.
type dimension uint8

const (
	plain dimension = iota + 1
	data
	duration
	frequency
	rate // bytes a second
	percent
)

type unit struct {
	dim    dimension
	factor float64
}

// units are the spellings that versions of Nsight Compute and its GUI use, in
// small letters.
var units = map[string]unit{
	"":     {0, 1}, // the metric's base unit
	"byte": {data, 1}, "bytes": {data, 1}, "b": {data, 1}, "kbyte": {data, 1e3}, "mbyte": {data, 1e6}, "gbyte": {data, 1e9}, "tbyte": {data, 1e12},
	"kib": {data, 1 << 10}, "mib": {data, 1 << 20}, "gib": {data, 1 << 30}, "kibyte": {data, 1 << 10}, "mibyte": {data, 1 << 20}, "gibyte": {data, 1 << 30},
	"ns": {duration, 1e-3}, "nsecond": {duration, 1e-3}, "us": {duration, 1}, "usecond": {duration, 1}, "μs": {duration, 1}, "µs": {duration, 1},
	"ms": {duration, 1e3}, "msecond": {duration, 1e3}, "s": {duration, 1e6}, "second": {duration, 1e6},
	"hz": {frequency, 1}, "khz": {frequency, 1e3}, "mhz": {frequency, 1e6}, "ghz": {frequency, 1e9},
	"cycle/second": {frequency, 1}, "cycle/s": {frequency, 1}, "cycle/nsecond": {frequency, 1e9}, "cycle/ns": {frequency, 1e9}, "cycle/usecond": {frequency, 1e6}, "cycle/us": {frequency, 1e6},
	"byte/second": {rate, 1}, "byte/s": {rate, 1}, "kbyte/second": {rate, 1e3}, "kbyte/s": {rate, 1e3}, "mbyte/second": {rate, 1e6}, "mbyte/s": {rate, 1e6},
	"gbyte/second": {rate, 1e9}, "gbyte/s": {rate, 1e9}, "tbyte/second": {rate, 1e12}, "tbyte/s": {rate, 1e12}, "byte/nsecond": {rate, 1e9}, "byte/ns": {rate, 1e9},
	"%":    {percent, 1},
	"inst": {plain, 1}, "kinst": {plain, 1e3}, "minst": {plain, 1e6}, "ginst": {plain, 1e9}, "sector": {plain, 1}, "ksector": {plain, 1e3}, "msector": {plain, 1e6},
	"cycle": {plain, 1}, "kcycle": {plain, 1e3}, "mcycle": {plain, 1e6}, "request": {plain, 1}, "warp": {plain, 1}, "block": {plain, 1}, "thread": {plain, 1},
	"register/thread": {plain, 1}, "op": {plain, 1}, "k": {plain, 1e3}, "m": {plain, 1e6}, "g": {plain, 1e9},
}

// base are the units that --print-units base gives without saying so.
var base = map[dimension]float64{plain: 1, data: 1, duration: 1e-3, frequency: 1, rate: 1, percent: 1}

// convert brings a number to the base of a dimension: microseconds, bytes, hertz.
func convert(v float64, spelled string, dim dimension) (float64, error) {
	u, ok := units[strings.ToLower(strings.TrimSpace(spelled))]
	switch {
	case !ok:
		return 0, fmt.Errorf("unit %q: unknown", spelled)
	case u.dim == 0:
		return v * base[dim], nil
	case u.dim != dim:
		return 0, fmt.Errorf("unit %q: of another kind than the metric", spelled)
	}
	return v * u.factor, nil
}
