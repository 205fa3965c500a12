package queue_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/kgen-dev/kgen/bench"
	"github.com/kgen-dev/kgen/tune/queue"
	"github.com/kgen-dev/kgen/tune/store"
	"github.com/kgen-dev/kgen/tune/trial"
)

const token = "of the test"

var identity = queue.Identity{Kgen: "1", Compiler: "C 1", GPU: "a100", Device: "vm"}

// trier is a fake: what it says follows from the point.
type trier struct {
	delay time.Duration
	tried func(do string, point []int)
	runs  *atomic.Int64 // under way, of all that share it
}

func builtOf(point []int) trial.Built {
	if point[0]%5 == 4 {
		return trial.Built{Outcome: store.Compile, Error: "refused", Program: fmt.Sprint(point)}
	}
	return trial.Built{Program: fmt.Sprint(point), Cubin: fmt.Sprint(point), Registers: point[0]}
}

func ranOf(point []int, from bench.Provenance) trial.Ran {
	return trial.Ran{Outcome: store.Correct, Provenance: from, TimeUS: float64(1 + point[0]%7), Verified: true}
}

func (f *trier) wait(ctx context.Context, do string, point []int) error {
	if f.tried != nil {
		f.tried(do, point)
	}
	select {
	case <-time.After(f.delay):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (f *trier) CompileCode(ctx context.Context, point []int) (trial.Built, *trial.Code, error) {
	if len(point) == 0 {
		return trial.Built{}, nil, errors.New("no point")
	}
	if err := f.wait(ctx, "compile", point); err != nil {
		return trial.Built{}, nil, err
	}
	b := builtOf(point)
	if b.Outcome != "" {
		return b, nil, nil
	}
	return b, &trial.Code{Built: b, PTX: make([]byte, 100_000)}, nil
}

func (f *trier) RunCode(ctx context.Context, point []int, samples int, c *trial.Code) (trial.Ran, error) {
	if c == nil || len(c.PTX) != 100_000 {
		return trial.Ran{}, errors.New("no code came with a run")
	}
	if f.runs != nil {
		defer f.runs.Add(-1)
		if f.runs.Add(1) > 1 {
			return trial.Ran{}, errors.New("two runs at a time on one device")
		}
	}
	if err := f.wait(ctx, "run", point); err != nil {
		return trial.Ran{}, err
	}
	if f.runs == nil {
		return ranOf(point, bench.Predicted), nil
	}
	r := ranOf(point, bench.Measured)
	for range samples {
		r.Samples = append(r.Samples, r.TimeUS)
	}
	return r, nil
}

func (f *trier) Close() {}

func quiet() *slog.Logger { return slog.New(slog.DiscardHandler) }

func serve(t *testing.T, dir, addr string, a queue.Access) *queue.Server {
	t.Helper()
	s, err := queue.Serve(queue.ServerOptions{Addr: addr, Dir: dir, Access: a, Log: quiet()})
	require.NoError(t, err)
	return s
}

// place is a server with a tuner's connection to it.
func place(t *testing.T) (*queue.Server, *nats.Conn) {
	t.Helper()
	s := serve(t, filepath.Join(t.TempDir(), "queue"), "127.0.0.1:0", queue.Access{Token: token})
	c, err := s.Connect()
	require.NoError(t, err)
	t.Cleanup(func() {
		c.Close()
		require.NoError(t, s.Close())
	})
	return s, c
}

func options(id queue.Identity, name ...string) queue.Options {
	return queue.Options{
		Identity: id, Work: queue.Work{Space: "space.json"}, Name: name, AckWait: time.Minute, Log: quiet(),
		Files: func(w io.Writer) error {
			return queue.Pack(w, "", nil, map[string][]byte{"space.json": []byte("{}"), "sub/x.cu": []byte("//")})
		},
	}
}

func open(t *testing.T, c *nats.Conn, o queue.Options) *queue.Bench {
	t.Helper()
	b, err := queue.Open(t.Context(), c, o)
	require.NoError(t, err)
	t.Cleanup(b.Close)
	return b
}

// work starts a worker; ended is what it returns.
func work(t *testing.T, url, name string, id queue.Identity, jobs int, f queue.Trier) (stop func(), ended chan error) {
	t.Helper()
	return workAs(t, url, name, id, jobs, f, queue.Access{Token: token})
}

func workAs(t *testing.T, url, name string, id queue.Identity, jobs int, f queue.Trier, a queue.Access) (stop func(), ended chan error) {
	t.Helper()
	c, err := queue.Connect(url, a)
	require.NoError(t, err)
	w := &queue.Worker{
		Identity: id, Name: name, Jobs: jobs, Log: quiet(),
		Open: func(dir string, w queue.Work) (queue.Triers, error) {
			text, err := os.ReadFile(filepath.Join(dir, "sub", "x.cu"))
			if err != nil || string(text) != "//" {
				return queue.Triers{}, fmt.Errorf("not the file that was sent: %q, %w", text, err)
			}
			return queue.Triers{Cores: f, Timer: f}, nil
		},
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended = make(chan error, 1)
	go func() {
		ended <- w.Run(ctx, c)
		c.Close()
	}()
	var once sync.Once
	stop = func() {
		once.Do(func() {
			cancel()
			require.NoError(t, <-ended)
		})
	}
	return stop, ended
}

// tuneAll tries points 0 to n at once and checks what comes of each.
func tuneAll(t *testing.T, b *queue.Bench, n int, from bench.Provenance) {
	t.Helper()
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() {
			point := []int{i}
			built, err := b.Compile(t.Context(), point)
			if err != nil || built.Outcome != builtOf(point).Outcome {
				t.Errorf("point %d: %v, %v", i, built, err)
				return
			}
			if built.Outcome == "" {
				r, err := b.Run(t.Context(), point, 1)
				if want := ranOf(point, from); err != nil || r.TimeUS != want.TimeUS || r.Provenance != from {
					t.Errorf("point %d: %v, %v: want %v", i, r, err, want)
				}
			}
			b.Recorded(point)
		})
	}
	wg.Wait()
}

func counts(b *queue.Bench) (compiled, ran int) {
	for _, s := range b.Workers() {
		compiled += s.Compiled
		ran += s.Ran
	}
	return compiled, ran
}

// Each job is done once, by whoever is free, and nothing stays on the server.
func TestWorkersShareTheJobs(t *testing.T) {
	s, c := place(t)
	b := open(t, c, options(identity))
	var mu sync.Mutex
	tried := map[string]int{}
	for i := range 3 {
		stop, _ := work(t, s.URL(), fmt.Sprint("w", i), identity, 2, &trier{delay: time.Millisecond, tried: func(do string, point []int) {
			mu.Lock()
			defer mu.Unlock()
			tried[fmt.Sprint(do, point)]++
		}})
		defer stop()
	}
	tuneAll(t, b, 40, bench.Predicted)
	compiled, ran := counts(b)
	require.Equal(t, 40, compiled)
	require.Equal(t, 32, ran)
	require.Len(t, tried, 72)
	for what, n := range tried {
		require.Equal(t, 1, n, what)
	}
	require.Len(t, b.Workers(), 3)
	require.NotEmpty(t, queue.Summary(b.Workers()))
	require.Equal(t, "1 busy, 2 idle", queue.Summary([]queue.Standing{{State: queue.Idle}, {State: queue.Busy}, {State: queue.Idle}}))
}

// On a GPU one run is under way at a time, while others compile.
// meeting is a trier whose runs wait for each other: n of them are under way, or none ends.
type meeting struct {
	trier
	under *atomic.Int64
	n     int64
}

func (m *meeting) RunCode(ctx context.Context, point []int, samples int, c *trial.Code) (trial.Ran, error) {
	for m.under.Add(1); m.under.Load() < m.n; {
		select {
		case <-time.After(time.Millisecond):
		case <-ctx.Done():
			return trial.Ran{}, context.Cause(ctx)
		}
	}
	return m.trier.RunCode(ctx, point, samples, c)
}

// Checks go to all workers at a time, each with the code that another one compiled.
func TestChecksAreUnderWayTogether(t *testing.T) {
	s, conn := place(t)
	b := open(t, conn, options(identity))
	require.Equal(t, 1, b.Slots())
	var under atomic.Int64
	for i := range 2 {
		stop, _ := work(t, s.URL(), fmt.Sprintf("w%d", i), identity, 1, &meeting{under: &under, n: 2})
		t.Cleanup(stop)
	}
	points := [][]int{{0}, {1}}
	for _, p := range points {
		_, err := b.Compile(t.Context(), p)
		require.NoError(t, err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var wg sync.WaitGroup
	for _, p := range points {
		wg.Go(func() {
			if r, err := b.Run(ctx, p, 0); err != nil || r.Outcome != store.Correct {
				t.Errorf("%v: %+v, %v", p, r, err)
			}
		})
	}
	wg.Wait()
	require.Eventually(t, func() bool { return b.Slots() == 3 }, time.Minute, time.Millisecond)
}

func TestRunsOnAGPUAreOneAtATime(t *testing.T) {
	s, c := place(t)
	id := identity
	id.Device, id.Driver = "cuda", "G, driver 13.0"
	o := options(id)
	o.Identity.Driver, o.Times = "", true
	b := open(t, c, o)
	stop, _ := work(t, s.URL(), "w", id, 4, &trier{delay: 5 * time.Millisecond, runs: &atomic.Int64{}})
	defer stop()
	driver, err := b.Driver(t.Context())
	require.NoError(t, err)
	require.Equal(t, id.Driver, driver)
	tuneAll(t, b, 20, bench.Measured)
	r, err := b.Run(t.Context(), []int{1}, 5)
	require.NoError(t, err)
	require.Len(t, r.Samples, 5)

	// A GPU of the kind with another driver is refused: its times are others.
	other := id
	other.Driver = "G, driver 12.0"
	_, ended := work(t, s.URL(), "x", other, 1, &trier{})
	require.ErrorIs(t, <-ended, queue.ErrMismatch)
}

// What a worker that is no GPU says was measured is not believed.
func TestOnlyAGPUMeasures(t *testing.T) {
	s, c := place(t)
	b := open(t, c, options(identity))
	stop, _ := work(t, s.URL(), "w", identity, 1, &trier{runs: &atomic.Int64{}})
	defer stop()
	_, err := b.Compile(t.Context(), []int{1})
	require.NoError(t, err)
	r, err := b.Run(t.Context(), []int{1}, 1)
	require.NoError(t, err)
	require.Equal(t, store.Runtime, r.Outcome)
	require.Contains(t, r.Error, "a time that is measured, of a job to check")
}

// A worker of another version, compiler or kind of messages is told so and ends.
func TestMismatchIsRefused(t *testing.T) {
	s, c := place(t)
	open(t, c, options(identity))
	for want, change := range map[string]func(*queue.Identity){
		`it has kgen "2": want "1", the tuner's`:         func(id *queue.Identity) { id.Kgen = "2" },
		`it has compiler "C 2": want "C 1", the tuner's`: func(id *queue.Identity) { id.Compiler = "C 2" },
	} {
		id := identity
		change(&id)
		_, ended := work(t, s.URL(), "w", id, 1, &trier{})
		err := <-ended
		require.ErrorIs(t, err, queue.ErrMismatch)
		require.ErrorContains(t, err, want)
	}
}

func TestAccess(t *testing.T) {
	s, _ := place(t)
	_, err := queue.Connect(s.URL(), queue.Access{Token: "wrong"})
	require.ErrorIs(t, err, queue.ErrAccess)
	require.ErrorContains(t, err, "refuses the token")
	require.NotContains(t, err.Error(), "wrong")
	_, err = queue.Connect("http://x", queue.Access{})
	require.ErrorIs(t, err, queue.ErrAccess)
	_, err = queue.Connect("nats://127.0.0.1:1", queue.Access{})
	require.ErrorIs(t, err, queue.ErrUnreachable)

	for addr, want := range map[string]string{
		"nowhere": "want HOST:PORT", "127.0.0.1:x": "want HOST:PORT", ":0": "want a token, or a CA", "192.0.2.1:0": "want a token, or a CA",
	} {
		_, err := queue.Serve(queue.ServerOptions{Addr: addr, Dir: filepath.Join(t.TempDir(), "q"), Log: quiet()})
		require.ErrorIs(t, err, queue.ErrAccess, addr)
		require.ErrorContains(t, err, want)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	_, err = queue.Serve(queue.ServerOptions{Addr: l.Addr().String(), Dir: filepath.Join(t.TempDir(), "q"), Log: quiet()})
	require.ErrorContains(t, err, "address already in use")
}

// Two processes neither share a folder nor tune the same on one server.
func TestOneTunerOfAKind(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "queue")
	s := serve(t, dir, "127.0.0.1:0", queue.Access{})
	_, err := queue.Serve(queue.ServerOptions{Addr: "127.0.0.1:0", Dir: dir, Log: quiet()})
	require.ErrorIs(t, err, queue.ErrInUse)
	c, err := s.Connect()
	require.NoError(t, err)
	b, err := queue.Open(t.Context(), c, options(identity, "a"))
	require.NoError(t, err)
	_, err = queue.Open(t.Context(), c, options(identity, "a"))
	require.ErrorIs(t, err, queue.ErrUnderWay)
	other, err := queue.Open(t.Context(), c, options(identity, "b"))
	require.NoError(t, err)
	other.Close()
	b.Close()
	c.Close()
	require.NoError(t, s.Close())
	require.NoDirExists(t, dir)
}

// What is compared closely is timed on one worker's GPU, and on another's when that is
// lost.
func TestFinalsAreOnOneGPU(t *testing.T) {
	s, c := place(t)
	id := identity
	id.Device, id.Driver = "cuda", "G"
	o := options(id)
	o.Times = true
	b := open(t, c, o)
	var mu sync.Mutex
	ran := map[string]int{}
	var stops []func()
	for _, name := range []string{"a", "b"} {
		stop, _ := work(t, s.URL(), name, id, 1, &trier{runs: &atomic.Int64{}, tried: func(do string, _ []int) {
			mu.Lock()
			defer mu.Unlock()
			if do == "run" {
				ran[name]++
			}
		}})
		defer stop()
		stops = append(stops, stop)
	}
	tuneAll(t, b, 3, bench.Measured)
	b.Pin()
	for round := range 2 {
		mu.Lock()
		clear(ran)
		mu.Unlock()
		for i := range 10 {
			_, err := b.Run(t.Context(), []int{i % 3}, 1)
			require.NoError(t, err)
		}
		require.Len(t, ran, 1)
		if round == 0 && ran["a"] > 0 {
			stops[0]()
		} else if round == 0 {
			stops[1]()
		}
	}
}

// A worker goes from one tuning to the next on a server, and waits for it.
func TestOneTuningAfterTheOther(t *testing.T) {
	s, c := place(t)
	stop, _ := work(t, s.URL(), "w", identity, 1, &trier{})
	defer stop()
	for _, name := range []string{"a", "b"} {
		b, err := queue.Open(t.Context(), c, options(identity, name))
		require.NoError(t, err)
		tuneAll(t, b, 3, bench.Predicted)
		b.Close()
	}
}

// A server without JetStream is none for a tuning.
func TestServerWithoutJetStream(t *testing.T) {
	ns, err := server.NewServer(&server.Options{Host: "127.0.0.1", Port: server.RANDOM_PORT, NoLog: true, NoSigs: true})
	require.NoError(t, err)
	ns.Start()
	defer ns.Shutdown()
	require.True(t, ns.ReadyForConnections(time.Minute))
	c, err := queue.Connect(ns.ClientURL(), queue.Access{})
	require.NoError(t, err)
	defer c.Close()
	_, err = queue.Open(t.Context(), c, options(identity))
	require.ErrorIs(t, err, queue.ErrNoJetStream)
}
