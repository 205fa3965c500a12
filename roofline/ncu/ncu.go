// Package ncu reads what Nsight Compute exports as CSV: the long form (details
// page, --metrics) and the wide one (raw page), of any version since 2020, of
// the command line and of the GUI, one file or several of the same program.
package ncu

import (
	"bufio"
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"sort"
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
	metrics                     map[string]value
	ordinal                     int // of the kernel's launches in its process
}

// ReadFiles reads files of one program. Metrics of the same launch of the same
// kernel are joined, whichever file or pass they are from.
func ReadFiles(files ...string) (*Report, error) {
	var all []*launch
	r := &Report{}
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
	r := &Report{}
	launches, err := r.read(in, name)
	if err != nil {
		return nil, err
	}
	return r, r.collect(launches)
}

// maxLine bounds a line: names of kernels reach kilobytes.
const maxLine = 1 << 22

// read finds the tables of a file: a header, then rows, with the profiler's and
// the program's own words before, between and after.
func (r *Report) read(in io.Reader, file string) ([]*launch, error) {
	lines := bufio.NewScanner(in)
	lines.Buffer(make([]byte, 1<<16), maxLine)
	ended := true // the last line, by a newline
	lines.Split(func(data []byte, atEOF bool) (int, []byte, error) {
		n, line, err := bufio.ScanLines(data, atEOF)
		if n > 0 {
			ended = data[n-1] == '\n'
		}
		return n, line, err
	})
	var t *table
	var out []*launch
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
			t = next
			continue
		}
		if t == nil || t.foreign(line) {
			continue
		}
		if err := t.row(r, n, split(line, t.separator)); err != nil {
			return nil, err
		}
		if openQuote(line) {
			return nil, &Error{file, n, errOpenQuote}
		}
		if !ended {
			t.cutOff(r, n, line)
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
	return out, decideFor(out)
}

// split reads a line of CSV; nil if it is none. Quotes inside a field may lack
// their doubling, as in some names of kernels.
func split(line []byte, separator rune) []string {
	if fields := splitPlain(string(line), string(separator)); fields != nil {
		return fields
	}
	c := csv.NewReader(bytes.NewReader(line))
	c.LazyQuotes, c.Comma = true, separator
	fields, err := c.Read()
	if err != nil {
		return nil
	}
	return fields
}

// splitPlain splits a line whose fields all stand in quotes without any inside, or none
// at all, as nearly all do; nil if it is another.
func splitPlain(line, separator string) []string {
	between := separator
	if n := len(line); n >= 2 && line[0] == '"' && line[n-1] == '"' {
		line, between = line[1:n-1], `"`+separator+`"`
	}
	fields := strings.Split(line, between)
	if line == "" || slices.ContainsFunc(fields, func(f string) bool { return strings.Contains(f, `"`) }) {
		return nil
	}
	return fields
}

// table is a header and what follows it.
type table struct {
	file    string
	line    int // of the header
	columns []string
	quoted  bool
	wide    bool

	separator rune
	units     []string // of a wide table: in the headers or in the row below
	started   bool     // the row of units is past

	launches []*launch
	byKey    map[string]*launch
}

var unitInHeader = regexp.MustCompile(`^(.*\S)\s*\[([^\]]*)\]$`)

// header returns a table if the line is its header. Spreadsheets of some countries
// write semicolons for commas, or tabs.
func header(file string, n int, line []byte) *table {
	if !bytes.Contains(line, []byte("Kernel Name")) && !bytes.Contains(line, []byte("Function Name")) {
		return nil
	}
	for _, separator := range []rune{',', ';', '\t'} {
		if t := newTable(file, n, split(line, separator), bytes.HasPrefix(line, []byte(`"`))); t != nil {
			t.separator = separator
			return t
		}
	}
	return nil
}

// newTable returns a table if the fields are a header.
func newTable(file string, line int, fields []string, quoted bool) *table {
	if !slices.Contains(fields, "ID") || !slices.Contains(fields, "Kernel Name") && !slices.Contains(fields, "Function Name") {
		return nil
	}
	t := &table{file: file, line: line, quoted: quoted, byKey: map[string]*launch{}, wide: !slices.Contains(fields, "Metric Name")}
	t.units = make([]string, len(fields))
	for i, f := range fields {
		if m := unitInHeader.FindStringSubmatch(f); m != nil && t.wide {
			f, t.units[i], t.started = m[1], m[2], true
		}
		if f == "Function Name" { // the GUI's word
			f = "Kernel Name"
		}
		t.columns = append(t.columns, f)
	}
	return t
}

// foreign says whether a line is not the table's: what the profiler or the
// program prints.
func (t *table) foreign(line []byte) bool {
	if len(bytes.TrimSpace(line)) == 0 || bytes.HasPrefix(line, []byte("==")) {
		return true
	}
	return t.quoted && line[0] != '"'
}

var errOpenQuote = errors.New("a quote without its end: is the file cut off?")

// openQuote says whether a line ends within quotes. Inner quotes are doubled, or lack
// that in pairs.
func openQuote(line []byte) bool { return bytes.Count(line, []byte(`"`))%2 != 0 }

// cutOff notes a last row without a newline, of which nobody can tell whether it is whole.
func (t *table) cutOff(r *Report, n int, line []byte) {
	if !bytes.HasSuffix(line, []byte(`"`)) {
		r.Notes = append(r.Notes, fmt.Sprintf("%s:%d: no newline ends the last line: if the file is cut off, its last value is wrong", t.file, n))
	}
}

func (t *table) cell(fields []string, column string) string {
	if i := slices.Index(t.columns, column); i >= 0 {
		return strings.TrimSpace(fields[i])
	}
	return ""
}

// row takes a line of the table in.
func (t *table) row(r *Report, line int, fields []string) error {
	if len(fields) != len(t.columns) {
		return &Error{t.file, line, fmt.Errorf("%d fields: want the header's %d: is the file cut off?", len(fields), len(t.columns))}
	}
	if t.wide && !t.started {
		t.started = true
		if t.cell(fields, "ID") == "" { // the row of units
			copy(t.units, fields)
			return nil
		}
	}
	kernel := t.cell(fields, "Kernel Name")
	if kernel == "" {
		r.Skipped++
		return nil
	}
	for _, c := range []string{"Block Size", "Grid Size", "CC"} {
		if err := describes(c, value{text: t.cell(fields, c), file: t.file, line: line}); err != nil {
			return err
		}
	}
	l := t.launch(line, fields, kernel)
	if !t.wide {
		name := t.cell(fields, "Metric Name")
		if name == "" { // a rule's row
			return nil
		}
		return l.set(name, value{text: t.cell(fields, "Metric Value"), unit: t.cell(fields, "Metric Unit"), file: t.file, line: line})
	}
	for i, c := range t.columns {
		if identity[c] && c != "Device Name" { // which a launch has elsewhere, or not
			continue
		}
		if err := l.set(c, value{text: strings.TrimSpace(fields[i]), unit: strings.TrimSpace(t.units[i]), file: t.file, line: line}); err != nil {
			return err
		}
	}
	return nil
}

// launch finds the launch that a row is about.
func (t *table) launch(line int, fields []string, kernel string) *launch {
	l := &launch{
		process: t.cell(fields, "Process ID"), device: t.cell(fields, "Device"), id: t.cell(fields, "ID"), kernel: kernel,
		cc:    strings.ReplaceAll(t.cell(fields, "CC"), ",", "."),
		first: value{file: t.file, line: line}, table: t.line, metrics: map[string]value{},
	}
	if absent(l.cc) {
		l.cc = ""
	}
	key := strings.Join([]string{l.process, l.device, t.cell(fields, "Context"), l.id, kernel}, "\x00")
	if known, ok := t.byKey[key]; ok {
		return known
	}
	t.byKey[key] = l
	t.launches = append(t.launches, l)
	return l
}

// set keeps a metric. One that is there with another value means that the row is
// of another pass of the same launch: see split in collect.
func (l *launch) set(metric string, v value) error {
	if absent(v.text) {
		return nil
	}
	if err := describes(metric, v); err != nil {
		return err
	}
	if old, ok := l.metrics[metric]; ok && !same(metric, old, v) && fits(metric, old) == fits(metric, v) && used(metric) {
		return v.errorf("metric %s of kernel %s is there twice for one launch, as %s and as %s: want the passes in files of their own", metric, short(l.kernel), old, v)
	}
	if old, ok := l.metrics[metric]; !ok || !fits(metric, old) {
		l.metrics[metric] = v
	}
	return nil
}

// same says whether two values of a metric are one: the same digits of the same unit.
func same(metric string, a, b value) bool {
	inA, errA := convert(1, a.unit, dimensionOf[metric])
	inB, errB := convert(1, b.unit, dimensionOf[metric])
	return a.text == b.text && (errA != nil) == (errB != nil) && inA == inB
}

// fits says whether a value's unit is of the metric's kind: the details page has
// labels twice, such as Memory Throughput in percent and in bytes a second.
func fits(metric string, v value) bool {
	dim, ok := dimensionOf[metric]
	if !ok {
		return true
	}
	_, err := convert(0, v.unit, dim)
	return err == nil
}

// decideFor finds the notation of a file's numbers.
func decideFor(launches []*launch) error {
	var numbers []value
	for _, l := range launches {
		for _, m := range sorted(l.metrics) {
			if v := l.metrics[m]; isNumeric(v.text) && !identity[m] {
				numbers = append(numbers, v)
			}
		}
	}
	n, err := decide(numbers)
	for _, l := range launches {
		for m, v := range l.metrics {
			v.notation = n
			l.metrics[m] = v
		}
	}
	return err
}

// identity are the columns of a wide table that are no metrics.
var identity = map[string]bool{
	"ID": true, "Process ID": true, "Process Name": true, "Host Name": true, "Kernel Name": true, "Kernel Time": true,
	"Context": true, "Stream": true, "Block Size": true, "Grid Size": true, "Device": true, "CC": true, "thread Domain:Push/Pop_Range:PL_Type:PL_Value:CLR_Type:Color:Msg_Type:Msg": true,
	"Id:Domain:Start/Stop_Range:PL_Type:PL_Value:CLR_Type:Color:Msg_Type:Msg": true, "API Call ID": true, "Section Name": true,
	"Demangled Name": true, "Device Name": true, "Mangled Name": true, "Estimated Speedup": true, "Issues Detected": true, "Rule Name": true,
}

func sorted[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	sort.Strings(keys)
	return keys
}
