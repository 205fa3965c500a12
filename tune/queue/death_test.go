//go:build unix

package queue_test

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kgen-dev/kgen/bench"
	"github.com/kgen-dev/kgen/tune/queue"
	"github.com/kgen-dev/kgen/tune/store"
)

// Environment of the test binary as a worker's process.
const (
	urlEnv  = "KGEN_QUEUE_URL"
	nameEnv = "KGEN_QUEUE_WORKER"
	dirEnv  = "KGEN_QUEUE_DIR" // of a tuner's server, at the URL
)

// deadly is the point that ends whoever compiles it.
const deadly = 13

// TestMain lets the test binary be a worker that can be killed. It says what it does.
func TestMain(m *testing.M) {
	name := os.Getenv(nameEnv)
	switch {
	case os.Getenv(dirEnv) != "":
		fmt.Fprintln(os.Stderr, tuneForEver(os.Getenv(dirEnv), os.Getenv(urlEnv)))
		os.Exit(1)
	case name == "":
		os.Exit(m.Run())
	}
	c, err := queue.Connect(os.Getenv(urlEnv), queue.Access{Token: token})
	if err == nil {
		w := queue.Worker{Identity: identity, Name: name, Jobs: 2, Log: quiet(), Open: func(string, queue.Work) (queue.Triers, error) {
			return queue.Triers{Cores: &trier{delay: 10 * time.Millisecond, tried: func(do string, point []int) {
				fmt.Println(do, point[0])
				if point[0] == deadly {
					os.Exit(1)
				}
			}}}, nil
		}}
		err = w.Run(context.Background(), c)
	}
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}

// tuneForEver compiles points, one after the other, and records nothing.
func tuneForEver(dir, addr string) error {
	s, err := queue.Serve(queue.ServerOptions{Addr: addr, Dir: dir, Access: queue.Access{Token: token}, Log: quiet()})
	if err != nil {
		return err
	}
	c, err := s.Connect()
	if err != nil {
		return err
	}
	b, err := queue.Open(context.Background(), c, options(identity))
	if err != nil {
		return err
	}
	for i := 0; ; i++ {
		if _, err := b.Compile(context.Background(), []int{i}); err != nil {
			return err
		}
	}
}

// process is a worker's.
type process struct {
	*exec.Cmd
	mu    sync.Mutex
	tried []string
}

func (p *process) count() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.tried)
}

func start(t *testing.T, url, name string) *process {
	t.Helper()
	p := &process{Cmd: exec.Command(os.Args[0])}
	p.Env = append(os.Environ(), urlEnv+"="+url, nameEnv+"="+name)
	p.Stderr = os.Stderr
	out, err := p.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, p.Start())
	done := make(chan struct{})
	go func() {
		defer close(done)
		for s := bufio.NewScanner(out); s.Scan(); {
			p.mu.Lock()
			p.tried = append(p.tried, s.Text())
			p.mu.Unlock()
		}
	}()
	t.Cleanup(func() {
		_ = p.Process.Kill()
		<-done
		_ = p.Wait()
	})
	return p
}

// Of four workers two are killed in the middle, and one stands still for longer than its
// jobs wait: all comes out as it does with one, and each job is done as often as needed.
func TestDeathsChangeNothing(t *testing.T) {
	s, c := place(t)
	o := options(identity)
	o.AckWait = 2 * time.Second
	b := open(t, c, o)
	var all []*process
	for i := range 4 {
		all = append(all, start(t, s.URL(), fmt.Sprint("w", i)))
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for _, p := range all[:2] {
			for p.count() < 5 {
				time.Sleep(time.Millisecond)
			}
			_ = p.Process.Kill()
		}
		for all[2].count() < 10 {
			time.Sleep(time.Millisecond)
		}
		_ = all[2].Process.Signal(syscall.SIGSTOP)
		time.Sleep(2 * o.AckWait)
		_ = all[2].Process.Signal(syscall.SIGCONT)
	}()
	const points = 12 // short of the deadly one, many times
	for round := range 25 {
		tuneAll(t, b, points, bench.Predicted)
		if t.Failed() {
			t.Fatalf("in round %d", round)
		}
	}
	<-ended
	compiled, ran := counts(b)
	require.Equal(t, 25*points, compiled)
	require.Equal(t, 25*(points-2), ran)
}

// A job that ends every worker is a failed configuration in the end.
func TestJobThatEndsItsWorkers(t *testing.T) {
	s, c := place(t)
	o := options(identity)
	o.AckWait = time.Second
	b := open(t, c, o)
	ctx, cancel := context.WithCancel(t.Context())
	var guard sync.WaitGroup
	deaths := 0
	guard.Go(func() { // starts a worker whenever one has ended
		for n := 0; ctx.Err() == nil; n++ {
			p := exec.CommandContext(ctx, os.Args[0])
			p.Env = append(os.Environ(), urlEnv+"="+s.URL(), nameEnv+"="+fmt.Sprint("w", n))
			if p.Run() != nil && ctx.Err() == nil {
				deaths++
			}
		}
	})
	built, err := b.Compile(ctx, []int{deadly})
	cancel()
	guard.Wait()
	require.NoError(t, err)
	require.Equal(t, store.Compile, built.Outcome)
	require.Contains(t, built.Error, "each of the 5 workers that tried it ended")
	require.Equal(t, queue.MaxDeliveries, deaths)
}

// What a killed tuner's workers had done is there when it comes again; what it recorded
// is done anew when it is asked for.
func TestTunerComesAgain(t *testing.T) {
	s, c := place(t)
	var mu sync.Mutex
	tried := 0
	stop, _ := work(t, s.URL(), "w", identity, 2, &trier{tried: func(string, []int) {
		mu.Lock()
		defer mu.Unlock()
		tried++
	}})
	defer stop()
	first, err := s.Connect()
	require.NoError(t, err)
	b, err := queue.Open(t.Context(), first, options(identity))
	require.NoError(t, err)
	for i := range 4 {
		_, err := b.Compile(t.Context(), []int{i})
		require.NoError(t, err)
	}
	b.Recorded([]int{3})
	require.NoError(t, first.Flush())
	first.Close() // as when its process is killed

	again := open(t, c, options(identity))
	for i := range 3 {
		built, err := again.Compile(t.Context(), []int{i})
		require.NoError(t, err)
		require.Equal(t, i, built.Registers)
	}
	require.Equal(t, 4, tried)
	_, err = again.Compile(t.Context(), []int{3})
	require.NoError(t, err)
	require.Equal(t, 5, tried)
	require.Len(t, strings.Split(queue.Summary(again.Workers()), " "), 2)
}

// The same where the server goes with the tuner: workers wait for it.
func TestServerComesAgain(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "queue")
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	addr := l.Addr().String()
	require.NoError(t, l.Close())
	tuner := exec.Command(os.Args[0])
	tuner.Env = append(os.Environ(), urlEnv+"="+addr, dirEnv+"="+dir)
	tuner.Stderr = os.Stderr
	require.NoError(t, tuner.Start())
	defer func() { _ = tuner.Process.Kill() }()

	const enough = 10
	var mu sync.Mutex
	tried := map[int]int{}
	seen := make(chan struct{})
	c, err := queue.ConnectPatiently(t.Context(), "nats://"+addr, queue.Access{Token: token}, 0, quiet())
	require.NoError(t, err)
	c.Close()
	stop, _ := work(t, "nats://"+addr, "w", identity, 1, &trier{delay: 5 * time.Millisecond, tried: func(_ string, point []int) {
		mu.Lock()
		defer mu.Unlock()
		if tried[point[0]]++; point[0] == enough && tried[enough] == 1 {
			close(seen)
		}
	}})
	defer stop()
	<-seen
	require.NoError(t, tuner.Process.Kill())
	_ = tuner.Wait()

	s := serve(t, dir, addr, queue.Access{Token: token})
	again, err := s.Connect()
	require.NoError(t, err)
	b, err := queue.Open(t.Context(), again, options(identity))
	require.NoError(t, err)
	for i := range enough + 10 {
		built, err := b.Compile(t.Context(), []int{i})
		require.NoError(t, err)
		require.Equal(t, builtOf([]int{i}).Outcome, built.Outcome)
	}
	mu.Lock()
	for i := range enough { // what was under way at the kill may be done twice
		require.Equal(t, 1, tried[i], "point %d", i)
	}
	mu.Unlock()
	b.Close()
	again.Close()
	require.NoError(t, s.Close())
}
