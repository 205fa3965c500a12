package trial

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
)

// request asks a child process for one thing.
type request struct {
	ID      int    `json:"id"`
	Do      string `json:"do"` // "prepare", "compile" or "run"
	Point   []int  `json:"point,omitempty"`
	Samples int    `json:"samples,omitempty"`
	Send    bool   `json:"send,omitempty"`  // what was compiled goes into the reply
	Code    *Code  `json:"code,omitempty"`  // to run, compiled elsewhere
	Cores   int    `json:"cores,omitempty"` // for the child; 0: as before
}

// reply is what came of a request.
type reply struct {
	ID    int    `json:"id"`
	Built Built  `json:"built,omitzero"`
	Code  *Code  `json:"code,omitempty"`
	Ran   Ran    `json:"ran,omitzero"`
	Error string `json:"error,omitempty"` // after which nothing can be tried

	Mistake bool `json:"mistake,omitempty"` // the error is an ErrMistake
}

// preparer is a Bench that has something to do before its first run.
type preparer interface {
	Prepare(ctx context.Context) error
}

// Serve answers a parent's requests, one line of JSON each, until in ends, each on as many
// cores as the parent says. When that happens in the middle of one, as when the parent was
// killed, it ends the process.
func Serve(ctx context.Context, b Bench, in io.Reader, out io.Writer) error {
	requests := make(chan request)
	broken := make(chan error, 1)
	busy := make(chan struct{}, 1)
	go func() {
		d := json.NewDecoder(in)
		for {
			var r request
			if err := d.Decode(&r); err != nil {
				select {
				case busy <- struct{}{}: // nothing is being done
					broken <- err
				default:
					os.Exit(1)
				}
				return
			}
			busy <- struct{}{} // at once: the end of in may be next
			requests <- r
		}
	}()
	e := json.NewEncoder(out)
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case err := <-broken:
			if errors.Is(err, io.EOF) {
				return nil
			}
			return err
		case r := <-requests:
			if r.Cores > 0 {
				runtime.GOMAXPROCS(r.Cores)
			}
			answer := serve(ctx, b, r)
			<-busy
			if err := e.Encode(answer); err != nil {
				return err
			}
		}
	}
}

func serve(ctx context.Context, b Bench, r request) reply {
	a := reply{ID: r.ID}
	var err error
	switch r.Do {
	case "prepare":
		if p, ok := b.(preparer); ok {
			err = p.Prepare(ctx)
		}
	case "compile":
		a.Built, err = b.Compile(ctx, r.Point)
		if c, ok := b.(carrier); ok && err == nil && r.Send && a.Built.Outcome == "" {
			a.Code = c.Code(r.Point)
		}
	case "run":
		if err = adopt(b, r); err == nil {
			a.Ran, err = b.Run(ctx, r.Point, r.Samples)
		}
	default:
		err = fmt.Errorf("request %q: want prepare, compile or run", r.Do)
	}
	if err != nil {
		a.Error, a.Mistake = err.Error(), errors.Is(err, ErrMistake)
	}
	return a
}
