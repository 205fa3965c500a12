package bench

import (
	"fmt"
	"path/filepath"

	"github.com/kgen-dev/kgen/bench/numcheck"
	"github.com/kgen-dev/kgen/codegen/ptx"
	"github.com/kgen-dev/kgen/internal/userfile"
)

// Case is one thing to run: PTX, buffers with what they should hold at the
// end, and launches over them. ReadCase reads one from its file; the form of
// the file stands in testdata/ptx/foreign/README.md.
type Case struct {
	File      string // for messages
	PTXFile   string
	PTX       []byte
	Buffers   []CaseBuffer
	Launches  []CaseLaunch
	Tolerance numcheck.Tolerance
	Fault     FaultClass // that must be reported; "" is none
	Note      string
}

// CaseBuffer is a buffer of a case.
type CaseBuffer struct {
	Name  string // of the case's "buffers"; "" for one that stands as an argument
	Arg   int    // the argument, or the place in "buffers", from 0
	Type  numcheck.Type
	Shape []int64
	Align int64  // bytes; 0 is 256
	Data  []byte // contents before the first launch; nil is never written
	Want  []byte // contents after the last; nil is not compared
	Unset []bool // by element: need not be written; nil: where Want is known all must
}

// Size is the buffer's size in bytes.
func (b *CaseBuffer) Size() int64 {
	n := int64(b.Type.Size())
	for _, d := range b.Shape {
		n *= d
	}
	return n
}

// CaseLaunch is a launch of a case.
type CaseLaunch struct {
	Kernel               string
	Grid, Block, Cluster [3]uint32 // cluster extents of 0 are not given
	SharedBytes          int64     // dynamic
	Args                 []CaseArg
}

// CaseArg is an argument: a buffer's address plus an offset, a tensor map of
// it, or bytes, which may have such parts.
type CaseArg struct {
	Buffer int // in Case.Buffers; -1 is none
	Offset int64
	Bytes  []byte
	Kind   string // "f32", "bytes", ... for messages

	Map *TensorMap // of the buffer from the offset on, instead of its address

	Parts []CasePart // that lie over Bytes
}

// InputError says that a case can't be run as it is: the fault is the user's.
type InputError struct{ Err error }

func (e *InputError) Error() string { return e.Err.Error() }
func (e *InputError) Unwrap() error { return e.Err }

func inputErrorf(format string, args ...any) error {
	return &InputError{fmt.Errorf(format, args...)}
}

// Limits of a launch: CUDA C++ Programming Guide, technical specifications per
// compute capability.
const (
	maxGridX        = 1<<31 - 1
	maxGridYZ       = 65535
	maxBlockXY      = 1024
	maxBlockZ       = 64
	maxBlockThreads = 1024
	maxSharedBytes  = 1 << 20 // above any GPU's
	maxBufferBytes  = 1 << 36
)

// Validate refuses extents that no GPU takes.
func (l *CaseLaunch) Validate() error {
	for i, n := range l.Grid {
		if limit := [3]uint32{maxGridX, maxGridYZ, maxGridYZ}[i]; n < 1 || n > limit {
			return fmt.Errorf("grid %v: want 1 to %d in dimension %d", l.Grid, limit, i)
		}
	}
	threads := uint64(1)
	for i, n := range l.Block {
		if limit := [3]uint32{maxBlockXY, maxBlockXY, maxBlockZ}[i]; n < 1 || n > limit {
			return fmt.Errorf("block %v: want 1 to %d in dimension %d", l.Block, limit, i)
		}
		threads *= uint64(n)
	}
	if threads > maxBlockThreads {
		return fmt.Errorf("block %v has %d threads: want at most %d", l.Block, threads, maxBlockThreads)
	}
	for i, n := range l.Cluster {
		if n != 0 && l.Grid[i]%n != 0 {
			return fmt.Errorf("cluster %v: want divisors of the grid %v", l.Cluster, l.Grid)
		}
	}
	if l.SharedBytes < 0 || l.SharedBytes > maxSharedBytes {
		return fmt.Errorf("dynamic_shared %d: want 0 to %d bytes", l.SharedBytes, maxSharedBytes)
	}
	return nil
}

// ReadCase reads a case and the files it names, which are relative to its own.
// The error is an *InputError.
func ReadCase(file string) (*Case, error) {
	text, err := userfile.Read(file, maxCaseBytes)
	if err != nil {
		return nil, &InputError{err}
	}
	c, err := parseCase(text, filepath.Dir(file))
	if err != nil {
		return nil, inputErrorf("%s: %w", file, err)
	}
	c.File = file
	return c, nil
}

// ParseCase reads the text of a case that is not written yet, in the folder that it is for.
// The error is an *InputError.
func ParseCase(text []byte, dir string) (*Case, error) {
	c, err := parseCase(text, dir)
	if err != nil {
		return nil, &InputError{err}
	}
	return c, nil
}

const (
	maxCaseBytes = 16 << 20
	maxPTXBytes  = ptx.MaxSource
)
