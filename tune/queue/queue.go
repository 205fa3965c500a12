// Package queue tries configurations on other machines. A tuner puts a job for every
// compilation and every run on a work queue of NATS JetStream, and workers take them. The
// tuner's end is a trial.Bench; the worker's end hands the jobs to child processes.
//
// A job leaves the queue when its result is in it, and a result when the tuner's store
// has what it says: whoever dies, what was done stays and what was not is done by another.
// Doing a job twice gives one result.
package queue

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/kgen-dev/kgen/tune/trial"
)

// Schema is the version of the messages between a tuner and its workers.
const Schema = 1

var (
	// ErrAccess says that a server does not take a token or a certificate, or that its
	// own is not to be trusted.
	ErrAccess = errors.New("no access")
	// ErrUnreachable says that no server answers at an address.
	ErrUnreachable = errors.New("no server answers")
	// ErrMismatch says that a worker is of another version or kind than its tuner.
	ErrMismatch = errors.New("refused")
	// ErrUnderWay says that another process tunes the same.
	ErrUnderWay = errors.New("the same tuning is under way in another process")
	// ErrNoJetStream says that a server keeps no queues.
	ErrNoJetStream = errors.New("the server has no JetStream: want one that was started with it")
	// ErrInUse says that another process uses a folder or a device.
	ErrInUse = errors.New("in use by another process")
)

// Times of the protocol.
const (
	// DefaultAckWait is after how long without a sign of its worker a job goes to another.
	DefaultAckWait = 10 * time.Second
	greetEvery     = time.Second        // a worker says that it is there
	lostAfter      = 5 * time.Second    // without that it counts as lost
	answerWait     = 5 * time.Second    // for the server
	attemptWait    = 2 * time.Second    // for the server, in what is tried again: it may be another by then
	pullWait       = 2 * time.Second    // of a request for a job, likewise
	retryWait      = time.Second / 2    // after an error of the connection
	keptFor        = 7 * 24 * time.Hour // messages, and folders of servers, that nobody came back for
)

// MaxDeliveries is how many workers may end over a job before it counts as failed.
const MaxDeliveries = 5

// Identity is what a tuner and its workers agree in: what they compute must not depend on
// who does it.
type Identity struct {
	Schema   int    `json:"schema"`
	Kgen     string `json:"kgen"`     // version
	Compiler string `json:"compiler"` // name and version
	GPU      string `json:"gpu"`      // id in codegen/target
	Device   string `json:"device"`   // "vm" or "cuda"
	Driver   string `json:"driver"`   // the device's name; "" of the virtual machine
}

// differs says in what a worker differs from what is wanted of it; "" if in nothing. A
// driver that is not known yet is any.
func (want *Identity) differs(is *Identity) string {
	for _, e := range []struct{ what, want, is string }{
		{"messages of version", fmt.Sprint(want.Schema), fmt.Sprint(is.Schema)},
		{"kgen", want.Kgen, is.Kgen},
		{"compiler", want.Compiler, is.Compiler},
		{"device", want.Driver, is.Driver},
	} {
		if e.want != e.is && (e.what != "device" || e.want != "") {
			return fmt.Sprintf("it has %s %q: want %q, the tuner's", e.what, clip(e.is, 100), e.want)
		}
	}
	return ""
}

// Work says to a worker what is tried.
type Work struct {
	Space string `json:"space,omitempty"` // the description's file among those of the work
	// Family and Flags are what is tried instead of a description.
	Family string            `json:"family,omitempty"`
	Flags  map[string]string `json:"flags,omitempty"`
	Seed   uint64            `json:"seed"`
}

// Subjects and names on the server: one stream for each tuning.
const greetings = "kgen.greet"

type names struct{ tune string }

func (n names) stream() string           { return "KGEN-" + n.tune }
func (n names) files() string            { return "KGEN-" + n.tune }
func (n names) all() string              { return "kgen.tune." + n.tune + ".>" }
func (n names) jobs(do string) string    { return "kgen.tune." + n.tune + "." + do + ".*" }
func (n names) job(do, id string) string { return "kgen.tune." + n.tune + "." + do + "." + id }
func (n names) result(id string) string  { return n.job(doResult, id) }
func (n names) presence() string         { return "kgen.tuner." + n.tune }
func lastToken(subject string) string    { return subject[strings.LastIndexByte(subject, '.')+1:] }
func validToken(text string) bool        { return text != "" && !strings.ContainsAny(text, ".*> \t\r\n") }

// What is on the queue.
const (
	doCompile = "compile"
	doCheck   = "check" // run on the virtual machine
	doTime    = "time"  // run on a GPU
	doFinal   = "final" // run on the one GPU that is chosen for it
	doResult  = "result"
)

// onGPU tells whether a job is for a GPU.
func onGPU(do string) bool { return do == doTime || do == doFinal }

// lane is a consumer of jobs: what it hands out, and how many a worker takes at a time.
type lane struct {
	name string
	does []string
	gpu  bool // a device does one at a time
	pin  bool // it is for one worker alone
}

// lanes are a device's. Runs on the virtual machine are work for a core like compiling;
// those on a GPU wait for each other, and compiling does not wait for them.
func lanes(device string) []lane {
	all := []lane{{name: "cores", does: []string{doCompile, doCheck}}}
	if device == "cuda" {
		all = append(all, lane{name: "device", does: []string{doTime}, gpu: true}, lane{name: "pinned", does: []string{doFinal}, gpu: true, pin: true})
	}
	return all
}

// shortName is one of few letters for parts.
func shortName(parts ...string) string {
	return trial.Digest(parts...)[:24]
}

func clip(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "") + "..."
}

// isDuplicate tells whether a message was refused because one like it is there.
func isDuplicate(err error) bool {
	var api *jetstream.APIError
	return errors.As(err, &api) && strings.Contains(api.Description, "per subject")
}

// isGone tells whether a tuning's queue is no more.
func isGone(err error) bool {
	return errors.Is(err, jetstream.ErrStreamNotFound)
}

// isTimeout tells whether there was just nothing to do.
func isTimeout(err error) bool {
	return errors.Is(err, nats.ErrTimeout) || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, jetstream.ErrNoMessages)
}

// kindOf is what a job's subject asks for.
func kindOf(subject string) string {
	words := strings.Split(subject, ".")
	if len(words) < 2 {
		return ""
	}
	return words[len(words)-2]
}
