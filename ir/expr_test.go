package ir_test

import (
	"math"
	"math/big"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	_ "github.com/kgen-dev/kgen/internal/fixedseed" // of rapid
	"github.com/kgen-dev/kgen/ir"
)

var symbols = []*ir.Value{{Name: "a", Type: ir.ViewOf(ir.F32, ir.Dim{Sym: "M"}, ir.Dim{Sym: "N"})}}

// exact evaluates with big integers; nil where there is no value.
func exact(x ir.Expr, env map[string]int64) *big.Int {
	switch x.Op {
	case ir.ExprConst:
		return big.NewInt(x.Val)
	case ir.ExprSym:
		return big.NewInt(env[x.Name])
	}
	a, b := exact(*x.X, env), exact(*x.Y, env)
	if a == nil || b == nil {
		return nil
	}
	v := new(big.Int)
	switch x.Op {
	case ir.ExprAdd:
		v.Add(a, b)
	case ir.ExprSub:
		v.Sub(a, b)
	case ir.ExprMul:
		v.Mul(a, b)
	case ir.ExprDiv, ir.ExprCeilDiv:
		if a.Sign() < 0 || b.Sign() <= 0 {
			return nil
		}
		rest := new(big.Int)
		v.QuoRem(a, b, rest)
		if x.Op == ir.ExprCeilDiv && rest.Sign() > 0 {
			v.Add(v, big.NewInt(1))
		}
	case ir.ExprMin, ir.ExprMax:
		v = a
		if (a.Cmp(b) < 0) != (x.Op == ir.ExprMin) {
			v = b
		}
	}
	if !v.IsInt64() {
		return nil
	}
	return v
}

func TestExprEval(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x := drawExpr(t, symbols, 5)
		sizes := rapid.OneOf(rapid.Int64Range(0, 100), rapid.Int64Range(1<<30, 1<<31), rapid.Int64Range(math.MaxInt64-9, math.MaxInt64))
		env := map[string]int64{"M": sizes.Draw(t, "M"), "N": sizes.Draw(t, "N")}
		v, err := x.Eval(func(name string) (int64, bool) { n, ok := env[name]; return n, ok })
		if want := exact(x, env); want == nil {
			require.Error(t, err)
		} else {
			require.NoError(t, err)
			require.Equal(t, want.Int64(), v, x.String())
		}
	})
}

func TestExprOverflow(t *testing.T) {
	huge := ir.Lit(math.MaxInt64)
	for _, x := range []ir.Expr{
		huge.Plus(ir.Lit(1)), ir.Lit(math.MinInt64).Minus(ir.Lit(1)), huge.Times(ir.Lit(2)),
		ir.Lit(math.MinInt64).Times(ir.Lit(-1)), ir.Lit(1).Div(ir.Lit(0)), ir.Lit(-1).CeilDiv(ir.Lit(2)), ir.Sym("Q"),
	} {
		_, err := x.Eval(nil)
		require.Error(t, err, x.String())
	}
	require.Equal(t, ir.Lit(3), ir.Lit(5).CeilDiv(ir.Lit(2)), "constants fold")
}

func TestExprText(t *testing.T) {
	m, n := ir.Sym("M"), ir.Sym("N")
	for want, x := range map[string]ir.Expr{
		"M - (N - 1)":             m.Minus(n.Minus(ir.Lit(1))),
		"M - N - 1":               m.Minus(n).Minus(ir.Lit(1)),
		"(M + 1) * N":             m.Plus(ir.Lit(1)).Times(n),
		"M / (N * 2)":             m.Div(n.Times(ir.Lit(2))),
		"M / N * 2":               m.Div(n).Times(ir.Lit(2)),
		"max(ceildiv(M, 64), -1)": ir.MaxOf(m.CeilDiv(ir.Lit(64)), ir.Lit(-1)),
		"M * (-3)":                m.Times(ir.Lit(-3)),
	} {
		require.Equal(t, want, x.String())
	}
}

func TestExprEqual(t *testing.T) {
	m := ir.Sym("M")
	require.True(t, m.CeilDiv(ir.Lit(64)).Equal(ir.Sym("M").CeilDiv(ir.Lit(64))))
	require.False(t, m.CeilDiv(ir.Lit(64)).Equal(m.Div(ir.Lit(64))))
	require.False(t, m.Plus(ir.Lit(1)).Equal(m.Plus(ir.Lit(2))))
	require.False(t, m.Equal(ir.Sym("N")))
}
