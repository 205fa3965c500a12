package tune

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kgen-dev/kgen/codegen/nvrtc/nvrtctest"
	"github.com/kgen-dev/kgen/tune/store"
	"github.com/kgen-dev/kgen/tune/trial"
)

// meeting checks nothing before as many first checks wait as are to meet; wrong says which
// configurations it finds wrong.
type meeting struct {
	*Kernel
	meet    int
	wrong   func(point []int) bool
	waiting atomic.Int32
	met     chan struct{}
	again   atomic.Int32
	checked atomic.Int32
}

func (m *meeting) Run(ctx context.Context, point []int, samples int) (trial.Ran, error) {
	if samples == trial.Again {
		m.again.Add(1)
		return trial.Ran{Outcome: store.Correct, Verified: true, Seconds: 1}, nil
	}
	m.checked.Add(1)
	if int(m.waiting.Add(1)) == m.meet {
		close(m.met)
	}
	select {
	case <-m.met:
	case <-time.After(time.Minute):
		return trial.Ran{}, errors.New("the leaders are not checked beside each other")
	}
	if m.wrong != nil && m.wrong(point) {
		return trial.Ran{Outcome: store.Correctness, Error: "wrong", Seconds: 1}, nil
	}
	return trial.Ran{Outcome: store.Correct, Verified: true, Seconds: 1}, nil
}

func meet(t *testing.T, n int) (Options, *meeting) {
	t.Helper()
	o := testOptions(t, t.TempDir())
	o.Configs, o.Top = 100, n
	k, err := NewKernel(t.Context(), o, nil)
	require.NoError(t, err)
	m := &meeting{Kernel: k, meet: n, met: make(chan struct{})}
	o.Trials = m
	return o, m
}

// All leaders are under way at a time, and no more is checked than are reported.
func TestLeadersAreCheckedBesideEachOther(t *testing.T) {
	o, m := meet(t, 5)
	r := run(t, o)
	require.Len(t, r.Best, 5)
	for _, b := range r.Best {
		require.True(t, b.Verified)
	}
	require.EqualValues(t, 5, m.checked.Load())
	require.EqualValues(t, 1, m.again.Load())
	require.InDelta(t, 6, r.Seconds["verify"], 1e-9)

	// Started again it checks nothing.
	again := run(t, o)
	require.Equal(t, withoutPaths(t, r), withoutPaths(t, again))
	require.EqualValues(t, 5, m.checked.Load())
	require.EqualValues(t, 1, m.again.Load())
	require.InDelta(t, 6, again.Seconds["verify"], 1e-9)
}

// Those that are wrong have as many stand in for them as one after the other would, in
// order, whichever ends first.
func TestOthersStandInForWrongLeaders(t *testing.T) {
	o, _ := meet(t, 6)
	order := run(t, o).Best
	o, m := meet(t, 4)
	m.wrong = func(point []int) bool {
		c, err := m.config(point)
		require.NoError(t, err)
		return c.Equal(order[0].Config) || c.Equal(order[2].Config)
	}
	r := run(t, o)
	require.Len(t, r.Wrong, 2)
	require.Equal(t, []Best{order[1], order[3], order[4], order[5]}, r.Best)
	require.EqualValues(t, 6, m.checked.Load())
	require.EqualValues(t, 1, m.again.Load())
}

// With slots of others as many are compiled at a time as those say by then, not as this
// machine has cores.
func TestSlotsMayGrow(t *testing.T) {
	var slots atomic.Int64
	slots.Store(1)
	var under, most atomic.Int64
	n, err := inOrder(t.Context(), 12, func() int { return int(slots.Load()) }, func() bool { return true }, func(_ context.Context, i int) error {
		if now := under.Add(1); now > most.Load() {
			most.Store(now)
		}
		defer under.Add(-1)
		if i == 3 {
			slots.Store(8)
		}
		for deadline := time.Now().Add(time.Minute); i > 3 && i < 12 && most.Load() < 8; {
			if time.Now().After(deadline) {
				return errors.New("the slots are not used")
			}
			time.Sleep(time.Millisecond)
		}
		return nil
	})
	require.NoError(t, err)
	require.Equal(t, 12, n)
	require.EqualValues(t, 8, most.Load())

	n, err = inOrder(t.Context(), 12, func() int { return 3 }, func() bool { return true }, func(ctx context.Context, i int) error {
		if i == 5 {
			return errors.New("the end")
		}
		return nil
	})
	require.EqualError(t, err, "the end")
	require.Less(t, n, 12)
	begun := 0
	n, err = inOrder(t.Context(), 12, func() int { return 1 }, func() bool { return begun < 4 }, func(context.Context, int) error { begun++; return nil })
	require.NoError(t, err)
	require.Equal(t, 4, n)
}

// What one process compiled another checks as it is, and code of another source it does not.
func TestCodeTravels(t *testing.T) {
	o := testOptions(t, t.TempDir())
	o.Toolchain = Toolchain{NVRTC: nvrtctest.Compiler(t)}
	one, err := NewKernel(t.Context(), o, nil)
	require.NoError(t, err)
	var point []int
	for c := range one.space.All() {
		point = pointOf(c)
		break
	}
	require.Nil(t, one.Code(point))
	built, err := one.Compile(t.Context(), point)
	require.NoError(t, err)
	require.Empty(t, built.Outcome, built.Error)
	code := one.Code(point)
	require.Equal(t, built, code.Built)
	require.Contains(t, string(code.PTX), ".version")

	other, err := NewKernel(t.Context(), o, nil)
	require.NoError(t, err)
	for name, c := range map[string]struct {
		code    trial.Code
		outcome store.Outcome
		says    string
	}{
		"as it was sent": {*code, store.Correct, ""},
		"nonsense":       {trial.Code{Built: built, PTX: []byte("nonsense")}, store.Predicted, "not checked: "},
		"another source": {trial.Code{Built: trial.Built{Program: "x"}, PTX: code.PTX}, store.Predicted, "its code is that of another source"},
	} {
		require.NoError(t, other.Adopt(point, &c.code))
		r, err := other.Run(t.Context(), point, 0)
		require.NoError(t, err)
		require.Equal(t, c.outcome, r.Outcome, "%s: %s", name, r.Error)
		require.Contains(t, r.Error, c.says, name)
	}
	require.ErrorContains(t, other.Adopt([]int{1}, code), "")
}
