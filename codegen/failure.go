package codegen

import (
	"fmt"

	"github.com/kgen-dev/kgen/ir"
)

// failure is what a pass panics with when a program asks for something that is not
// supported: it may be deep inside nested builders. state.run makes it an error again.
type failure struct{ err error }

// unsupported says that an operation asks for too much.
func unsupported(o *ir.Op, format string, args ...any) failure {
	return failure{fmt.Errorf("%s: %s: %w: %w", o.Pos, o.Code, ErrUnsupported, fmt.Errorf(format, args...))}
}
