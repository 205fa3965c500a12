package reproduce

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// quantity is a number with how far it may be off: a printed one by half a unit
// of its last digit, one computed from printed ones by what those are.
type quantity struct{ value, half float64 }

// exact is a number that is no rounded one: a size, a count, a GPU's figure.
func exact(v float64) quantity { return quantity{value: v} }

// printed reads a number as a publication prints it.
func printed(text string) (quantity, error) {
	v, err := strconv.ParseFloat(text, 64)
	if err != nil || math.IsNaN(v) || math.IsInf(v, 0) {
		return quantity{}, fmt.Errorf("number %q: want digits", text)
	}
	_, decimals, _ := strings.Cut(text, ".")
	return quantity{v, 0.5 * math.Pow10(-len(decimals))}, nil
}

func (q quantity) times(r quantity) quantity {
	return quantity{q.value * r.value, math.Abs(q.value)*r.half + math.Abs(r.value)*q.half}
}

// over divides by a quantity that is not 0.
func (q quantity) over(r quantity) quantity {
	v := q.value / r.value
	return quantity{v, q.half/math.Abs(r.value) + math.Abs(v)*r.half/math.Abs(r.value)}
}

func (q quantity) scaled(by float64) quantity { return q.times(exact(by)) }

// agrees says whether one number can be behind both. A thousandth of what is
// allowed is for the arithmetic's own rounding.
func (q quantity) agrees(r quantity) bool {
	allowed := q.half + r.half
	return math.Abs(q.value-r.value) <= allowed*1.001+1e-12*math.Abs(q.value)
}
