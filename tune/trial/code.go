package trial

import (
	"context"
	"errors"
	"fmt"
)

// Code is what a point was compiled to, as it travels from the process that compiled it
// to the one that runs it.
type Code struct {
	Built  Built  `json:"built"`
	PTX    []byte `json:"ptx"`
	Kernel string `json:"kernel"` // as the module calls it
}

// carrier is a Bench whose compiled points can be run by another process's.
type carrier interface {
	// Code is that of a point that was compiled; nil if it was forgotten.
	Code(point []int) *Code
	// Adopt takes a point's code in place of compiling it.
	Adopt(point []int, c *Code) error
}

// Code implements carrier.
func (k *Kernel) Code(point []int) *Code {
	k.mu.Lock()
	defer k.mu.Unlock()
	p := k.programs[pointKey(point)]
	if p == nil {
		return nil
	}
	return &Code{Built: p.built, PTX: p.ptx, Kernel: p.kernel}
}

// Adopt implements carrier.
func (k *Kernel) Adopt(point []int, c *Code) error {
	if err := k.holds(point); err != nil {
		return err
	}
	if k.Code(point) != nil {
		return nil
	}
	own, err := k.Program(point)
	if err != nil {
		return err
	}
	if own != c.Built.Program {
		return fmt.Errorf("configuration %q: its code is that of other sources or of another kgen", k.Spec.Space.At(point))
	}
	l, err := k.Spec.Launch(point)
	if err != nil {
		return err
	}
	k.keep(pointKey(point), &program{built: c.Built, ptx: c.PTX, kernel: c.Kernel, launch: l})
	return nil
}

// holds refuses what is no point of the space.
func (k *Kernel) holds(point []int) error {
	dims := k.Spec.Space.Dims()
	if len(point) != len(dims) {
		return fmt.Errorf("a point of %d parameters: want %d", len(point), len(dims))
	}
	for i, at := range point {
		if n := dims[i].Len; at < 0 || at >= n {
			return fmt.Errorf("a point whose parameter %d is value %d: want 0 to %d", i, at, n-1)
		}
	}
	return nil
}

// CompileCode is Compile, and returns what Run of another process needs: nil where there
// is nothing to run.
func (p *Pool) CompileCode(ctx context.Context, point []int) (Built, *Code, error) {
	a, err := p.compile(ctx, point, request{Do: "compile", Send: true})
	return a.Built, a.Code, err
}

// adopt has a Bench take the code that came with a request.
func adopt(b Bench, r request) error {
	if r.Code == nil {
		return nil
	}
	c, ok := b.(carrier)
	if !ok {
		return errors.New("this bench takes no code of others")
	}
	return c.Adopt(r.Point, r.Code)
}
