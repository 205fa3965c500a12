package ncu

import (
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// table is a header and what follows it.
type table struct {
	file    string
	line    int // of the header
	columns []string
	quoted  bool
	wide    bool
	at      places

	separator rune
	units     []string // of a wide table: in the headers or in the row below
	started   bool     // the row of units is past

	report   *Report
	numbers  *numbers // of the file
	launches []*launch
	byKey    map[key]*launch
	names    map[string]*metric
	words    map[string]string // that many rows repeat, such as units
	fields   []string          // of a row, used again for the next
}

// places are the columns of what rows have beside metrics; -1 where there is none.
type places struct {
	id, process, kernel, context, device, cc, block, grid, metric, unit, value int
}

// key tells launches of a table apart.
type key struct{ process, device, context, id, kernel string }

var unitInHeader = regexp.MustCompile(`^(.*\S)\s*\[([^\]]*)\]$`)

// header returns a table if the line is its header. Spreadsheets of some countries
// write semicolons for commas, or tabs.
func header(file string, n int, line []byte) *table {
	if !bytes.Contains(line, []byte("Kernel Name")) && !bytes.Contains(line, []byte("Function Name")) {
		return nil
	}
	for _, separator := range []rune{',', ';', '\t'} {
		if t := newTable(file, n, split(nil, line, separator), bytes.HasPrefix(line, []byte(`"`))); t != nil {
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
	t := &table{
		file: file, line: line, quoted: quoted, wide: !slices.Contains(fields, "Metric Name"), units: make([]string, len(fields)),
		byKey: map[key]*launch{}, names: map[string]*metric{}, words: map[string]string{},
	}
	for i, f := range fields {
		if m := unitInHeader.FindStringSubmatch(f); m != nil && t.wide {
			f, t.units[i], t.started = m[1], m[2], true
		}
		if f == "Function Name" { // the GUI's word
			f = "Kernel Name"
		}
		t.columns = append(t.columns, f)
	}
	place := func(column string) int { return slices.Index(t.columns, column) }
	t.at = places{
		id: place("ID"), process: place("Process ID"), kernel: place("Kernel Name"), context: place("Context"), device: place("Device"), cc: place("CC"),
		block: place("Block Size"), grid: place("Grid Size"), metric: place("Metric Name"), unit: place("Metric Unit"), value: place("Metric Value"),
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
func (t *table) cutOff(n int, line []byte) {
	if !bytes.HasSuffix(line, []byte(`"`)) {
		t.report.Notes = append(t.report.Notes, fmt.Sprintf("%s:%d: no newline ends the last line: if the file is cut off, its last value is wrong", t.file, n))
	}
}

// split reads a row, which holds until the next one is read.
func (t *table) split(line []byte) []string {
	fields := split(t.fields[:0], line, t.separator)
	if fields != nil {
		t.fields = fields
	}
	return fields
}

// split reads a line of CSV into a slice that it may use; nil if it is none. Quotes inside
// a field may lack their doubling, as in some names of kernels.
func split(into []string, line []byte, separator rune) []string {
	if fields := splitPlain(into, string(line), string(separator)); fields != nil {
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
func splitPlain(into []string, line, separator string) []string {
	between, quotes := separator, 0
	if n := len(line); n >= 2 && line[0] == '"' && line[n-1] == '"' {
		quotes = strings.Count(line, `"`)
		line, between = line[1:n-1], `"`+separator+`"`
	} else if line == "" || strings.Contains(line, `"`) {
		return nil
	}
	empty := line == ""
	for {
		i := strings.Index(line, between)
		if i < 0 {
			break
		}
		into = append(into, line[:i])
		line = line[i+len(between):]
	}
	into = append(into, line)
	if empty || quotes != 0 && quotes != 2*len(into) {
		return nil
	}
	return into
}

// cell is a field without blanks around it, "" where the column is missing.
func cell(fields []string, place int) string {
	if place < 0 {
		return ""
	}
	return strings.TrimSpace(fields[place])
}

// word returns a text that does not hold its row in memory, and is there once.
func (t *table) word(text string) string {
	if known, ok := t.words[text]; ok {
		return known
	}
	text = strings.Clone(text)
	t.words[text] = text
	return text
}

// row takes a line of the table in.
func (t *table) row(line int, fields []string) error {
	if len(fields) != len(t.columns) {
		return &Error{t.file, line, fmt.Errorf("%d fields: want the header's %d: is the file cut off?", len(fields), len(t.columns))}
	}
	if t.wide && !t.started {
		t.started = true
		if cell(fields, t.at.id) == "" { // the row of units
			copy(t.units, fields)
			return nil
		}
	}
	kernel := cell(fields, t.at.kernel)
	if kernel == "" {
		t.report.Skipped++
		return nil
	}
	for _, place := range []int{t.at.block, t.at.grid, t.at.cc} {
		if place < 0 {
			continue
		}
		if err := describes(t.columns[place], value{text: cell(fields, place), file: t.file, line: line}); err != nil {
			return err
		}
	}
	l := t.launch(line, fields, kernel)
	if !t.wide {
		name := cell(fields, t.at.metric)
		if name == "" { // a rule's row
			return nil
		}
		return t.set(l, name, value{text: cell(fields, t.at.value), unit: cell(fields, t.at.unit), file: t.file, line: line})
	}
	for i, c := range t.columns {
		if identity[c] && c != deviceName { // which a launch has elsewhere, or not
			continue
		}
		if err := t.set(l, c, value{text: strings.TrimSpace(fields[i]), unit: strings.TrimSpace(t.units[i]), file: t.file, line: line}); err != nil {
			return err
		}
	}
	return nil
}

// launch finds the launch that a row is about.
func (t *table) launch(line int, fields []string, kernel string) *launch {
	k := key{cell(fields, t.at.process), cell(fields, t.at.device), cell(fields, t.at.context), cell(fields, t.at.id), kernel}
	if known, ok := t.byKey[k]; ok {
		return known
	}
	k = key{t.word(k.process), t.word(k.device), t.word(k.context), strings.Clone(k.id), t.word(k.kernel)}
	l := &launch{
		process: k.process, device: k.device, id: k.id, kernel: k.kernel,
		cc:    t.word(strings.ReplaceAll(cell(fields, t.at.cc), ",", ".")),
		first: value{file: t.file, line: line}, table: t.line,
	}
	if absent(l.cc) {
		l.cc = ""
	}
	t.byKey[k] = l
	t.launches = append(t.launches, l)
	return l
}

// named finds what is known of a metric.
func (t *table) named(name string) *metric {
	if m, ok := t.names[name]; ok {
		return m
	}
	name = strings.Clone(name)
	m := &metric{name: name, used: used(name), identity: identity[name]}
	t.names[name] = m
	return m
}

// set keeps a metric that can matter. One that is there with another value means that the
// row is of another pass of the same launch: see passes.
func (t *table) set(l *launch, name string, v value) error {
	if absent(v.text) {
		return nil
	}
	if err := describes(name, v); err != nil {
		return err
	}
	if name == memoryLabel && v.unit == "%" {
		name = memoryShare
	}
	m := t.named(name)
	if !m.identity {
		t.numbers.add(&v)
	}
	if !m.used && name != deviceName {
		if !m.identity && !m.noted {
			m.noted, t.report.unused[m.name] = true, true
		}
		return nil
	}
	v.unit = t.word(v.unit)
	old := l.metrics.get(name)
	switch {
	case old == nil:
		v.text = strings.Clone(v.text)
		l.metrics = append(l.metrics, entry{m.name, v})
	case !same(name, *old, v) && fits(name, *old) == fits(name, v) && m.used:
		return v.errorf("metric %s of kernel %s is there twice for one launch, as %s and as %s: want the passes in files of their own", name, short(l.kernel), *old, v)
	case !fits(name, *old):
		v.text = strings.Clone(v.text)
		*old = v
	}
	return nil
}

// metric is what a table knows of a name.
type metric struct {
	name     string
	used     bool // its value can matter
	identity bool
	noted    bool // among those that nothing needs
}

// deviceName is a column that tells the GPU.
const deviceName = "Device Name"

// entry is a metric of a launch.
type entry struct {
	name string
	value
}

// metrics are those of a launch that can matter, in the order of their rows: a few, each once.
type metrics []entry

// get returns a metric's value, nil where the launch has none.
func (m metrics) get(name string) *value {
	for i := range m {
		if m[i].name == name {
			return &m[i].value
		}
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
