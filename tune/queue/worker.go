package queue

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/kgen-dev/kgen/tune/trial"
)

// Trier does what jobs ask for: a trial.Pool.
type Trier interface {
	CompileCode(ctx context.Context, point []int) (trial.Built, *trial.Code, error)
	RunCode(ctx context.Context, point []int, samples int, c *trial.Code) (trial.Ran, error)
	Close()
}

// Triers are a worker's for one tuning.
type Triers struct {
	Cores Trier // compiles, and runs on the virtual machine
	Timer Trier // runs on a GPU; nil without one. It may be the other
}

func (t *Triers) close() {
	t.Cores.Close()
	if t.Timer != nil && t.Timer != t.Cores {
		t.Timer.Close()
	}
}

// Worker is a worker's end.
type Worker struct {
	Identity Identity
	Name     string // no other worker's; without dots, stars and spaces
	Jobs     int    // that it does at a time; runs on a GPU are one at a time beside them
	// Open makes what does the jobs of a tuning, whose files are in dir.
	Open func(dir string, w Work) (Triers, error)
	Idle time.Duration // ends without anything to do for so long; 0: never
	Log  *slog.Logger

	conn *nats.Conn
	js   jetstream.JetStream
	busy atomic.Int64
	done [2]atomic.Int64 // compilations, runs
	last atomic.Int64    // when it last had something to do, nanoseconds since 1970
}

// Done is how many jobs it has done.
func (w *Worker) Done() (compiled, ran int64) { return w.done[0].Load(), w.done[1].Load() }

// Run works for the tuners on a server, one after the other, until ctx ends, which is no
// error: what is under way then goes back on the queue. A tuner that refuses the worker is
// ErrMismatch.
func (w *Worker) Run(ctx context.Context, conn *nats.Conn) error {
	w.conn = conn
	w.Identity.Schema = Schema
	var err error
	if w.js, err = jetstream.New(conn); err != nil {
		return err
	}
	w.last.Store(time.Now().UnixNano())
	var current *session
	defer func() {
		current.stop()
		w.leave(current)
	}()
	var heard, said time.Time
	for {
		if current.over() {
			current.stop()
			current = nil
		}
		found, err := w.greet(ctx, current)
		switch {
		case ctx.Err() != nil:
			return nil
		case conn.IsClosed():
			return explain(conn.ConnectedUrl(), conn.LastError())
		case errors.Is(err, ErrMismatch):
			return err
		case err == nil:
			heard = time.Now()
		case time.Since(said) > time.Minute && current == nil:
			w.Log.Info("waiting for a tuning", "gpu", w.Identity.GPU, "device", w.Identity.Device)
			said = time.Now()
		}
		if found != nil && current != nil {
			current.pinned.Store(found.Pinned)
		}
		if found != nil && current == nil {
			if current, err = w.begin(ctx, found); err != nil {
				return fmt.Errorf("tuning %s: %w", found.Tune, err)
			}
		}
		idle := time.Since(time.Unix(0, w.last.Load()))
		if w.busy.Load() > 0 {
			idle = 0
		}
		if current != nil && idle > lostAfter && time.Since(heard) > time.Minute {
			current.cancel() // its tuner was killed, and others may be there
		}
		if w.Idle > 0 && idle > w.Idle {
			w.Log.Info("nothing to do: the worker ends", "for", w.Idle)
			return nil
		}
		select {
		case <-time.After(greetEvery):
		case <-current.ends():
		case <-ctx.Done():
			return nil
		}
	}
}

// leave tells the tuner that the worker goes.
func (w *Worker) leave(s *session) {
	if s == nil {
		return
	}
	data, err := encode(&greeting{Identity: w.Identity, Worker: w.Name, Tune: s.tune, Leaves: true})
	if err == nil {
		err = w.conn.Publish(greetings, data)
	}
	if err == nil {
		err = w.conn.FlushTimeout(answerWait)
	}
	if err != nil {
		w.Log.Debug("a worker leaves without a word", "error", err)
	}
}

// greet says that the worker is there; a tuner that wants it says for what.
func (w *Worker) greet(ctx context.Context, s *session) (*welcome, error) {
	g := greeting{Identity: w.Identity, Worker: w.Name, Busy: int(w.busy.Load()), Jobs: w.Jobs}
	if s != nil {
		g.Tune = s.tune
	}
	data, err := encode(&g)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, 2*greetEvery)
	defer cancel()
	m, err := w.conn.RequestWithContext(ctx, greetings, data)
	if err != nil {
		return nil, err
	}
	var found welcome
	if err := decode(m.Data, &found); err != nil {
		return nil, err
	}
	switch {
	case found.Refused != "":
		return nil, fmt.Errorf("%w: %s", ErrMismatch, clip(found.Refused, 500))
	case !validToken(found.Tune) || len(found.Tune) > 100:
		return nil, fmt.Errorf("a tuning called %q", clip(found.Tune, 100))
	}
	return &found, nil
}

// begin starts to work for a tuning.
func (w *Worker) begin(ctx context.Context, found *welcome) (*session, error) {
	dir, err := os.MkdirTemp("", "kgen-worker-")
	if err != nil {
		return nil, err
	}
	s := &session{Worker: w, names: names{found.Tune}, dir: dir, ackWait: time.Duration(found.AckWait)}
	if s.ackWait < time.Millisecond {
		s.ackWait = DefaultAckWait
	}
	if err := s.fetch(ctx); err != nil {
		os.RemoveAll(dir)
		if isGone(err) || errors.Is(err, jetstream.ErrBucketNotFound) || ctx.Err() != nil || !w.conn.IsConnected() {
			return nil, nil // it ended meanwhile
		}
		return nil, fmt.Errorf("files of the work: %w", err)
	}
	if s.triers, err = w.Open(dir, found.Work); err != nil {
		os.RemoveAll(dir)
		return nil, err
	}
	w.Log.Info("working", "tuning", found.Tune, "gpu", w.Identity.GPU)
	s.ctx, s.cancel = context.WithCancel(ctx)
	for _, l := range lanes(w.Identity.Device) {
		n := w.Jobs
		if l.gpu {
			n = 1
		}
		for range n {
			s.slots.Go(func() { s.serve(l) })
		}
	}
	return s, nil
}
