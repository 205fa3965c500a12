package queue

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/kgen-dev/kgen/tune/store"
	"github.com/kgen-dev/kgen/tune/trial"
)

// session is a worker's work for one tuning.
type session struct {
	*Worker
	names
	dir     string
	ackWait time.Duration
	triers  Triers
	ctx     context.Context
	cancel  context.CancelFunc
	slots   sync.WaitGroup
	gone    sync.Once
	pinned  atomic.Bool // its GPU is the one that is chosen
	gpu     sync.Mutex  // of the GPU
}

// over tells whether a session has ended; there may be none.
func (s *session) over() bool { return s != nil && s.ctx.Err() != nil }

// ends is closed when a session has ended; without one it never is.
func (s *session) ends() <-chan struct{} {
	if s == nil {
		return nil
	}
	return s.ctx.Done()
}

// stop ends a session, if there is one: its jobs go back on the queue.
func (s *session) stop() {
	if s == nil {
		return
	}
	s.cancel()
	s.slots.Wait()
	s.triers.close()
	if err := os.RemoveAll(s.dir); err != nil {
		s.Log.Debug("a folder stays", "error", err)
	}
	_ = s.conn.FlushTimeout(answerWait) // what was said last
}

// fetch gets the files of the work.
func (s *session) fetch(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	o, err := s.js.ObjectStore(ctx, s.files())
	if err != nil {
		return err
	}
	data, err := o.GetBytes(ctx, filesName)
	if err != nil {
		return err
	}
	return unpack(bytes.NewReader(data), s.dir)
}

// serve does one job of a lane after the other.
func (s *session) serve(l lane) {
	var c jetstream.Consumer
	for s.ctx.Err() == nil {
		if l.pin && !s.pinned.Load() {
			select {
			case <-time.After(greetEvery / 10):
			case <-s.ctx.Done():
			}
			continue
		}
		m, err := s.next(l.name, &c)
		if err == nil {
			s.do(m)
		} else if !isTimeout(err) {
			c = nil // the server may be another
			s.rest(err)
		}
	}
}

// next waits a while for a job of a consumer, which it finds first if need be.
func (s *session) next(lane string, c *jetstream.Consumer) (jetstream.Msg, error) {
	ctx, cancel := context.WithTimeout(s.ctx, pullWait)
	defer cancel()
	if *c == nil {
		found, err := s.js.Consumer(ctx, s.stream(), lane)
		if err != nil {
			return nil, err
		}
		*c = found
	}
	return (*c).Next(jetstream.FetchContext(ctx))
}

// rest waits after an error of the server, and ends the session if its queue is gone.
func (s *session) rest(err error) {
	s.Log.Debug("the server", "error", err)
	ctx, cancel := context.WithTimeout(s.ctx, attemptWait)
	defer cancel()
	if _, err := s.js.Stream(ctx, s.stream()); isGone(err) {
		s.gone.Do(func() { s.Log.Info("the tuning has ended", "tuning", s.tune) })
		s.cancel()
	}
	select {
	case <-time.After(retryWait):
	case <-s.ctx.Done():
	}
}

// do does a job and puts its result on the queue, then takes the job off it.
func (s *session) do(m jetstream.Msg) {
	s.busy.Add(1)
	defer func() {
		s.busy.Add(-1)
		s.last.Store(time.Now().UnixNano())
	}()
	meta, err := m.Metadata()
	if err != nil {
		_ = m.Term() // it is no job
		return
	}
	id, kind := lastToken(m.Subject()), kindOf(m.Subject())
	if meta.NumDelivered > 1 && s.has(id) { // its worker ended between result and acknowledgement
		_ = m.Ack()
		return
	}
	var r result
	var j job
	switch err := decode(m.Data(), &j); {
	case err != nil:
		r.Error = fmt.Sprintf("a job that cannot be read: %v", err)
	case meta.NumDelivered > MaxDeliveries:
		r = hopeless(kind)
	default:
		r, err = s.try(m, kind, &j)
		if s.ctx.Err() != nil {
			_ = m.Nak() // if that fails it is handed out again later
			return
		}
		if err != nil {
			r.Error = err.Error()
		}
	}
	r.Worker = s.Name
	s.finish(m, id, r)
}

// try does what a job asks for and says meanwhile that it is under way.
func (s *session) try(m jetstream.Msg, kind string, j *job) (r result, err error) {
	ctx, cancel := context.WithCancel(s.ctx)
	var beats sync.WaitGroup
	beats.Go(func() {
		for {
			select {
			case <-time.After(s.ackWait / 4):
				_ = m.InProgress() // the next may get through
			case <-ctx.Done():
				return
			}
		}
	})
	defer beats.Wait()
	defer cancel()
	done := &s.done[1]
	switch t := s.triers.Timer; {
	case kind == doCompile:
		done = &s.done[0]
		r.Built, r.Code, err = s.triers.Cores.CompileCode(ctx, j.Point)
	case kind == doCheck:
		r.Ran, err = s.triers.Cores.RunCode(ctx, j.Point, j.Samples, j.Code)
	case onGPU(kind) && t != nil:
		s.gpu.Lock()
		defer s.gpu.Unlock()
		r.Ran, err = t.RunCode(ctx, j.Point, j.Samples, j.Code)
	default:
		err = fmt.Errorf("a job to %q: this worker cannot", clip(kind, 50))
	}
	done.Add(1)
	return r, err
}

// hopeless is what becomes of a job that ended all who tried it.
func hopeless(kind string) (r result) {
	why := fmt.Sprintf("each of the %d workers that tried it ended", MaxDeliveries)
	if kind == doCompile {
		r.Built = trial.Built{Outcome: store.Compile, Error: why}
	} else {
		r.Ran = trial.Ran{Outcome: store.Runtime, Error: why}
	}
	return r
}

// has tells whether a job's result is on the queue.
func (s *session) has(id string) bool {
	ctx, cancel := context.WithTimeout(s.ctx, answerWait)
	defer cancel()
	stream, err := s.js.Stream(ctx, s.stream())
	if err != nil {
		return false
	}
	_, err = stream.GetLastMsgForSubject(ctx, s.result(id))
	return err == nil
}

// finish puts a result on the queue, however long the server is away, and acknowledges
// the job.
func (s *session) finish(m jetstream.Msg, id string, r result) {
	data, err := encodeResult(r, s.conn.MaxPayload())
	if err != nil { // a number that is none
		data, _ = encodeResult(result{Worker: s.Name, Error: err.Error()}, s.conn.MaxPayload())
	}
	for {
		err := put(s.ctx, s.js, s.result(id), data)
		if err == nil {
			break
		}
		s.rest(err)
		if s.ctx.Err() != nil {
			_ = m.Nak()
			return
		}
		_ = m.InProgress()
	}
	ctx, cancel := context.WithTimeout(s.ctx, attemptWait)
	defer cancel()
	if err := m.DoubleAck(ctx); err != nil {
		s.Log.Debug("a job was not acknowledged", "error", err)
	}
}
