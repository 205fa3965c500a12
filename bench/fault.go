package bench

import (
	"fmt"
	"strings"
)

// FaultClass is the kind of a kernel's misdeed.
type FaultClass string

// The classes of faults; nothing else is reported.
const (
	GlobalOutOfBounds       FaultClass = "global-out-of-bounds"
	SharedOutOfBounds       FaultClass = "shared-out-of-bounds"
	LocalOutOfBounds        FaultClass = "local-out-of-bounds"
	MisalignedAddress       FaultClass = "misaligned-address"
	UninitialisedGlobalRead FaultClass = "uninitialised-global-read"
	UninitialisedSharedRead FaultClass = "uninitialised-shared-read"
	UninitialisedRegister   FaultClass = "uninitialised-register-read"
	SharedRace              FaultClass = "shared-race"
	GlobalRace              FaultClass = "global-race"
	AsyncCopyRace           FaultClass = "async-copy-race"
	MissingProxyFence       FaultClass = "missing-proxy-fence"
	BarrierDivergence       FaultClass = "barrier-divergence"
	DivergentCollective     FaultClass = "divergent-collective"
	MbarrierMisuse          FaultClass = "mbarrier-misuse"
	Deadlock                FaultClass = "deadlock"
	BadDescriptor           FaultClass = "bad-descriptor"
	WriteToConst            FaultClass = "write-to-const"
)

// FaultClasses are all classes, in the order they are documented.
func FaultClasses() []FaultClass {
	return []FaultClass{
		GlobalOutOfBounds, SharedOutOfBounds, LocalOutOfBounds, MisalignedAddress,
		UninitialisedGlobalRead, UninitialisedSharedRead, UninitialisedRegister,
		SharedRace, GlobalRace, AsyncCopyRace, MissingProxyFence,
		BarrierDivergence, DivergentCollective, MbarrierMisuse, Deadlock,
		BadDescriptor, WriteToConst,
	}
}

// ParseFaultClass finds a class by its name.
func ParseFaultClass(name string) (FaultClass, error) {
	all := FaultClasses()
	names := make([]string, len(all))
	for i, c := range all {
		if string(c) == name {
			return c, nil
		}
		names[i] = string(c)
	}
	return "", fmt.Errorf("fault class %q: want one of %s", name, strings.Join(names, ", "))
}

// Site is a place in a running kernel.
type Site struct {
	Block  [3]uint32 `json:"block"`
	Thread [3]uint32 `json:"thread"`
	Line   int       `json:"line"`             // in the PTX text, from 1; 0 is unknown
	Source string    `json:"source,omitempty"` // "kernel.cu:12", where the PTX says
	PTX    string    `json:"ptx,omitempty"`    // the instruction
}

// KernelError says that a kernel ended its launch itself, and why: a trap, a
// failed assertion, a jump to nowhere.
type KernelError struct {
	File    string `json:"file"` // the PTX
	Kernel  string `json:"kernel"`
	Site           // the thread
	Message string `json:"message"`
}

func (e *KernelError) Error() string {
	if e.Line == 0 { // a GPU does not say where
		return fmt.Sprintf("%s: kernel %s: %s", e.File, e.Kernel, e.Message)
	}
	at := fmt.Sprintf("%s:%d", e.File, e.Line)
	if e.Source != "" {
		at += " (" + e.Source + ")"
	}
	return fmt.Sprintf("%s: kernel %s, block %v, thread %v: %s", at, e.Kernel, e.Block, e.Thread, e.Message)
}

// InternalError is a bug of kgen: a device panicked.
type InternalError struct {
	Where string // "kernel k of k.ptx, block [0 0 0], line 12"
	Cause error
	Stack []byte
}

func (e *InternalError) Error() string { return fmt.Sprintf("bug in kgen: %s: %v", e.Where, e.Cause) }

func (e *InternalError) Unwrap() error { return e.Cause }

// Fault is one reported misdeed. Faults of the same class, instruction and
// other instruction are one report, with Count.
type Fault struct {
	Class   FaultClass `json:"class"`
	Kernel  string     `json:"kernel"`
	Site               // the first place
	Address *uint64    `json:"address,omitempty"`
	Space   string     `json:"space,omitempty"` // of Address: "global", "shared", ...
	Message string     `json:"message"`
	Other   *Site      `json:"other,omitempty"` // a race's other side
	Count   int64      `json:"count"`           // how often, over all threads

	// Expected says that the case names this class as the one that must come.
	Expected bool `json:"expected"`
}
