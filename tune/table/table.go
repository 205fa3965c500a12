// Package table holds what tuning found in a file that travels: the best configurations
// of each kernel, GPU and bucket of sizes, with where their times are from and when. A
// look-up falls back from the exact GPU and bucket to what is nearest by a stated
// distance, and in the end to the default.
package table

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/bits"
	"slices"
	"strings"
	"time"

	"github.com/kgen-dev/kgen/bench"
	"github.com/kgen-dev/kgen/codegen/target"
	"github.com/kgen-dev/kgen/internal/jsontext"
	"github.com/kgen-dev/kgen/internal/userfile"
	"github.com/kgen-dev/kgen/kernels/family"
	"github.com/kgen-dev/kgen/kernels/space"
)

// form is the version of the file's form.
const form = 1

// Table is a file of entries.
type Table struct {
	Form    int     `json:"kgen_table"`
	Entries []Entry `json:"entries"`
}

// Entry is the best that tuning found for one problem.
type Entry struct {
	Kernel     string            `json:"kernel"` // a family
	GPU        string            `json:"gpu"`    // its id
	Sizes      map[string]int64  `json:"sizes"`
	Options    map[string]string `json:"options"` // the other settings, which must be equal
	Made       time.Time         `json:"made"`
	Provenance bench.Provenance  `json:"provenance"` // of the times
	Policy     string            `json:"policy"`
	Compiler   string            `json:"compiler"`
	CostModel  string            `json:"cost_model,omitempty"`
	Kgen       string            `json:"kgen"`
	Best       []Best            `json:"best"` // fastest first
}

// Best is a configuration with its time.
type Best struct {
	Config   string  `json:"config"` // BM=128 BN=64
	TimeUS   float64 `json:"time_us"`
	Verified bool    `json:"verified"`
}

// Most is how many configurations an entry has: a list repairs most of the failures that
// a single one has on another GPU.
const Most = 10

// ErrFormat marks a file that is no table.
var ErrFormat = errors.New("not a table of kgen")

// maxBytes bounds a table's file.
const maxBytes = 64 << 20

// ReadFile reads a table.
func ReadFile(file string) (*Table, error) {
	text, err := userfile.Read(file, maxBytes)
	if err != nil {
		return nil, err
	}
	t := &Table{}
	if err := json.Unmarshal(text, t); err != nil {
		return nil, fmt.Errorf("%w: line %w", ErrFormat, jsontext.Locate(text, err))
	}
	if err := jsontext.Once(text); err != nil {
		return nil, fmt.Errorf("%w: line %w", ErrFormat, err)
	}
	if t.Form != form {
		return nil, fmt.Errorf("%w: form %d, this kgen reads %d", ErrFormat, t.Form, form)
	}
	return t, nil
}

// New makes a table of entries, in a fixed order.
func New(entries []Entry) *Table {
	slices.SortStableFunc(entries, func(a, b Entry) int {
		return cmp.Or(cmp.Compare(a.Kernel, b.Kernel), cmp.Compare(a.GPU, b.GPU), cmp.Compare(a.problem(), b.problem()))
	})
	return &Table{form, entries}
}

// problem is the entry's settings as text.
func (e *Entry) problem() string {
	text, err := json.Marshal([]any{e.Options, e.Sizes})
	if err != nil {
		panic(err) // strings and numbers can be written
	}
	return string(text)
}

// Split sets a problem's sizes apart from its other settings.
func Split(f *family.Family, s family.Settings) (sizes map[string]int64, options map[string]string) {
	sizes, options = map[string]int64{}, map[string]string{}
	for _, x := range s {
		i := slices.IndexFunc(f.Flags, func(g family.Flag) bool { return g.Name == x.Name })
		var n int64
		if _, err := fmt.Sscan(x.Value, &n); err == nil && i >= 0 && f.Flags[i].IsSize() {
			sizes[x.Name] = n
			continue
		}
		options[x.Name] = x.Value
	}
	return sizes, options
}

// bucket is the power of two at or above a size: sizes of one bucket share an entry.
func bucket(n int64) int { return bits.Len64(uint64(max(0, n-1))) }

// Match says how an entry was chosen.
type Match string

// The matches, the better first.
const (
	Exact        Match = "exact"             // the GPU, and the bucket of every size
	Architecture Match = "same architecture" // another GPU of its compute capability, the same buckets
	Nearest      Match = "nearest"           // by Distance
	Default      Match = "default"           // nothing in the table serves
)

// otherGPU and otherArchitecture are what another GPU adds to a distance, in the unit of
// a size that is doubled: an optimum keeps 60 % and more of the speed within NVIDIA's
// GPUs, and less where the instructions differ.
const (
	otherGPU          = 1
	otherArchitecture = 4
)

// Found is the answer of a look-up.
type Found struct {
	Match    Match   `json:"match"`
	Distance float64 `json:"distance"`        // 0 when exact; sizes count by the logarithm to base 2 of their ratio
	Entry    *Entry  `json:"entry,omitempty"` // nil for Default
	// Configs are the entry's that the asked GPU and problem allow, or the default alone.
	Configs []space.Config `json:"configs"`
	Dropped int            `json:"dropped"` // of the entry's configurations
}

// Lookup finds configurations for a problem on a GPU.
func (t *Table) Lookup(f *family.Family, p family.Problem, g *target.GPU) (*Found, error) {
	b, err := p.Space(g)
	if err != nil {
		return nil, err
	}
	sizes, options := Split(f, p.Settings())
	type candidate struct {
		entry    *Entry
		match    Match
		distance float64
	}
	var all []candidate
	for i := range t.Entries {
		e := &t.Entries[i]
		if e.Kernel != f.Name || !equalOptions(e.Options, options) {
			continue
		}
		d, same, ok := between(e.Sizes, sizes)
		if !ok {
			continue
		}
		c := candidate{entry: e, match: Nearest, distance: d}
		other, err := target.Lookup(e.GPU)
		switch {
		case e.GPU == g.ID && same:
			c.match = Exact
		case e.GPU == g.ID:
		case err == nil && other.CC == g.CC:
			c.distance += otherGPU
			if same {
				c.match = Architecture
			}
		default:
			c.distance += otherGPU + otherArchitecture
		}
		all = append(all, c)
	}
	order := map[Match]int{Exact: 0, Architecture: 1, Nearest: 2}
	slices.SortStableFunc(all, func(a, b candidate) int {
		return cmp.Or(cmp.Compare(order[a.match], order[b.match]), cmp.Compare(a.distance, b.distance), b.entry.Made.Compare(a.entry.Made))
	})
	for _, c := range all {
		found := &Found{Match: c.match, Distance: c.distance, Entry: c.entry}
		for _, best := range c.entry.Best {
			config, err := b.Space().Parse(best.Config)
			if err != nil || b.Check(config) != nil {
				found.Dropped++
				continue
			}
			found.Configs = append(found.Configs, config)
		}
		if len(found.Configs) > 0 {
			return found, nil
		}
	}
	c, err := p.Default(g)
	if err != nil {
		return nil, err
	}
	return &Found{Match: Default, Configs: []space.Config{c}}, nil
}

func equalOptions(a, b map[string]string) bool {
	if len(a) != len(b) {
		return false
	}
	for name, v := range a {
		if w, ok := b[name]; !ok || v != w {
			return false
		}
	}
	return true
}

// between is the distance of two problems' sizes, and whether all are in one bucket; not
// ok if they have not the same names.
func between(a, b map[string]int64) (distance float64, same, ok bool) {
	if len(a) != len(b) {
		return 0, false, false
	}
	same = true
	for name, n := range a {
		m, there := b[name]
		if !there || n < 1 || m < 1 {
			return 0, false, false
		}
		distance += math.Abs(math.Log2(float64(n) / float64(m)))
		same = same && bucket(n) == bucket(m)
	}
	return distance, same, true
}

// Check finds what is wrong with an entry: a kernel, a GPU or a setting that kgen does
// not know, or a configuration that its space forbids. families finds a family by name.
func (e *Entry) Check(families func(string) (*family.Family, error)) []error {
	f, err := families(e.Kernel)
	if err != nil {
		return []error{err}
	}
	g, err := target.Lookup(e.GPU)
	if err != nil {
		return []error{err}
	}
	given := map[string]string{}
	for name, v := range e.Options {
		given[name] = v
	}
	for name, n := range e.Sizes {
		given[name] = fmt.Sprint(n)
	}
	p, err := f.Problem(given, g)
	if err != nil {
		return []error{err}
	}
	b, err := p.Space(g)
	if err != nil {
		return []error{err}
	}
	var all []error
	if len(e.Best) == 0 {
		all = append(all, errors.New("no configuration"))
	}
	last := 0.0
	for _, best := range e.Best {
		c, err := b.Space().Parse(best.Config)
		if err == nil {
			err = b.Check(c)
		}
		if err != nil {
			all = append(all, err)
		}
		if !(best.TimeUS >= last) || math.IsInf(best.TimeUS, 0) {
			all = append(all, fmt.Errorf("configuration %q: %g us: want times above 0, the fastest first", best.Config, best.TimeUS))
		}
		last = best.TimeUS
	}
	return all
}

// String names an entry for people.
func (e *Entry) String() string {
	var words []string
	for _, m := range []map[string]string{e.Options, texts(e.Sizes)} {
		for name, v := range m {
			words = append(words, name+"="+v)
		}
	}
	slices.Sort(words)
	return fmt.Sprintf("%s on %s (%s)", e.Kernel, e.GPU, strings.Join(words, " "))
}

func texts(sizes map[string]int64) map[string]string {
	out := map[string]string{}
	for name, n := range sizes {
		out[name] = fmt.Sprint(n)
	}
	return out
}
