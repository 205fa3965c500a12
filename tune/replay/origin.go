package replay

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/kgen-dev/kgen/bench"
	"github.com/kgen-dev/kgen/internal/jsontext"
)

// origin names the members in which a JSON format says what was timed and how: those of
// the file, or of its member in.
type origin struct{ in, device, kernel, problem, provenance, own string }

// ownOf is what kgen wrote of a record beside its time, which must be the same still.
func ownOf(raw json.RawMessage, ms float64) json.RawMessage {
	var of struct {
		US *float64 `json:"time_us"`
	}
	const rounding = 1e-9
	if settings(raw) == nil || json.Unmarshal(raw, &of) != nil || of.US != nil && math.Abs(*of.US-1000*ms) > rounding**of.US {
		return nil
	}
	return raw
}

// csvOwn is the same from the columns of a line that kgen wrote; nil of others' lines.
func csvOwn(head, row []string) json.RawMessage {
	at := func(name string) string { return row[slices.Index(head, name)] }
	for _, name := range []string{"outcome", "median_ms", "registers", "shared_bytes", "spill_bytes", "ctas_per_sm", "verified", "throttled", "program", "error"} {
		if !slices.Contains(head, name) {
			return nil
		}
	}
	var o jsontext.Object
	err := errors.Join(o.Add("outcome", at("outcome")), o.Add("error", at("error")), o.Add("program", at("program")))
	if ms, bad := strconv.ParseFloat(at("median_ms"), 64); bad == nil {
		err = errors.Join(err, o.Add("time_us", 1000*ms))
	}
	for _, name := range []string{"registers", "shared_bytes", "spill_bytes", "ctas_per_sm", "verified", "throttled"} {
		err = errors.Join(err, o.Add(name, json.RawMessage(at(name))))
	}
	raw, bad := json.Marshal(o)
	if errors.Join(err, bad) != nil {
		return nil // somebody else's columns, or an edited one
	}
	return raw
}

// trailing reads the members behind the records, as far as they are whole.
func (r *reader) trailing(d *json.Decoder) {
	for r.space.Cut == "" && d.More() {
		key, err := d.Token()
		if err != nil {
			return
		}
		name, ok := key.(string)
		var member json.RawMessage
		if !ok || d.Decode(&member) != nil {
			return
		}
		if _, again := r.head[name]; !again {
			r.head[name] = member
		}
	}
}

// identify takes from the members beside the records what they say of all of them.
func (r *reader) identify(o origin) error {
	if o == (origin{}) {
		return nil // its records did
	}
	said := r.head
	if o.in != "" {
		said = nil
		_ = json.Unmarshal(r.head[o.in], &said) // may be missing
	}
	var provenance string
	for name, into := range map[string]*string{o.device: &r.space.Device, o.kernel: &r.space.Kernel, o.provenance: &provenance} {
		_ = json.Unmarshal(said[name], into) // may be missing
	}
	r.space.Problem = settings(said[o.problem])
	if o.own != "" {
		r.space.Own = settings(said[o.own])
	}
	from, err := timeFrom(provenance)
	if err != nil {
		// T4 leaves the metadata's members to whoever writes the file: what is no
		// provenance of kgen's is somebody else's text.
		if known := new(bench.Provenance); o.in != "" && known.UnmarshalText([]byte(provenance)) != nil {
			return nil
		}
		return fmt.Errorf("%w: %s %w", ErrFormat, o.provenance, err)
	}
	for i := range r.space.Entries {
		if e := &r.space.Entries[i]; e.Status == Correct && from != 0 {
			e.From = from
		}
	}
	return nil
}

// csvOrigin takes from a line's columns behind the parameters what they say of its time,
// and of the space, on which all lines must agree.
func (s *Space) csvOrigin(e *Entry, head, row []string) error {
	field := func(name string) string {
		if i := slices.Index(head, name); i >= 0 {
			return strings.TrimSpace(row[i])
		}
		return ""
	}
	from, err := timeFrom(field("provenance"))
	if err != nil {
		return fmt.Errorf("provenance %w", err)
	}
	if e.Status == Correct {
		e.From = from
	}
	e.Own = csvOwn(head, row)
	problem := string(s.Problem)
	for _, x := range []struct {
		name, text string
		is         *string
	}{
		{"kernel", field("kernel"), &s.Kernel}, {"gpu", field("gpu"), &s.Device}, {"problem", string(settings([]byte(field("problem")))), &problem},
	} {
		switch {
		case x.text == "":
		case *x.is == "":
			*x.is = x.text
		case *x.is != x.text:
			return fmt.Errorf("%s %.60q, and %.60q in a line before: want one in all", x.name, x.text, *x.is)
		}
	}
	if problem != "" {
		s.Problem = json.RawMessage(problem)
	}
	return nil
}

// timeFrom reads the word for where times are from; 0 for none.
func timeFrom(word string) (p bench.Provenance, err error) {
	word = strings.ToLower(strings.TrimSpace(word))
	if word == "" {
		return 0, nil
	}
	if err := p.UnmarshalText([]byte(word)); err != nil || p != bench.Measured && p != bench.Predicted {
		return 0, fmt.Errorf("%.40q: want measured or predicted, which times are", word)
	}
	return p, nil
}

// settings is a problem without spaces; nil unless it is an object that has members.
func settings(raw json.RawMessage) json.RawMessage {
	var object map[string]json.RawMessage
	if json.Unmarshal(raw, &object) != nil || len(object) == 0 {
		return nil
	}
	var b bytes.Buffer
	if json.Compact(&b, raw) != nil {
		return nil
	}
	return b.Bytes()
}
