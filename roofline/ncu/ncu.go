// Package ncu reads what Nsight Compute exports as CSV: the long form (details
// page, --metrics) and the wide one (raw page), of any version since 2020, of
// the command line and of the GUI, one file or several of the same program.
package ncu

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/kgen-dev/kgen/internal/userfile"
	"github.com/kgen-dev/kgen/roofline"
)

// Report is what some files hold.
type Report struct {
	Kernels []roofline.Kernel // in the order in which they come first
	Device  string            // the GPU's name, if the files tell
	CC      string            // its compute capability, such as 9.0, if they tell
	Unused  []string          // metrics that nothing here needs, sorted
	Skipped int               // rows of graphs and ranges, which have no kernel
	Notes   []string          // what a reader must know, a sentence each

	unused map[string]bool
}

// Error is what is wrong with a file. It never holds the file's preamble.
type Error struct {
	File string
	Line int
	Err  error
}

func (e *Error) Error() string { return fmt.Sprintf("%s:%d: %v", e.File, e.Line, e.Err) }

func (e *Error) Unwrap() error { return e.Err }

// ErrNoTable is the error for a file that holds no table of Nsight Compute's.
var ErrNoTable = errors.New(`no table: want a line with "ID" and "Kernel Name", as ncu --csv writes`)

// value is a cell.
type value struct {
	text, unit string
	file       string
	line       int
	notation   notation // of the file's numbers
}

func (v value) String() string { return strings.TrimSpace(v.text + " " + v.unit) }

func (v *value) errorf(format string, args ...any) error {
	return &Error{v.file, v.line, fmt.Errorf(format, args...)}
}

// launch is a kernel's run in one file.
type launch struct {
	process, device, id, kernel string
	cc                          string // the GPU's compute capability, with a point
	first                       value  // for errors
	table                       int    // line of its table's header
	metrics                     metrics
	ordinal                     int // of the kernel's launches in its process
}

// ReadFiles reads files of one program. Metrics of the same launch of the same
// kernel are joined, whichever file or pass they are from.
func ReadFiles(files ...string) (*Report, error) {
	var all []*launch
	r := &Report{unused: map[string]bool{}}
	for _, file := range files {
		f, err := userfile.Open(file)
		if err != nil {
			return nil, err
		}
		launches, err := r.read(f, file)
		f.Close()
		if err != nil {
			return nil, err
		}
		all = append(all, launches...)
	}
	return r, r.collect(all)
}

// Read reads one file's text; name is for errors.
func Read(in io.Reader, name string) (*Report, error) {
	r := &Report{unused: map[string]bool{}}
	launches, err := r.read(in, name)
	if err != nil {
		return nil, err
	}
	return r, r.collect(launches)
}

// maxLine bounds a line: names of kernels reach kilobytes.
const maxLine = 1 << 22

// newLines splits a text, and tells whether a newline ends the line that was read last.
func newLines(in io.Reader) (lines *bufio.Scanner, ended *bool) {
	lines, ended = bufio.NewScanner(in), new(bool)
	lines.Buffer(make([]byte, 1<<16), maxLine)
	lines.Split(func(data []byte, atEOF bool) (int, []byte, error) {
		n, line, err := bufio.ScanLines(data, atEOF)
		if n > 0 {
			*ended = data[n-1] == '\n'
		}
		return n, line, err
	})
	return lines, ended
}

// read finds the tables of a file: a header, then rows, with the profiler's and
// the program's own words before, between and after.
func (r *Report) read(in io.Reader, file string) ([]*launch, error) {
	lines, ended := newLines(in)
	var t *table
	var out []*launch
	numbers := &numbers{}
	n := 0
	for lines.Scan() {
		n++
		line := bytes.TrimSuffix(lines.Bytes(), []byte("\r"))
		if n == 1 {
			line = bytes.TrimPrefix(line, []byte("\ufeff"))
		}
		if next := header(file, n, line); next != nil {
			if openQuote(line) {
				return nil, &Error{file, n, errOpenQuote}
			}
			if t != nil {
				out = append(out, t.launches...)
			}
			t, next.numbers, next.report = next, numbers, r
			continue
		}
		if t == nil || t.foreign(line) {
			continue
		}
		if err := t.row(n, t.split(line)); err != nil {
			return nil, err
		}
		if openQuote(line) {
			return nil, &Error{file, n, errOpenQuote}
		}
		if !*ended {
			t.cutOff(n, line)
		}
	}
	if err := lines.Err(); err != nil {
		if errors.Is(err, bufio.ErrTooLong) {
			err = fmt.Errorf("a line of more than %d MiB: want one of Nsight Compute's CSV", maxLine>>20)
		}
		return nil, &Error{file, n + 1, err}
	}
	if t == nil {
		return nil, &Error{file, max(n, 1), ErrNoTable}
	}
	out = append(out, t.launches...)
	if len(out) == 0 && r.Skipped == 0 {
		return nil, &Error{file, n, errors.New("a table without rows: want at least one launch")}
	}
	notation, err := numbers.decide()
	for _, l := range out {
		for i := range l.metrics {
			l.metrics[i].notation = notation
		}
	}
	return out, err
}

// identity are the columns of a wide table that are no metrics.
var identity = map[string]bool{
	"ID": true, "Process ID": true, "Process Name": true, "Host Name": true, "Kernel Name": true, "Kernel Time": true,
	"Context": true, "Stream": true, "Block Size": true, "Grid Size": true, "Device": true, "CC": true, "thread Domain:Push/Pop_Range:PL_Type:PL_Value:CLR_Type:Color:Msg_Type:Msg": true,
	"Id:Domain:Start/Stop_Range:PL_Type:PL_Value:CLR_Type:Color:Msg_Type:Msg": true, "API Call ID": true, "Section Name": true,
	"Demangled Name": true, "Device Name": true, "Mangled Name": true, "Estimated Speedup": true, "Issues Detected": true, "Rule Name": true,
}
