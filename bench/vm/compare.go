package vm

import (
	"math"

	"github.com/kgen-dev/kgen/codegen/ptx"
)

// comparison is a comparison's lane function; nil where PTX has none of the
// name for the type.
func comparison(cmp string, t ptx.Type, ftz bool) laneFn {
	if ft, ok := floatOf(t); ok && !ft.packed {
		return floatComparison(cmp, ft, ftz)
	}
	n := t.Bits()
	signed := t.Signed()
	get := func(v uint64) int64 {
		if signed {
			return extend(v, n)
		}
		return int64(v ^ 1<<63) // order of unsigned values
	}
	switch cmp {
	case "eq":
		return func(a, b, _ uint64) uint64 { return truth(a == b) }
	case "ne":
		return func(a, b, _ uint64) uint64 { return truth(a != b) }
	case "lt", "lo":
		return func(a, b, _ uint64) uint64 { return truth(get(a) < get(b)) }
	case "le", "ls":
		return func(a, b, _ uint64) uint64 { return truth(get(a) <= get(b)) }
	case "gt", "hi":
		return func(a, b, _ uint64) uint64 { return truth(get(a) > get(b)) }
	case "ge", "hs":
		return func(a, b, _ uint64) uint64 { return truth(get(a) >= get(b)) }
	}
	return nil
}

func truth(b bool) uint64 {
	if b {
		return 1
	}
	return 0
}

func floatComparison(cmp string, t floatType, ftz bool) laneFn {
	var f func(x, y float64) bool
	nan := func(x, y float64) bool { return x != x || y != y }
	switch cmp {
	case "eq":
		f = func(x, y float64) bool { return x == y }
	case "ne":
		f = func(x, y float64) bool { return x != y && !nan(x, y) }
	case "lt":
		f = func(x, y float64) bool { return x < y }
	case "le":
		f = func(x, y float64) bool { return x <= y }
	case "gt":
		f = func(x, y float64) bool { return x > y }
	case "ge":
		f = func(x, y float64) bool { return x >= y }
	case "equ":
		f = func(x, y float64) bool { return x == y || nan(x, y) }
	case "neu":
		f = func(x, y float64) bool { return x != y }
	case "ltu":
		f = func(x, y float64) bool { return !(x >= y) }
	case "leu":
		f = func(x, y float64) bool { return !(x > y) }
	case "gtu":
		f = func(x, y float64) bool { return !(x <= y) }
	case "geu":
		f = func(x, y float64) bool { return !(x < y) }
	case "num":
		f = func(x, y float64) bool { return !nan(x, y) }
	case "nan":
		f = nan
	default:
		return nil
	}
	return func(a, b, _ uint64) uint64 {
		if ftz {
			a, b = t.flush(a), t.flush(b)
		}
		return truth(f(t.value(a), t.value(b)))
	}
}

// property is testp.
func property(name string, t floatType) func(uint64) bool {
	least := 0x1p-1022
	if !t.wide {
		least = t.f.MinNormal()
	}
	return func(v uint64) bool {
		x := t.value(v)
		switch name {
		case "finite":
			return finite(x)
		case "infinite":
			return math.IsInf(x, 0)
		case "number":
			return x == x
		case "notanumber":
			return x != x
		case "normal":
			return finite(x) && (math.Abs(x) >= least || x == 0) // PTX counts zero as normal
		case "subnormal":
			return x != 0 && math.Abs(x) < least
		}
		return false
	}
}
