//go:build cuda && cgo && linux

package cuda

import "runtime"

// thread is an operating system's thread that a context is current on: the driver
// keeps the context by thread, and goroutines wander.
type thread struct{ work chan func() }

func newThread() *thread {
	t := &thread{work: make(chan func())}
	go func() {
		runtime.LockOSThread() // and never unlocked: the thread ends with the goroutine
		for f := range t.work {
			f()
		}
	}()
	return t
}

// do runs f on the thread and waits for it. What f panics with is panicked here.
func (t *thread) do(f func() error) (err error) {
	var cause any
	done := make(chan struct{})
	t.work <- func() {
		defer close(done)
		defer func() { cause = recover() }()
		err = f()
	}
	<-done
	if cause != nil {
		panic(cause)
	}
	return err
}

func (t *thread) end() { close(t.work) }
