package exchange

import (
	"encoding/csv"
	"encoding/json"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/kgen-dev/kgen/internal/jsontext"
	"github.com/kgen-dev/kgen/tune/store"
)

// outcomeWords are how the forms of others call an outcome: T4's word and Kernel Tuner's.
var outcomeWords = map[store.Outcome][2]string{
	store.Correct:     {"correct", ""},
	store.Predicted:   {"correct", ""},
	store.Compile:     {"compile", "CompilationFailedConfig"},
	store.Runtime:     {"runtime", "RuntimeFailedConfig"},
	store.Correctness: {"correctness", "RuntimeFailedConfig"}, // Kernel Tuner has no word for it
	store.Timeout:     {"timeout", "RuntimeFailedConfig"},
	store.Constraints: {"constraints", "InvalidConfig"},
	store.Resources:   {"constraints", "InvalidConfig"},
}

// millis are microseconds as milliseconds.
func millis(us float64) float64 { return us / 1000 }

func samplesMS(e *store.Evaluation) []float64 {
	out := []float64{}
	for _, us := range e.Samples {
		out = append(out, millis(us))
	}
	return out
}

type t4Result struct {
	Timestamp     string          `json:"timestamp"`
	Configuration jsontext.Object `json:"configuration"`
	Times         t4Times         `json:"times"`
	Invalidity    string          `json:"invalidity"`
	Correctness   int             `json:"correctness"`
	Measurements  []t4Measurement `json:"measurements"`
	Objectives    []string        `json:"objectives"`
	Kgen          *own            `json:"kgen"`
}

type t4Times struct {
	Compilation float64   `json:"compilation_time"`
	Framework   float64   `json:"framework"`
	Search      float64   `json:"search_algorithm"`
	Validation  float64   `json:"validation"`
	Runtimes    []float64 `json:"runtimes"`
}

type t4Measurement struct {
	Name  string  `json:"name"`
	Value float64 `json:"value"`
	Unit  string  `json:"unit"`
}

func writeT4(w io.Writer, runs []Recorded) error {
	t, err := tableOf(runs)
	if err != nil {
		return err
	}
	var doc struct {
		Version  string         `json:"schema_version"`
		Metadata map[string]any `json:"metadata"`
		Results  []t4Result     `json:"results"`
	}
	doc.Version = "1.0.0"
	doc.Metadata = map[string]any{"timeunit": "milliseconds", "kernel": t.run.Family, "gpu": t.run.GPU, "problem": t.run.Problem, "provenance": provenanceText(t)}
	if t.oneRun {
		doc.Metadata[kgenMember] = t.run
	}
	for _, e := range t.entries {
		r := t4Result{
			Timestamp: e.eval.At.Format("2006-01-02T15:04:05.000Z07:00"), Configuration: e.config, Invalidity: outcomeWords[e.eval.Outcome][0],
			Objectives: []string{"time"}, Measurements: []t4Measurement{}, Kgen: ownOf(e.eval),
			Times: t4Times{Compilation: 1000 * e.eval.Seconds["compile"], Runtimes: samplesMS(e.eval)},
		}
		if e.eval.Outcome.Timed() {
			r.Measurements = append(r.Measurements, t4Measurement{"time", millis(e.eval.TimeUS), "milliseconds"})
		}
		if e.eval.Outcome == store.Correct {
			r.Correctness = 1
		}
		doc.Results = append(doc.Results, r)
	}
	return indented(w, doc)
}

func provenanceText(t *table) string {
	if t.provenance == 0 {
		return ""
	}
	return t.provenance.String()
}

func indented(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetIndent("", " ")
	return e.Encode(v)
}

func writeKernelTuner(w io.Writer, runs []Recorded) error {
	t, err := tableOf(runs)
	if err != nil {
		return err
	}
	params := map[string][]json.RawMessage{}
	for _, e := range t.entries {
		for i, name := range e.config.Names {
			if !slices.ContainsFunc(params[name], func(v json.RawMessage) bool { return string(v) == string(e.config.Values[i]) }) {
				params[name] = append(params[name], e.config.Values[i])
			}
		}
	}
	var doc struct {
		Device     string                       `json:"device_name"`
		Kernel     string                       `json:"kernel_name"`
		Problem    json.RawMessage              `json:"problem_size"`
		Keys       []string                     `json:"tune_params_keys"`
		Params     map[string][]json.RawMessage `json:"tune_params"`
		Objective  string                       `json:"objective"`
		Provenance string                       `json:"time_provenance"` // measured, or predicted
		Kgen       *store.Run                   `json:"kgen,omitempty"`
		Cache      jsontext.Object              `json:"cache"`
	}
	doc.Device, doc.Kernel, doc.Problem, doc.Keys, doc.Params, doc.Objective = t.run.GPU, t.run.Family, t.run.Problem, t.names, params, "time"
	doc.Provenance = provenanceText(t)
	if t.oneRun {
		doc.Kgen = t.run
	}
	for i := range t.entries {
		key, record, err := cacheRecord(&t.entries[i])
		if err == nil {
			err = doc.Cache.Add(key, record)
		}
		if err != nil {
			return err
		}
	}
	return indented(w, doc)
}

// cacheRecord is an entry as a Kernel Tuner cache has it.
func cacheRecord(e *entry) (key string, record jsontext.Object, err error) {
	record = jsontext.Object{Names: slices.Clone(e.config.Names), Values: slices.Clone(e.config.Values)}
	plain := make([]string, len(e.config.Values))
	for i := range plain {
		plain[i] = e.config.Plain(i)
	}
	type member struct {
		name  string
		value any
	}
	members := []member{{"time", outcomeWords[e.eval.Outcome][1]}}
	if e.eval.Outcome.Timed() {
		members = []member{{"time", millis(e.eval.TimeUS)}, {"times", samplesMS(e.eval)}}
	}
	members = append(members, member{"compile_time", 1000 * e.eval.Seconds["compile"]}, member{"verification_time", 0},
		member{"benchmark_time", 1000 * e.eval.Seconds["run"]}, member{"strategy_time", 0}, member{"framework_time", 0},
		member{"timestamp", e.eval.At.Format("2006-01-02 15:04:05.000000+00:00")}, member{kgenMember, ownOf(e.eval)})
	for _, m := range members {
		if err := record.Add(m.name, m.value); err != nil {
			return "", record, err
		}
	}
	return strings.Join(plain, ","), record, nil
}

// writeCSV writes the compact form that kgen tune --replay reads, with more columns.
func writeCSV(w io.Writer, runs []Recorded) error {
	t, err := tableOf(runs)
	if err != nil {
		return err
	}
	c := csv.NewWriter(w)
	head := slices.Concat(t.names, []string{"status", "mean_ms", "min_ms", "median_ms", "reps", "compile_ms", "bench_ms", "provenance", "kernel", "gpu", "problem", "outcome", "registers", "shared_bytes", "spill_bytes", "ctas_per_sm", "verified", "throttled", "program", "error"})
	if err := c.Write(head); err != nil {
		return err
	}
	for _, e := range t.entries {
		if err := c.Write(t.csvRow(&e)); err != nil {
			return err
		}
	}
	c.Flush()
	return c.Error()
}

func (t *table) csvRow(e *entry) []string {
	var row []string
	for i := range e.config.Values {
		row = append(row, e.config.Plain(i))
	}
	status, mean, least, middle, from := "ok", "", "", "", ""
	v := e.eval
	if v.Outcome.Timed() {
		samples := v.Samples
		if len(samples) == 0 {
			samples = []float64{v.TimeUS}
		}
		sum := 0.0
		for _, us := range samples {
			sum += us / float64(len(samples))
		}
		mean, least, middle, from = number(millis(sum)), number(millis(slices.Min(samples))), number(millis(v.TimeUS)), v.Provenance.String()
	} else {
		status = outcomeWords[v.Outcome][0]
	}
	return append(row, status, mean, least, middle, strconv.Itoa(len(v.Samples)), number(1000*v.Seconds["compile"]), number(1000*v.Seconds["run"]), from,
		t.run.Family, t.run.GPU, string(t.run.Problem), string(v.Outcome), strconv.Itoa(v.Registers), strconv.Itoa(v.SharedBytes), strconv.Itoa(v.SpillBytes), strconv.Itoa(v.CTAsPerSM), strconv.FormatBool(v.Verified), strconv.FormatBool(v.Throttled), v.Program, v.Error)
}

func number(v float64) string { return strconv.FormatFloat(v, 'g', -1, 64) }
