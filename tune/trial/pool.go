package trial

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os/exec"
	"sync"
	"sync/atomic"
	"time"

	"github.com/kgen-dev/kgen/tune/store"
)

// Pool is a Bench whose work is done by child processes that call Serve. One that takes
// too long is killed, and one that ends is replaced: either ends a single trial.
type Pool struct {
	// Command makes the command of a child, which serves its standard input and output.
	Command func() *exec.Cmd
	// Workers is the most children at a time. That many cores are for them together: each
	// gets its share.
	Workers int
	// OneDevice says that the children share a device that one run may use at a time and
	// that a failed run may leave unusable to its process.
	OneDevice bool
	Deadlines Deadlines
	Log       *slog.Logger

	init   sync.Once
	places chan struct{} // a token for each child that may be there beside the idle ones
	device chan struct{}
	asked  atomic.Int64 // requests that wait or are under way

	mu   sync.Mutex
	idle []*child
}

// Deadlines bound what a child may take for each thing; 0 is the default.
type Deadlines struct{ Prepare, Compile, Run time.Duration }

// Defaults of Deadlines.
const (
	DefaultPrepare = 10 * time.Minute // a reference may be slow: it runs once
	DefaultCompile = 2 * time.Minute
	DefaultRun     = 2 * time.Minute
)

// child is a process that serves.
type child struct {
	cmd      *exec.Cmd
	in       io.WriteCloser
	out      *json.Decoder
	replies  chan reply
	ended    chan struct{} // closed when the process has ended, as err says
	err      error
	id       int
	prepared bool
	last     string // the point it worked on
}

func (p *Pool) start() {
	p.init.Do(func() {
		p.places = make(chan struct{}, max(1, p.Workers))
		p.device = make(chan struct{}, 1)
		d := &p.Deadlines
		for _, e := range []struct {
			of   *time.Duration
			none time.Duration
		}{{&d.Prepare, DefaultPrepare}, {&d.Compile, DefaultCompile}, {&d.Run, DefaultRun}} {
			if *e.of == 0 {
				*e.of = e.none
			}
		}
		if p.Log == nil {
			p.Log = slog.New(slog.DiscardHandler)
		}
	})
}

// take waits for a child: for a run one that is prepared, which may take long, if it can
// be, and of these one that worked on the point.
func (p *Pool) take(ctx context.Context, point string, run bool) (*child, error) {
	p.start()
	select {
	case p.places <- struct{}{}:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.idle) == 0 {
		c, err := p.launch()
		if err != nil {
			<-p.places
		}
		return c, err
	}
	at, most := len(p.idle)-1, 0
	for i, c := range p.idle {
		fit := 0
		if c.last == point {
			fit = 1
		}
		if run && c.prepared {
			fit += 2
		}
		if fit > most {
			at, most = i, fit
		}
	}
	c := p.idle[at]
	p.idle = append(p.idle[:at], p.idle[at+1:]...)
	return c, nil
}

// give takes a child back that can go on.
func (p *Pool) give(c *child) {
	p.mu.Lock()
	p.idle = append(p.idle, c)
	p.mu.Unlock()
	<-p.places
}

// drop ends a child.
func (p *Pool) drop(c *child) {
	c.kill()
	<-p.places
}

func (p *Pool) launch() (*child, error) {
	cmd := p.Command()
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("child process: %w", err)
	}
	c := &child{cmd: cmd, in: in, out: json.NewDecoder(out), replies: make(chan reply, 1), ended: make(chan struct{})}
	go func() {
		defer close(c.ended)
		for {
			var r reply
			if err := c.out.Decode(&r); err != nil {
				c.err = cmd.Wait()
				if c.err == nil {
					c.err = fmt.Errorf("it ended without an answer: %w", err)
				}
				return
			}
			c.replies <- r
		}
	}()
	return c, nil
}

func (c *child) kill() {
	_ = c.cmd.Process.Kill() // it may have ended
	<-c.ended
}

// errDeadline says that a child was killed because it took too long.
var errDeadline = errors.New("deadline")

// ask sends a request and waits for its answer. After an error the child is of no use.
func (c *child) ask(ctx context.Context, deadline time.Duration, r request) (reply, error) {
	c.id++
	r.ID = c.id
	text, err := json.Marshal(r)
	if err != nil {
		return reply{}, err
	}
	if _, err := c.in.Write(append(text, '\n')); err != nil {
		<-c.ended
		return reply{}, c.err
	}
	timer := time.NewTimer(deadline)
	defer timer.Stop()
	select {
	case a := <-c.replies:
		return a, nil
	case <-c.ended:
		select {
		case a := <-c.replies: // its last
			return a, nil
		default:
			return reply{}, c.err
		}
	case <-timer.C:
		return reply{}, errDeadline
	case <-ctx.Done():
		return reply{}, context.Cause(ctx)
	}
}

// share is how many cores a request gets beside those that are asked for by now.
func (p *Pool) share() int { return max(1, p.Workers/int(max(1, p.asked.Load()))) }

// work has a child do something for a point.
func (p *Pool) work(ctx context.Context, point []int, deadline time.Duration, r request) (reply, error) {
	p.asked.Add(1)
	defer p.asked.Add(-1)
	key := pointKey(point)
	c, err := p.take(ctx, key, r.Do == "run")
	if err != nil {
		return reply{}, err
	}
	if r.Do == "run" && !c.prepared {
		a, err := c.ask(ctx, p.Deadlines.Prepare, request{Do: "prepare"})
		if err == nil && a.Error != "" {
			err = a.fatal()
		}
		if err != nil {
			p.drop(c)
			return reply{}, prepareError(ctx, err, p.Deadlines.Prepare)
		}
		c.prepared = true
	}
	c.last = key
	r.Point = point
	if !p.OneDevice {
		r.Cores = p.share()
	}
	a, err := c.ask(ctx, deadline, r)
	switch {
	case err != nil:
		p.drop(c)
		return a, err
	case a.Error != "":
		p.drop(c)
		return a, a.fatal()
	case p.OneDevice && a.Ran.Outcome == store.Runtime:
		p.drop(c) // what failed may have left its context unusable
	default:
		p.give(c)
	}
	return a, nil
}

// fatalError is a child's after which nothing can be tried.
type fatalError struct {
	text    string
	mistake bool
}

func (e *fatalError) Error() string { return e.text }

func (e *fatalError) Is(target error) bool { return e.mistake && target == ErrMistake }

func (r *reply) fatal() error { return &fatalError{r.Error, r.Mistake} }

// prepareError says why no child can be made ready: no configuration can be run then.
func prepareError(ctx context.Context, err error, deadline time.Duration) error {
	var fatal *fatalError
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case errors.As(err, &fatal):
		return err
	case errors.Is(err, errDeadline):
		return &fatalError{text: fmt.Sprintf("the buffers and the reference were not ready within %s", deadline)}
	}
	return &fatalError{text: err.Error()}
}

// outcome is how a trial ends whose child did.
func (p *Pool) outcome(ctx context.Context, what string, err error, deadline time.Duration, otherwise store.Outcome) (store.Outcome, string, error) {
	var fatal *fatalError
	switch {
	case ctx.Err() != nil:
		return "", "", context.Cause(ctx)
	case errors.As(err, &fatal):
		return "", "", err
	case errors.Is(err, errDeadline):
		return store.Timeout, fmt.Sprintf("not %s within %s", what, deadline), nil
	}
	p.Log.Warn("a child process ended", "error", err)
	return otherwise, fmt.Sprintf("the process in which it was %s ended: %v", what, err), nil
}

// Compile implements Bench.
func (p *Pool) Compile(ctx context.Context, point []int) (Built, error) {
	a, err := p.compile(ctx, point, request{Do: "compile"})
	return a.Built, err
}

func (p *Pool) compile(ctx context.Context, point []int, r request) (reply, error) {
	p.start()
	start := time.Now()
	a, err := p.work(ctx, point, p.Deadlines.Compile, r)
	if err == nil {
		return a, nil
	}
	a = reply{}
	a.Built.Outcome, a.Built.Error, err = p.outcome(ctx, "compiled", err, p.Deadlines.Compile, store.Compile)
	a.Built.Seconds = time.Since(start).Seconds()
	return a, err
}

// Run implements Bench.
func (p *Pool) Run(ctx context.Context, point []int, samples int) (Ran, error) {
	return p.RunCode(ctx, point, samples, nil)
}

// RunCode is Run of what another process compiled; nil compiles it here if need be.
func (p *Pool) RunCode(ctx context.Context, point []int, samples int, c *Code) (Ran, error) {
	p.start()
	if p.OneDevice {
		select {
		case p.device <- struct{}{}:
			defer func() { <-p.device }()
		case <-ctx.Done():
			return Ran{}, context.Cause(ctx)
		}
	}
	start := time.Now()
	a, err := p.work(ctx, point, p.Deadlines.Run, request{Do: "run", Samples: samples, Code: c})
	if err == nil {
		return a.Ran, nil
	}
	r := Ran{}
	r.Outcome, r.Error, err = p.outcome(ctx, "run", err, p.Deadlines.Run, store.Runtime)
	r.Seconds = time.Since(start).Seconds()
	return r, err
}

// Close ends the children.
func (p *Pool) Close() {
	p.start()
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range p.idle {
		c.in.Close()
		c.kill()
	}
	p.idle = nil
}
