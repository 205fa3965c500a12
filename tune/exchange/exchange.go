// Package exchange turns what the store holds into files that others read, and such files
// into what the store holds.
package exchange

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/kgen-dev/kgen/bench"
	"github.com/kgen-dev/kgen/internal/jsontext"
	"github.com/kgen-dev/kgen/tune/store"
)

// Recorded is a run with its evaluations.
type Recorded = store.Recorded

// document is kgen's own form, which loses nothing.
type document struct {
	Form int        `json:"kgen_store"` // of this form: documentForm
	Runs []Recorded `json:"runs"`
}

const documentForm = 1

// format is a form of files.
type format struct {
	name  string
	write func(io.Writer, []Recorded) error
}

// formats has every form, the default first.
var formats = []format{
	{"json", writeJSON}, // everything, for kgen db import
	{"t4", writeT4},
	{"kernel-tuner", writeKernelTuner}, // a cache
	{"csv", writeCSV},
}

// Formats lists the forms by name, the default first.
func Formats() []string {
	var names []string
	for _, f := range formats {
		names = append(names, f.name)
	}
	return names
}

// Write writes runs in a form. All but "json" hold one evaluation of each configuration,
// the newest, and refuse runs of different kernels or with both measured and predicted
// times.
func Write(w io.Writer, name string, runs []Recorded) error {
	for _, f := range formats {
		if f.name == name {
			return f.write(w, runs)
		}
	}
	return fmt.Errorf("format %q: want one of %s", name, strings.Join(Formats(), ", "))
}

func writeJSON(w io.Writer, runs []Recorded) error {
	return json.NewEncoder(w).Encode(document{documentForm, runs})
}

var (
	// ErrFormat marks a file that is no export of a store.
	ErrFormat = errors.New("not an export of a store")
	// ErrContent marks an export whose runs cannot be right, or that another kgen wrote.
	ErrContent = errors.New("an export of a store, but")
)

// Read reads what the form "json" holds, and refuses runs that no kgen recorded.
func Read(r io.Reader) ([]Recorded, error) {
	const most = 1 << 30
	text, err := io.ReadAll(io.LimitReader(r, most+1))
	if err != nil {
		return nil, err
	}
	if len(text) > most {
		return nil, fmt.Errorf("%w: more than %d bytes", ErrFormat, most)
	}
	var head struct {
		Form *int `json:"kgen_store"`
	}
	if json.Unmarshal(text, &head) != nil || head.Form == nil {
		return nil, fmt.Errorf("%w: no member kgen_store", ErrFormat)
	}
	if *head.Form != documentForm {
		return nil, fmt.Errorf("%w of form %d: this kgen reads %d", ErrContent, *head.Form, documentForm)
	}
	var d document
	if err := json.Unmarshal(text, &d); err != nil {
		return nil, fmt.Errorf("%w line %w", ErrContent, jsontext.Locate(text, err))
	}
	if err := jsontext.Once(text); err != nil {
		return nil, fmt.Errorf("%w line %w", ErrContent, err)
	}
	for i := range d.Runs {
		if err := check(&d.Runs[i]); err != nil {
			return nil, fmt.Errorf("%w run %d of %d: %w", ErrContent, i+1, len(d.Runs), err)
		}
	}
	return d.Runs, nil
}

// entry is the newest evaluation of a configuration.
type entry struct {
	config jsontext.Object
	eval   *store.Evaluation
}

// table is runs of one kernel as one evaluation for each configuration.
type table struct {
	run        *store.Run // the last
	names      []string
	provenance bench.Provenance // of the times; 0 if there is none
	entries    []entry
	oneRun     bool // the runs are alike in all that a key is of
}

func tableOf(runs []Recorded) (*table, error) {
	if len(runs) == 0 {
		return nil, errors.New("no run: want one or more")
	}
	t := &table{oneRun: true}
	at := map[string]int{}
	for i := range runs {
		r := &runs[i]
		if t.run != nil && (t.run.Family != r.Family || t.run.GPU != r.GPU) {
			return nil, fmt.Errorf("runs of %s on %s and of %s on %s: want one kernel on one GPU", t.run.Family, t.run.GPU, r.Family, r.GPU)
		}
		if t.run != nil && string(t.run.Problem) != string(r.Problem) {
			return nil, fmt.Errorf("runs of %s for %s and for %s: want one problem", r.Family, t.run.Problem, r.Problem)
		}
		t.oneRun = t.oneRun && (t.run == nil || t.run.Key("", "") == r.Key("", ""))
		t.run = &r.Run
		for j := range r.Evaluations {
			e := &r.Evaluations[j]
			if e.Single() {
				continue
			}
			c, err := parseConfig(e.Config)
			if err != nil {
				return nil, err
			}
			switch {
			case t.names == nil:
				t.names = c.Names
			case strings.Join(t.names, " ") != strings.Join(c.Names, " "):
				return nil, fmt.Errorf("configuration %q: other parameters than %s", e.Config, strings.Join(t.names, ", "))
			}
			if e.Outcome.Timed() {
				if t.provenance != 0 && t.provenance != e.Provenance {
					return nil, fmt.Errorf("times that are %s and %s: want runs with one kind", t.provenance, e.Provenance)
				}
				t.provenance = e.Provenance
			}
			if n, again := at[e.Config]; again {
				t.entries[n].eval = e
				continue
			}
			at[e.Config] = len(t.entries)
			t.entries = append(t.entries, entry{c, e})
		}
	}
	if len(t.entries) == 0 {
		return nil, errors.New("no evaluation: there is nothing to write")
	}
	return t, nil
}
