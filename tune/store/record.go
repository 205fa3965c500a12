package store

import (
	"bytes"
	"crypto/sha256"
	"database/sql"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/kgen-dev/kgen/bench"
)

// Run describes a tuning run. All but Started, Command, Budget and Seed is
// part of the key of its evaluations: change one and nothing old is reused.
type Run struct {
	ID        int64           `json:"id"`         // set by Begin
	Started   time.Time       `json:"started"`    // zero: now
	Command   string          `json:"command"`    // for people
	Family    string          `json:"family"`     // "gemm"
	Problem   json.RawMessage `json:"problem"`    // an object; order of keys and spaces do not matter
	GPU       string          `json:"gpu"`        // id in codegen/target
	Driver    string          `json:"driver"`     // empty without a device
	Types     string          `json:"types"`      // "bf16"
	Policy    string          `json:"policy"`     // how times come about: "predicted", "median of 16, flushed"
	Kgen      string          `json:"kgen"`       // version, for people: Program says what was really generated
	Compiler  string          `json:"compiler"`   // name and version
	CostModel string          `json:"cost_model"` // version, empty for measured times
	Budget    int             `json:"budget"`
	Seed      uint64          `json:"seed"`
}

// Described stands for the types of a kernel that a description holds, and no family.
const Described = "cuda"

// Outcome says how an evaluation ended.
type Outcome string

// The outcomes.
const (
	Correct     Outcome = "correct"     // ran or was checked, and nothing was found wrong
	Predicted   Outcome = "predicted"   // its time was predicted; nobody has checked it
	Compile     Outcome = "compile"     // the compiler refused it
	Runtime     Outcome = "runtime"     // it could not be launched or faulted
	Correctness Outcome = "correctness" // a wrong result
	Timeout     Outcome = "timeout"     // compiled or ran for too long
	Constraints Outcome = "constraints" // the space forbids it
	Resources   Outcome = "resources"   // it does not fit the GPU, or spills
)

// Outcomes are all of them, in the order of reports.
func Outcomes() []Outcome {
	return []Outcome{Correct, Predicted, Compile, Runtime, Correctness, Timeout, Constraints, Resources}
}

// Wrong tells whether a check found a wrong result or a fault.
func (o Outcome) Wrong() bool { return o == Correctness || o == Runtime }

// Timed tells whether an evaluation that ended so has a time.
func (o Outcome) Timed() bool { return o == Correct || o == Predicted }

// Evaluation is what became of one configuration.
type Evaluation struct {
	ID      int64     `json:"id"` // set by the store
	Run     int64     `json:"run"`
	At      time.Time `json:"at"` // zero: now
	Key     Key       `json:"key"`
	Program string    `json:"program"` // hash of what was generated; of a single sample, see Sample
	Config  string    `json:"config"`  // canonical text of the configuration
	Outcome Outcome   `json:"outcome"`
	Error   string    `json:"error,omitempty"` // empty if and only if Timed

	Registers   int `json:"registers"`
	SharedBytes int `json:"shared_bytes"`
	SpillBytes  int `json:"spill_bytes"`
	CTAsPerSM   int `json:"ctas_per_sm"`

	TimeUS     float64            `json:"time_us,omitempty"`   // microseconds; 0 unless Timed
	Provenance bench.Provenance   `json:"provenance,omitzero"` // of TimeUS
	Limits     map[string]float64 `json:"limits,omitempty"`    // unit to microseconds
	Terms      map[string]float64 `json:"terms,omitempty"`     // name to microseconds, which add up to TimeUS
	Cubin      string             `json:"cubin,omitempty"`     // hash, empty if none was made

	// Instructions are of the kernel that takes longest, by SASS mnemonic: those of tensor
	// cores and asynchronous copies.
	Instructions map[string]int `json:"instructions,omitempty"`

	Verified bool `json:"verified"` // its results were checked

	Samples   []float64          `json:"samples,omitempty"` // of a measured time: each run's, microseconds, in order
	Seconds   map[string]float64 `json:"seconds,omitempty"` // what trying it took, by phase
	Throttled bool               `json:"throttled"`         // the device ran slower than before meanwhile
}

// sampleMark follows a program's hash.
const sampleMark = "#"

// Sample names the n-th single sample of a program whose time is the median of many: it is
// recorded so that a killed run need not take it again, and is none of the Best.
func Sample(program string, n int) string { return program + sampleMark + strconv.Itoa(n) }

// Again names the second check of a program, over other contents: it is recorded so that it
// is done once, and is none of the Best.
func Again(program string) string { return program + sampleMark + "again" }

// Single tells whether an evaluation is a single sample, or a second check.
func (e *Evaluation) Single() bool { return strings.Contains(e.Program, sampleMark) }

// Key identifies an evaluation: equal keys mean equal work.
type Key [sha256.Size]byte

func (k Key) String() string { return hex.EncodeToString(k[:]) }

// MarshalText writes a key as hexadecimal digits.
func (k Key) MarshalText() ([]byte, error) { return []byte(k.String()), nil }

// UnmarshalText reads what MarshalText writes.
func (k *Key) UnmarshalText(text []byte) error {
	b, err := hex.DecodeString(string(text))
	if err != nil || len(b) != len(k) {
		return fmt.Errorf("key %q: want %d hexadecimal digits", text, 2*len(k))
	}
	copy(k[:], b)
	return nil
}

// Key returns the key of a configuration's evaluation in this run: program is
// the hash of what is generated for it.
func (r *Run) Key(program, config string) Key {
	h := sha256.New()
	var size [8]byte
	problem, err := canonical(r.Problem)
	if err != nil {
		problem = r.Problem // Begin refuses it; any key will do
	}
	for _, field := range []string{
		"kgen evaluation 1", r.Family, string(problem), r.GPU, r.Driver, r.Types, r.Policy, r.Compiler, r.CostModel, program, config,
	} {
		binary.LittleEndian.PutUint64(size[:], uint64(len(field)))
		h.Write(size[:])
		h.Write([]byte(field))
	}
	return Key(h.Sum(nil))
}

// canonical writes a JSON object with sorted keys and without spaces.
func canonical(object json.RawMessage) ([]byte, error) {
	d := json.NewDecoder(bytes.NewReader(object))
	d.UseNumber()
	var m map[string]any
	if err := d.Decode(&m); err != nil {
		return nil, fmt.Errorf("problem %q: want a JSON object: %w", object, err)
	}
	if m == nil || d.More() {
		return nil, fmt.Errorf("problem %q: want one JSON object", object)
	}
	return json.Marshal(m)
}

// Begin records a run and returns it with its ID.
func (s *Store) Begin(r Run) (*Run, error) {
	problem, err := canonical(r.Problem)
	if err != nil {
		return nil, err
	}
	r.Problem = problem
	if err := r.check(); err != nil {
		return nil, err
	}
	if r.Started.IsZero() {
		r.Started = time.Now()
	}
	r.Started = r.Started.UTC().Truncate(time.Millisecond)
	st, err := s.statement(insertRun)
	if err != nil {
		return nil, err
	}
	res, err := st.Exec(r.row()...)
	if err != nil {
		return nil, explain(s.path, err)
	}
	r.ID, err = res.LastInsertId()
	if err != nil {
		return nil, explain(s.path, err)
	}
	return &r, nil
}

// maxName bounds the names of a run, in bytes.
const maxName = 256

// check refuses a run that does not say of what it is.
func (r *Run) check() error {
	if r.Family == "" || r.GPU == "" || r.Policy == "" {
		return fmt.Errorf("run of family %q on GPU %q with policy %q: want all three", r.Family, r.GPU, r.Policy)
	}
	return nil
}

// checkNames refuses names of another's run that are none.
func (r *Run) checkNames() error {
	for _, x := range []struct{ what, name string }{
		{"kernel", r.Family}, {"GPU", r.GPU}, {"driver", r.Driver}, {"types", r.Types}, {"policy", r.Policy}, {"compiler", r.Compiler},
	} {
		odd := strings.ContainsFunc(x.name, func(c rune) bool { return !unicode.IsPrint(c) || c == utf8.RuneError })
		if odd || len(x.name) > maxName || strings.TrimSpace(x.name) != x.name {
			return fmt.Errorf("%s %.40q: want a name of at most %d printable bytes", x.what, x.name, maxName)
		}
	}
	return nil
}

const insertRun = `INSERT INTO runs (started, command, family, problem, gpu, driver, types, policy, kgen, compiler, cost_model, budget, seed)
	VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`

// row is a run's values as insertRun takes them.
func (r *Run) row() []any {
	return []any{
		r.Started.Format(time.RFC3339Nano), r.Command, r.Family, string(r.Problem), r.GPU, r.Driver, r.Types, r.Policy,
		r.Kgen, r.Compiler, r.CostModel, r.Budget, int64(r.Seed), //nolint:gosec // all 64 bits are kept
	}
}

func (e *Evaluation) check() error {
	switch e.Outcome {
	case Correct, Predicted:
		if e.Outcome == Predicted && (e.Verified || e.Provenance != bench.Predicted) {
			return fmt.Errorf("evaluation of %q: predicted, yet verified or with a time that is %s", e.Config, e.Provenance)
		}
		if !(e.TimeUS > 0) || math.IsInf(e.TimeUS, 0) {
			return fmt.Errorf("evaluation of %q: time of %g us: want a finite number above 0", e.Config, e.TimeUS)
		}
		if e.Provenance != bench.Measured && e.Provenance != bench.Predicted {
			return fmt.Errorf("evaluation of %q: a time is measured or predicted, not %s", e.Config, e.Provenance)
		}
		if e.Error != "" {
			return fmt.Errorf("evaluation of %q: %s, yet with the error %q", e.Config, e.Outcome, e.Error)
		}
	case Compile, Runtime, Correctness, Timeout, Constraints, Resources:
		if e.Error == "" || e.TimeUS != 0 {
			return fmt.Errorf("evaluation of %q: %s needs an error text and has no time", e.Config, e.Outcome)
		}
	default:
		return fmt.Errorf("evaluation of %q: outcome %q: want correct, predicted, compile, runtime, correctness, timeout, constraints or resources", e.Config, e.Outcome)
	}
	if e.Config == "" || e.Run == 0 || e.Key == (Key{}) {
		return errors.New("evaluation without a configuration, a run or a key")
	}
	if err := e.checkResources(); err != nil {
		return err
	}
	for unit, us := range e.Limits {
		if !(us >= 0) || math.IsInf(us, 0) {
			return fmt.Errorf("evaluation of %q: limit %s of %g us: want a finite number, 0 or more", e.Config, unit, us)
		}
	}
	for _, us := range e.Samples {
		if !(us > 0) || math.IsInf(us, 0) {
			return fmt.Errorf("evaluation of %q: sample of %g us: want a finite number above 0", e.Config, us)
		}
	}
	return e.checkTerms()
}

// checkResources refuses resources beyond what any GPU has.
func (e *Evaluation) checkResources() error {
	for _, x := range []struct {
		what    string
		n, most int
	}{
		{"registers", e.Registers, 1 << 16}, {"bytes of shared memory", e.SharedBytes, 1 << 30},
		{"bytes of spills", e.SpillBytes, 1 << 30}, {"blocks an SM", e.CTAsPerSM, 1 << 10},
	} {
		if x.n < 0 || x.n > x.most {
			return fmt.Errorf("evaluation of %q: %d %s: want 0 to %d", e.Config, x.n, x.what, x.most)
		}
	}
	return nil
}

// termsOff is how far, relatively, the terms of a time may be from it: rounding
// of a few additions and of decimal numbers in the store.
const termsOff = 1e-6

// checkTerms holds a predicted time to its terms.
func (e *Evaluation) checkTerms() error {
	if len(e.Terms) == 0 || e.Provenance != bench.Predicted {
		return nil
	}
	sum := 0.0
	for _, us := range e.Terms {
		sum += us
	}
	if !(math.Abs(sum-e.TimeUS) <= termsOff*e.TimeUS) {
		return fmt.Errorf("evaluation of %q: time of %g us: its terms add up to %g", e.Config, e.TimeUS, sum)
	}
	return nil
}

// columns of evaluations after id, in the order of Record and scan.
const columns = `run, at, key, program, config, outcome, error, registers, shared_bytes, spill_bytes, ctas_per_sm, time_us, provenance, limits, cubin, verified, terms, instructions, samples, seconds, throttled`

// Record appends an evaluation; it is safe on disk from other processes' kills
// when Record returns. A later evaluation of the same key, say after a check,
// supersedes an earlier one in Lookup and Best.
func (s *Store) Record(e Evaluation) error {
	if err := e.check(); err != nil {
		return err
	}
	if e.At.IsZero() {
		e.At = time.Now()
	}
	st, err := s.statement(insertEvaluation)
	if err != nil {
		return err
	}
	args, err := e.row()
	if err != nil {
		return err
	}
	if _, err := st.Exec(args...); err != nil {
		return explain(s.path, err)
	}
	return nil
}

const insertEvaluation = `INSERT INTO evaluations (` + columns + `) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`

// row is an evaluation's values in the order of columns.
func (e *Evaluation) row() ([]any, error) {
	var us, provenance any
	if e.Outcome.Timed() {
		us, provenance = e.TimeUS, e.Provenance.String()
	}
	var columns [5]any
	for i, c := range []struct {
		name  string
		empty bool
		value any
	}{
		{"limits", len(e.Limits) == 0, e.Limits}, {"terms", len(e.Terms) == 0, e.Terms}, {"instructions", len(e.Instructions) == 0, e.Instructions},
		{"samples", len(e.Samples) == 0, e.Samples}, {"seconds", len(e.Seconds) == 0, e.Seconds},
	} {
		if c.empty {
			continue
		}
		text, err := json.Marshal(c.value)
		if err != nil {
			return nil, fmt.Errorf("evaluation of %q: %s: %w", e.Config, c.name, err)
		}
		columns[i] = string(text)
	}
	return []any{
		e.Run, e.At.UnixMilli(), e.Key[:], e.Program, e.Config, string(e.Outcome), e.Error,
		e.Registers, e.SharedBytes, e.SpillBytes, e.CTAsPerSM, us, provenance, columns[0], e.Cubin, e.Verified, columns[1], columns[2],
		columns[3], columns[4], e.Throttled,
	}, nil
}

// Lookup returns the newest evaluation of a key, whichever run made it; false
// if there is none or its row is damaged.
func (s *Store) Lookup(k Key) (Evaluation, bool, error) {
	found, err := s.query(`SELECT id, `+columns+` FROM evaluations WHERE key = ? ORDER BY id DESC LIMIT 1`, k[:])
	if err != nil || len(found) == 0 {
		return Evaluation{}, false, err
	}
	return found[0], true, nil
}

// Best returns the n fastest correct or predicted evaluations made under the run's problem,
// GPU, types, compiler, cost model and policy, by whichever run, fastest first, but for
// single samples.
// Of each key the newest evaluation counts.
func (s *Store) Best(r *Run, n int) ([]Evaluation, error) {
	problem, err := canonical(r.Problem)
	if err != nil {
		return nil, err
	}
	found, err := s.query(`SELECT id, `+columns+` FROM evaluations e
		WHERE outcome IN ('correct', 'predicted') AND instr(program, '`+sampleMark+`') = 0
		AND run IN (SELECT id FROM runs WHERE family = ? AND gpu = ? AND problem = ? AND driver = ? AND types = ? AND policy = ? AND compiler = ? AND cost_model = ?)
		AND id = (SELECT max(id) FROM evaluations WHERE key = e.key)
		ORDER BY time_us, id`,
		r.Family, r.GPU, string(problem), r.Driver, r.Types, r.Policy, r.Compiler, r.CostModel)
	return found[:min(n, len(found))], err
}

// Evaluations returns everything a run recorded, in order.
func (s *Store) Evaluations(run int64) ([]Evaluation, error) {
	return s.query(`SELECT id, `+columns+` FROM evaluations WHERE run = ? ORDER BY id`, run)
}

// query returns the evaluations of rows that are whole. Others are left out, and
// as they are: see Skipped.
func (s *Store) query(query string, args ...any) ([]Evaluation, error) {
	st, err := s.statement(query)
	if err != nil {
		return nil, err
	}
	rows, err := st.Query(args...)
	if err != nil {
		return nil, explain(s.path, err)
	}
	defer rows.Close()
	var out []Evaluation
	for rows.Next() {
		e, err := scan(rows)
		if err == nil {
			err = e.check()
		}
		if err != nil {
			s.skip(e.ID, err)
			continue
		}
		out = append(out, e)
	}
	if err := rows.Err(); err != nil {
		return nil, explain(s.path, err)
	}
	return out, nil
}

func scan(rows *sql.Rows) (Evaluation, error) {
	var (
		e                  Evaluation
		at                 int64
		key                []byte
		us                 sql.NullFloat64
		provenance, limits sql.NullString
		terms              sql.NullString
		instructions       sql.NullString
		samples, seconds   sql.NullString
	)
	err := rows.Scan(&e.ID, &e.Run, &at, &key, &e.Program, &e.Config, &e.Outcome, &e.Error,
		&e.Registers, &e.SharedBytes, &e.SpillBytes, &e.CTAsPerSM, &us, &provenance, &limits, &e.Cubin, &e.Verified, &terms, &instructions, &samples, &seconds, &e.Throttled)
	if err != nil {
		return e, err
	}
	if len(key) != len(e.Key) {
		return e, fmt.Errorf("%w: a key of %d bytes", ErrDamaged, len(key))
	}
	copy(e.Key[:], key)
	e.At = time.UnixMilli(at).UTC()
	e.TimeUS = us.Float64
	if provenance.Valid {
		if err := e.Provenance.UnmarshalText([]byte(provenance.String)); err != nil {
			return e, fmt.Errorf("%w: provenance: %w", ErrDamaged, err)
		}
	}
	for _, c := range []struct {
		name string
		text sql.NullString
		into any
	}{
		{"limits", limits, &e.Limits}, {"terms", terms, &e.Terms}, {"instructions", instructions, &e.Instructions},
		{"samples", samples, &e.Samples}, {"seconds", seconds, &e.Seconds},
	} {
		if !c.text.Valid {
			continue
		}
		if err := json.Unmarshal([]byte(c.text.String), c.into); err != nil {
			return e, fmt.Errorf("%w: %s: %w", ErrDamaged, c.name, err)
		}
	}
	return e, nil
}

// Runs returns all runs, newest first.
func (s *Store) Runs() ([]Run, error) {
	st, err := s.statement(`SELECT id, started, command, family, problem, gpu, driver, types, policy, kgen, compiler, cost_model, budget, seed
		FROM runs ORDER BY id DESC`)
	if err != nil {
		return nil, err
	}
	rows, err := st.Query()
	if err != nil {
		return nil, explain(s.path, err)
	}
	defer rows.Close()
	var out []Run
	for rows.Next() {
		var r Run
		var started, problem string
		var seed int64
		if err := rows.Scan(&r.ID, &started, &r.Command, &r.Family, &problem, &r.GPU, &r.Driver, &r.Types, &r.Policy,
			&r.Kgen, &r.Compiler, &r.CostModel, &r.Budget, &seed); err != nil {
			return nil, explain(s.path, err)
		}
		if r.Started, err = time.Parse(time.RFC3339Nano, started); err != nil {
			return nil, explain(s.path, fmt.Errorf("%w: run %d: %w", ErrDamaged, r.ID, err))
		}
		r.Problem, r.Seed = json.RawMessage(problem), uint64(seed) //nolint:gosec // as Begin stored it
		out = append(out, r)
	}
	if err := rows.Err(); err != nil {
		return nil, explain(s.path, err)
	}
	return out, nil
}
