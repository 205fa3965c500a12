package store

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestMain lets the test binary be its own child: with childEnv it records
// evaluations until it is killed.
func TestMain(m *testing.M) {
	if path := os.Getenv(childEnv); path != "" {
		if err := child(path); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

const (
	childEnv = "KGEN_STORE_TEST_CHILD"
	countEnv = "KGEN_STORE_TEST_COUNT"
)

// child does what is not done yet, and says each number once it is recorded.
func child(path string) error {
	s, err := Open(path)
	if err != nil {
		return err
	}
	defer s.Close()
	if s.Aside() != "" {
		return fmt.Errorf("the store was damaged: %s", s.Aside())
	}
	r, err := s.Begin(standard)
	if err != nil {
		return err
	}
	count, err := strconv.Atoi(os.Getenv(countEnv))
	if err != nil {
		return err
	}
	for i := range count {
		e := correct(r, i)
		if _, done, err := s.Lookup(e.Key); err != nil {
			return err
		} else if done {
			continue
		}
		if err := s.Record(e); err != nil {
			return err
		}
		fmt.Println(i)
	}
	return nil
}

func start(t *testing.T, path string, count int) (*exec.Cmd, *bufio.Scanner) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), childEnv+"="+path, countEnv+"="+strconv.Itoa(count))
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	return cmd, bufio.NewScanner(out)
}

// A run is killed again and again, at any moment; each time nothing that was
// reported as recorded is lost, nothing is done twice, and the last run ends
// the work.
func TestKillAndResume(t *testing.T) {
	path := tempPath(t)
	const count = 3000
	reported := map[int]bool{}
	for round := range 8 {
		cmd, lines := start(t, path, count)
		for n := 0; lines.Scan(); n++ {
			i, err := strconv.Atoi(strings.TrimSpace(lines.Text()))
			require.NoError(t, err)
			require.False(t, reported[i], "%d done twice", i)
			reported[i] = true
			if n == 13+7*round {
				if round%2 == 1 {
					time.Sleep(time.Millisecond) // into the middle of something else
				}
				require.NoError(t, cmd.Process.Kill())
			}
		}
		require.Error(t, cmd.Wait(), "round %d was to be killed", round)

		s := mustOpen(t, path)
		require.Empty(t, s.Aside())
		best, err := s.Best(&standard, count+1)
		require.NoError(t, err)
		present := map[string]bool{}
		for _, e := range best {
			present[e.Config] = true
		}
		for i := range reported {
			require.True(t, present[fmt.Sprintf("BM=128 BN=%d", i)], "%d was recorded and is lost", i)
		}
		require.NoError(t, s.Close())
		// What was recorded when the kill came, but not reported, is done too.
		for i := range count {
			reported[i] = present[fmt.Sprintf("BM=128 BN=%d", i)]
			if !reported[i] {
				delete(reported, i)
			}
		}
	}
	cmd, lines := start(t, path, count)
	for lines.Scan() {
	}
	require.NoError(t, cmd.Wait())
	s := mustOpen(t, path)
	runs, err := s.Runs()
	require.NoError(t, err)
	total := 0
	for _, r := range runs {
		got, err := s.Evaluations(r.ID)
		require.NoError(t, err)
		total += len(got)
	}
	require.Equal(t, count, total)
}

// Several processes on one store, one of them killed: all others finish.
func TestProcessesShareAStore(t *testing.T) {
	path := tempPath(t)
	const count = 150
	victim, lines := start(t, path, count)
	require.True(t, lines.Scan())
	var others []*exec.Cmd
	var outputs []*bufio.Scanner
	for range 3 {
		cmd, out := start(t, path, count)
		others, outputs = append(others, cmd), append(outputs, out)
	}
	require.NoError(t, victim.Process.Kill())
	for lines.Scan() {
	}
	_ = victim.Wait() // killed, or done before
	for i, out := range outputs {
		for out.Scan() {
		}
		require.NoError(t, others[i].Wait())
	}
	s := mustOpen(t, path)
	best, err := s.Best(&standard, count+1)
	require.NoError(t, err)
	require.Len(t, best, count)
}
