package replay

import (
	"bytes"
	"context"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/kgen-dev/kgen/bench"
	"github.com/kgen-dev/kgen/internal/jsontext"
)

// statusWords are the words of the formats for how a configuration ended.
var statusWords = map[string]Status{
	"ok": Correct, "correct": Correct, "valid": Correct,
	"compile": Compile, "compilation": Compile, "CompilationFailed": Compile, "CompilationFailedConfig": Compile,
	"runtime": Runtime, "ComputationFailed": Runtime, "RuntimeFailedConfig": Runtime, "DeviceLimitsExceeded": Runtime,
	"correctness": Correctness, "ValidationFailed": Correctness,
	"timeout":     Timeout,
	"constraints": Constraints, "InvalidConfig": Constraints,
}

// statusOf reads a word, whatever its case; one that is not known is a failed run.
func statusOf(text string) Status {
	for w, s := range statusWords {
		if strings.EqualFold(w, text) {
			return s
		}
	}
	return Runtime
}

// lenient is a number or anything else, such as null or the name of a failure.
type lenient struct {
	ms   float64
	ok   bool
	word string
}

func (l *lenient) UnmarshalJSON(b []byte) error {
	l.ok = json.Unmarshal(b, &l.ms) == nil && string(b) != "null"
	if !l.ok {
		_ = json.Unmarshal(b, &l.word) // else it stays empty: no time
	}
	return nil
}

func (l *lenient) value() float64 {
	if !l.ok {
		return 0
	}
	return l.ms
}

func total(parts ...lenient) float64 {
	sum := 0.0
	for _, p := range parts {
		sum += p.value()
	}
	return sum
}

func samples(in []lenient, unit float64) []float64 {
	var out []float64
	for _, s := range in {
		if s.ok {
			out = append(out, s.ms*unit)
		}
	}
	return out
}

// kernelTuner reads a record of a cache. Its key repeats the values, which are members
// too; a failure is a word in place of the time, or under __error__.
func (r *reader) kernelTuner(raw json.RawMessage) (Entry, error) {
	if r.names == nil {
		if err := r.kernelTunerHead(); err != nil {
			return Entry{}, err
		}
	}
	var members map[string]json.RawMessage
	var e struct {
		Time    lenient   `json:"time"`
		Error   *lenient  `json:"__error__"`
		Times   []lenient `json:"times"`
		Compile lenient   `json:"compile_time"`
		Verify  lenient   `json:"verification_time"`
		Bench   lenient   `json:"benchmark_time"`
		Frame   lenient   `json:"framework_time"`
		Search  lenient   `json:"strategy_time"`
	}
	if err := errors.Join(json.Unmarshal(raw, &members), json.Unmarshal(raw, &e)); err != nil {
		return Entry{}, err
	}
	values, err := r.values(func(n string) (json.RawMessage, bool) { v, ok := members[n]; return v, ok })
	if err != nil {
		return Entry{}, err
	}
	out := Entry{Values: values, Status: Correct, CostMS: total(e.Compile, e.Verify, e.Bench, e.Frame, e.Search)}
	switch {
	case e.Error != nil:
		out.Status = statusOf(e.Error.word)
	case e.Time.word != "":
		out.Status = statusOf(e.Time.word)
	}
	if out.Status == Correct {
		out.Samples = samples(e.Times, 1)
	}
	out.timed(e.Time.value())
	out.Own = ownOf(members["kgen"], out.MS)
	return out, nil
}

func (r *reader) kernelTunerHead() error {
	_ = json.Unmarshal(r.head["objective"], &r.objective) // may be missing
	var names []string
	if err := json.Unmarshal(r.head["tune_params_keys"], &names); err != nil || len(names) == 0 {
		return errors.New("no tune_params_keys before the cache: want a list of the parameters' names")
	}
	return r.declare(names)
}

// measurement is one of a record of T4 results.
type measurement struct {
	Name  string  `json:"name"`
	Value lenient `json:"value"`
	Unit  string  `json:"unit"`
}

// t4 reads a record of T4 results.
func (r *reader) t4(raw json.RawMessage) (Entry, error) {
	var e struct {
		Configuration json.RawMessage `json:"configuration"`
		Objectives    []string        `json:"objectives"`
		Invalidity    string          `json:"invalidity"`
		Times         struct {
			Runtimes    []lenient `json:"runtimes"`
			Compilation lenient   `json:"compilation"`
			Schema      lenient   `json:"compilation_time"` // the schema's name for it
			Framework   lenient   `json:"framework"`
			Search      lenient   `json:"search_algorithm"`
			Validation  lenient   `json:"validation"`
		} `json:"times"`
		Measurements []measurement   `json:"measurements"`
		Kgen         json.RawMessage `json:"kgen"`
	}
	if err := json.Unmarshal(raw, &e); err != nil {
		return Entry{}, err
	}
	values, err := r.members(e.Configuration)
	if err != nil {
		return Entry{}, err
	}
	var meta struct {
		Unit string `json:"timeunit"`
	}
	_ = json.Unmarshal(r.head["metadata"], &meta) // may be missing
	objective := "time"
	if len(e.Objectives) > 0 {
		objective = e.Objectives[0]
		r.objective = objective
	}
	named := func(name string) bool {
		return slices.ContainsFunc(e.Measurements, func(m measurement) bool { return m.Name == name })
	}
	if objective != "time" && named("time") { // what was searched for may be another
		objective = "time"
	}
	unit, ms := unitMS(meta.Unit), 0.0
	for _, m := range e.Measurements {
		if m.Name == objective && (objective == "time" || strings.Contains(objective, "time") || isTime(m.Unit)) {
			if m.Unit != "" {
				unit = unitMS(m.Unit)
			}
			ms = m.Value.value() * unit
			if m.Value.word != "" && (e.Invalidity == "" || e.Invalidity == "correct") {
				e.Invalidity = m.Value.word
			}
		}
	}
	t := e.Times
	out := Entry{Values: values, Status: Correct, CostMS: unit * total(t.Compilation, t.Schema, t.Framework, t.Search, t.Validation)}
	if e.Invalidity != "" {
		out.Status = statusOf(e.Invalidity)
	}
	if out.Status == Correct {
		out.Samples = samples(t.Runtimes, unit)
		if ms == 0 && len(e.Measurements) == 0 {
			ms = mean(out.Samples)
		}
		for _, s := range out.Samples {
			out.CostMS += s
		}
	}
	out.timed(ms)
	out.Own = ownOf(e.Kgen, out.MS)
	return out, nil
}

// members reads a configuration that is an object; the first one names the parameters.
func (r *reader) members(object json.RawMessage) ([]Value, error) {
	var m map[string]json.RawMessage
	if err := json.Unmarshal(object, &m); err != nil || len(m) == 0 {
		return nil, errors.New("no configuration: want an object of parameters")
	}
	if r.names == nil {
		var ordered jsontext.Object
		if err := errors.Join(json.Unmarshal(object, &ordered), r.declare(ordered.Names)); err != nil {
			return nil, err
		}
	}
	if len(m) != len(r.names) {
		return nil, fmt.Errorf("%d parameters: want %d as in the first record", len(m), len(r.names))
	}
	return r.values(func(n string) (json.RawMessage, bool) { v, ok := m[n]; return v, ok })
}

// unitMS is how many milliseconds a unit has; of one that is not known, 1.
func unitMS(name string) float64 {
	switch u := strings.ToLower(name); {
	case strings.HasPrefix(u, "micro"), u == "us", u == "µs":
		return 1e-3
	case strings.HasPrefix(u, "nano"), u == "ns":
		return 1e-6
	case strings.HasPrefix(u, "sec"), u == "s":
		return 1e3
	}
	return 1 // also for "miliseconds", as published
}

// isTime tells whether a unit is one of time.
func isTime(name string) bool {
	u := strings.ToLower(name)
	return unitMS(name) != 1 || u == "ms" || strings.HasPrefix(u, "mil")
}

func mean(v []float64) float64 {
	sum := 0.0
	for _, x := range v {
		sum += x
	}
	return sum / float64(max(1, len(v)))
}

// ktt reads a record of KTT's own results.
func (r *reader) ktt(raw json.RawMessage) (Entry, error) {
	var e struct {
		Configuration []struct {
			Name  string
			Value json.RawMessage
		}
		KernelName    string
		Status        string
		TotalDuration lenient
		TotalOverhead lenient
	}
	if err := json.Unmarshal(raw, &e); err != nil {
		return Entry{}, err
	}
	if r.names == nil {
		r.space.Kernel = strings.TrimSuffix(e.KernelName, "_kernel")
		var names []string
		for _, p := range e.Configuration {
			names = append(names, p.Name)
		}
		if err := r.declare(names); err != nil {
			return Entry{}, err
		}
	}
	values, err := r.values(func(n string) (json.RawMessage, bool) {
		for _, p := range e.Configuration {
			if p.Name == n {
				return p.Value, true
			}
		}
		return nil, false
	})
	if err != nil {
		return Entry{}, err
	}
	var meta struct{ Device, TimeUnit string }
	_ = json.Unmarshal(r.head["Metadata"], &meta) // may be missing
	r.space.Device = meta.Device
	unit := unitMS(meta.TimeUnit)
	out := Entry{Values: values, Status: statusOf(e.Status), CostMS: unit * total(e.TotalDuration, e.TotalOverhead)}
	out.timed(unit * e.TotalDuration.value())
	return out, nil
}

// try reads an evaluation of a Run: of what was tried it is a space, too.
func (r *reader) try(raw json.RawMessage) (Entry, error) {
	var e struct {
		Config json.RawMessage
		Status string
		Time   lenient `json:"time_ms"`
	}
	if err := json.Unmarshal(raw, &e); err != nil {
		return Entry{}, err
	}
	values, err := r.members(e.Config)
	if err != nil {
		return Entry{}, err
	}
	var best struct{ Provenance bench.Provenance }
	_ = json.Unmarshal(r.head["best"], &best) // may be missing
	out := Entry{Values: values, Status: statusOf(e.Status), From: best.Provenance}
	if out.Status != Correct {
		out.From = 0
	}
	out.timed(e.Time.value())
	return out, nil
}

// readCSV reads a compact CSV: the parameters, then status, then times in milliseconds. A
// last line without its end is left out if its time could have been cut (see Cut).
func readCSV(ctx context.Context, text []byte) (*Space, error) {
	c := csv.NewReader(bytes.NewReader(text))
	c.FieldsPerRecord = -1
	head, err := c.Read()
	at := slices.Index(head, "status")
	mean := slices.Index(head, "mean_ms")
	if err != nil || at < 1 || mean < at {
		return nil, fmt.Errorf("%w: want JSON, or CSV with a header of the parameters' names, status, mean_ms", ErrFormat)
	}
	r := &reader{}
	if err := r.declare(head[:at]); err != nil {
		return nil, fmt.Errorf("%w: line 1: %w", ErrFormat, err)
	}
	whole := bytes.HasSuffix(text, []byte{'\n'})
	for {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		row, err := c.Read()
		if errors.Is(err, io.EOF) {
			return &r.space, nil
		}
		last := c.InputOffset() == int64(len(text))
		switch {
		case !last || whole:
		case err != nil || len(row) < len(head):
			r.space.Cut = CutRecord
			return &r.space, nil
		case mean == len(head)-1:
			r.space.Cut = CutTime
			return &r.space, nil
		default:
			r.space.Cut = CutLine
		}
		switch {
		case err != nil:
			return nil, fmt.Errorf("%w: %w", ErrFormat, err)
		case len(row) != len(head):
			line, _ := c.FieldPos(0)
			return nil, fmt.Errorf("%w: line %d has %d fields: want %d", ErrFormat, line, len(row), len(head))
		}
		e := csvEntry(head, row, at, mean)
		if err := r.space.csvOrigin(&e, head[at:], row[at:]); err != nil {
			line, _ := c.FieldPos(0)
			return nil, fmt.Errorf("%w: line %d: %w", ErrFormat, line, err)
		}
		r.space.Entries = append(r.space.Entries, e)
	}
}

func csvEntry(head, row []string, at, mean int) Entry {
	e := Entry{Status: statusOf(row[at])}
	for _, text := range row[:at] {
		v, ok := number(text)
		if !ok {
			v = word(text)
		}
		e.Values = append(e.Values, v)
	}
	for i, name := range head {
		switch name {
		case "compile_ms", "verify_ms", "bench_ms":
			if v, err := strconv.ParseFloat(row[i], 64); err == nil && v > 0 {
				e.CostMS += v
			}
		}
	}
	ms, _ := strconv.ParseFloat(row[mean], 64) // without one it is a failed run
	e.timed(ms)
	return e
}
