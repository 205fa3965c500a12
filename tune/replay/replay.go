// Package replay reads published tuning spaces, in which every configuration was timed
// once and for all, and answers a search from them as if a GPU did. It also scores
// searches the way that the publishers of such spaces do.
package replay

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"

	"github.com/kgen-dev/kgen/bench"
	"github.com/kgen-dev/kgen/tune/search"
)

// Status says how a configuration ended, in the words of the T4 format.
type Status string

// The statuses.
const (
	Correct     Status = "correct"
	Compile     Status = "compile"
	Runtime     Status = "runtime"
	Correctness Status = "correctness"
	Timeout     Status = "timeout"
	Constraints Status = "constraints"
)

// Value is a parameter's value: a number, or another scalar by its text.
type Value struct {
	Text   string  // as JSON writes it
	Number float64 // if IsNumber
	// IsNumber tells numbers apart from strings and truth values.
	IsNumber bool
}

// MarshalJSON writes the value as it was read.
func (v Value) MarshalJSON() ([]byte, error) { return []byte(v.Text), nil }

// Plain is the value as people write it: a string without its quotes.
func (v Value) Plain() string {
	var text string
	if json.Unmarshal([]byte(v.Text), &text) == nil {
		return text
	}
	return v.Text
}

// number makes a value of a number's text, "" if it is none.
func number(text string) (Value, bool) {
	f, err := strconv.ParseFloat(text, 64)
	if err != nil || math.IsNaN(f) || math.IsInf(f, 0) || !json.Valid([]byte(text)) {
		return Value{}, false
	}
	return Value{Text: text, Number: f, IsNumber: true}, true
}

// word makes a value of a string.
func word(text string) Value {
	b, err := json.Marshal(text)
	if err != nil {
		panic(err) // strings can be written
	}
	return Value{Text: string(b)}
}

// Entry is what became of one configuration.
type Entry struct {
	Values []Value // by parameter
	Status Status
	MS     float64 // mean time in milliseconds; 0 unless Correct
	// From says where the time is from, measured or predicted; 0 where the file does not.
	From bench.Provenance
	// Samples are single times in milliseconds; nil where they were not published.
	Samples []float64
	// CostMS is what trying it took: compiling, checking and timing; 0 if unknown.
	CostMS float64
	// Own is an object with what kgen wrote of the configuration beside what the form has;
	// nil where the file is another's, or its time is not that any more.
	Own json.RawMessage
}

// Cut says how a file ends early; "" if it does not.
type Cut string

// The ways in which a file ends early, all of them legal.
const (
	CutRecord Cut = "the file ends within a record, which is left out"
	CutEnd    Cut = "the file ends behind a record, without its own end: records may be missing"
	CutLine   Cut = "the last line has no end: its record is taken as it stands, though its last field may be cut"
	CutTime   Cut = "the last line has no end and its time may be cut: its record is left out"
)

// Space is a published space.
type Space struct {
	Device, Kernel string          // "" where the file does not say
	Problem        json.RawMessage // an object of the kernel's settings; nil where the file has none
	Names          []string
	Entries        []Entry // as in the file; the last of equal configurations
	Cut            Cut
	Own            json.RawMessage // likewise of the run

	domain *search.Listed
}

// ErrFormat marks files that are in none of the formats, or broken.
var ErrFormat = errors.New("not a tuning space")

// finish checks the entries and builds the domain.
func (s *Space) finish() error {
	if len(s.Entries) == 0 {
		return fmt.Errorf("%w: it has no configuration", ErrFormat)
	}
	s.dropRepeated()
	dims, index := s.dims()
	points := make([]search.Point, len(s.Entries))
	for i, e := range s.Entries {
		points[i] = make(search.Point, len(dims))
		for d, v := range e.Values {
			points[i][d] = index[d][v.Text]
		}
	}
	var err error
	s.domain, err = search.NewListed(dims, points)
	return err
}

// dropRepeated keeps the last of entries with equal values, in the first one's place.
func (s *Space) dropRepeated() {
	at := map[string]int{}
	kept := s.Entries[:0]
	for _, e := range s.Entries {
		key := ""
		for _, v := range e.Values {
			key += v.Text + "\x00"
		}
		if i, again := at[key]; again {
			kept[i] = e
			continue
		}
		at[key] = len(kept)
		kept = append(kept, e)
	}
	s.Entries = kept
}

// dims lists the parameters with the values that occur, numbers in rising order, and
// the index of each value's text.
func (s *Space) dims() ([]search.Dim, []map[string]int) {
	var dims []search.Dim
	var index []map[string]int
	for d, name := range s.Names {
		var values []Value
		seen := map[string]bool{}
		for _, e := range s.Entries {
			if v := e.Values[d]; !seen[v.Text] {
				seen[v.Text] = true
				values = append(values, v)
			}
		}
		dim := search.Dim{Name: name, Len: len(values)}
		if !slices.ContainsFunc(values, func(v Value) bool { return !v.IsNumber }) {
			slices.SortStableFunc(values, func(a, b Value) int { return cmp.Compare(a.Number, b.Number) })
			for _, v := range values {
				dim.Values = append(dim.Values, v.Number)
			}
		}
		at := map[string]int{}
		for i, v := range values {
			at[v.Text] = i
		}
		dims, index = append(dims, dim), append(index, at)
	}
	return dims, index
}

// Domain is the set of the configurations in the file.
func (s *Space) Domain() search.Domain { return s.domain }

// Entry returns what became of a point of the domain.
func (s *Space) Entry(p search.Point) *Entry {
	i, ok := s.domain.Index(p)
	if !ok {
		return nil
	}
	return &s.Entries[i]
}

// Result is an entry as strategies see it.
func (e *Entry) Result() search.Result {
	return search.Result{OK: e.Status == Correct, Time: e.MS}
}

// Optimum is the best entry, nil if none is correct.
func (s *Space) Optimum() *Entry {
	var best *Entry
	for i := range s.Entries {
		if e := &s.Entries[i]; e.Status == Correct && (best == nil || e.MS < best.MS) {
			best = e
		}
	}
	return best
}

// config writes an entry's values as a JSON object in the order of the parameters.
func (s *Space) config(e *Entry) json.RawMessage {
	b := []byte{'{'}
	for i, name := range s.Names {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, word(name).Text...)
		b = append(b, ':')
		b = append(b, e.Values[i].Text...)
	}
	return append(b, '}')
}

// timed sets an entry's time; one that is not a positive number is a failed run.
func (e *Entry) timed(ms float64) {
	if e.Status != Correct {
		return
	}
	if !(ms > 0) || math.IsInf(ms, 0) {
		e.Status, e.Samples = Runtime, nil
		return
	}
	e.MS = ms
}
