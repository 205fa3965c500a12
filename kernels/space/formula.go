package space

import "fmt"

// Formula is a number that follows from a configuration, such as the blocks of a launch.
type Formula struct {
	text  string
	bound *Bound
	num   intFunc
	uses  []int
}

// Constant tells whether the formula reads no parameter.
func (f *Formula) Constant() bool { return len(f.uses) == 0 }

// Formula compiles an expression of the space's grammar that is a number.
func (b *Bound) Formula(text string) (*Formula, error) {
	c := compiler{scope: &b.scope}
	n, err := c.compile(text)
	if err != nil {
		return nil, err
	}
	if n.num == nil {
		return nil, fmt.Errorf("%q, column 1: this is a condition, want a number", clip(text))
	}
	return &Formula{text, b, n.num, n.uses}, nil
}

// At is the formula's value at the point that has the values with these indices. A
// division by zero and an overflow are errors.
func (f *Formula) At(index []int) (int64, error) {
	frame := f.bound.frameOf(index)
	v := f.num(&frame)
	if frame.fault {
		return 0, fmt.Errorf("%q divides by zero or overflows for %s", clip(f.text), f.bound.At(index))
	}
	return v, nil
}
