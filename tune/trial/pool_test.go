package trial_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kgen-dev/kgen/tune/store"
	"github.com/kgen-dev/kgen/tune/trial"
)

const coresEnv = "KGEN_TRIAL_TEST_CORES" // the binary serves coreCounter

// TestMain lets the test binary be its own child.
func TestMain(m *testing.M) {
	if os.Getenv(coresEnv) != "" {
		if err := trial.Serve(context.Background(), coreCounter{}, os.Stdin, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// coreCounter says how many cores it has. A run ends when as many have begun as its point
// says.
type coreCounter struct{}

func (coreCounter) Compile(context.Context, []int) (trial.Built, error) {
	return trial.Built{Registers: runtime.GOMAXPROCS(0)}, nil
}

func (coreCounter) Run(_ context.Context, point []int, _ int) (trial.Ran, error) {
	r := trial.Ran{Outcome: store.Correct, TimeUS: float64(runtime.GOMAXPROCS(0))}
	begun, err := os.CreateTemp(os.Getenv(coresEnv), "begun")
	if err != nil {
		return r, err
	}
	begun.Close()
	for {
		all, err := os.ReadDir(os.Getenv(coresEnv))
		if err != nil || len(all) >= point[0] {
			return r, err
		}
		time.Sleep(time.Millisecond)
	}
}

// Who works alone has all the pool's cores, and those beside each other share them.
func TestCoresAreShared(t *testing.T) {
	dir := t.TempDir()
	p := &trial.Pool{Workers: 6, Command: func() *exec.Cmd {
		cmd := exec.Command(os.Args[0])
		cmd.Env, cmd.Stderr = append(os.Environ(), coresEnv+"="+dir), os.Stderr
		return cmd
	}}
	t.Cleanup(p.Close)
	b, err := p.Compile(t.Context(), []int{0})
	require.NoError(t, err)
	require.Equal(t, 6, b.Registers)

	var lock sync.Mutex
	var cores []float64
	var wg sync.WaitGroup
	for i := range 3 {
		wg.Go(func() {
			r, err := p.Run(t.Context(), []int{3}, 0)
			if err != nil {
				t.Error(err)
			}
			lock.Lock()
			defer lock.Unlock()
			cores = append(cores, r.TimeUS)
		})
		for n := 0; n < i+1; n = entries(t, dir) { // each begins when the one before has
			time.Sleep(time.Millisecond)
		}
	}
	wg.Wait()
	require.ElementsMatch(t, []float64{6, 3, 2}, cores)
}

func entries(t *testing.T, dir string) int {
	t.Helper()
	all, err := os.ReadDir(dir)
	require.NoError(t, err)
	return len(all)
}
