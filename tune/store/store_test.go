package store

import (
	"bytes"
	"database/sql"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/kgen-dev/kgen/bench"
	_ "github.com/kgen-dev/kgen/internal/fixedseed" // of rapid
)

func tempPath(t testing.TB) string { return filepath.Join(t.TempDir(), "state", "tune.db") }

func mustOpen(t testing.TB, path string) *Store {
	t.Helper()
	s, err := Open(path)
	require.NoError(t, err)
	t.Cleanup(func() { s.Close() })
	return s
}

var standard = Run{
	Command: "kgen tune gemm --gpu h100", Family: "gemm", Problem: json.RawMessage(`{"n": 4096, "m": 4096, "k": 4096}`),
	GPU: "h100-sxm5-80", Types: "bf16", Policy: "predicted", Kgen: "v0", Compiler: "nvrtc 13.0.88", CostModel: "1", Budget: 100, Seed: math.MaxUint64,
}

func mustBegin(t testing.TB, s *Store, r Run) *Run {
	t.Helper()
	run, err := s.Begin(r)
	require.NoError(t, err)
	return run
}

func correct(r *Run, i int) Evaluation {
	config := fmt.Sprintf("BM=128 BN=%d", i)
	return Evaluation{
		Run: r.ID, Key: r.Key("program", config), Program: "program", Config: config, Outcome: Correct,
		Registers: 168, SharedBytes: 65536, SpillBytes: 4, CTAsPerSM: 2, TimeUS: 1000.5 + float64(i), Provenance: bench.Predicted,
		Limits: map[string]float64{"HBM": 100.25, "tensor": 555.7, "MUFU": 0}, Terms: map[string]float64{"tensor": 1000.5, "waves": float64(i)}, Cubin: "c0ffee", Instructions: map[string]int{"HGMMA": 16, "UTMALDG": i + 1}, Verified: i%2 == 0,
	}
}

func TestEverythingComesBack(t *testing.T) {
	path := tempPath(t)
	s := mustOpen(t, path)
	require.Empty(t, s.Aside())
	require.Equal(t, path, s.Path())
	r := mustBegin(t, s, standard)

	want := []Evaluation{correct(r, 1), correct(r, 2)}
	for i, o := range []Outcome{Compile, Runtime, Correctness, Timeout, Constraints, Resources} {
		e := correct(r, 10+i)
		e.Outcome, e.Error, e.TimeUS, e.Provenance, e.Limits = o, "because\nof \x00 \"this\"", 0, 0, nil
		want = append(want, e)
	}
	at := time.Date(2026, 11, 29, 12, 0, 0, 123e6, time.UTC)
	for i := range want {
		want[i].At = at.Add(time.Duration(i) * time.Second)
		require.NoError(t, s.Record(want[i]))
		want[i].ID = int64(i + 1)
	}
	require.NoError(t, s.Close())

	s = mustOpen(t, path)
	got, err := s.Evaluations(r.ID)
	require.NoError(t, err)
	require.Empty(t, cmp.Diff(want, got))
	e, ok, err := s.Lookup(want[3].Key)
	require.NoError(t, err)
	require.True(t, ok)
	require.Empty(t, cmp.Diff(want[3], e))
	_, ok, err = s.Lookup(r.Key("program", "unknown"))
	require.NoError(t, err)
	require.False(t, ok)
	runs, err := s.Runs()
	require.NoError(t, err)
	require.Empty(t, cmp.Diff([]Run{*r}, runs))
}

func TestBest(t *testing.T) {
	s := mustOpen(t, tempPath(t))
	r := mustBegin(t, s, standard)
	for _, i := range []int{5, 3, 9, 1, 7} {
		require.NoError(t, s.Record(correct(r, i)))
	}
	// The fastest turns out to be wrong, and another faster than predicted.
	wrong := correct(r, 1)
	wrong.Outcome, wrong.Error, wrong.TimeUS, wrong.Provenance = Correctness, "0.5 at [3, 7]: want 0.25", 0, 0
	require.NoError(t, s.Record(wrong))
	again := correct(r, 9)
	again.TimeUS, again.Terms, again.Verified = 3, nil, true
	require.NoError(t, s.Record(again))

	// Another problem, cost model and GPU do not mix in.
	for _, change := range []func(*Run){
		func(r *Run) { r.Problem = json.RawMessage(`{"m":1,"n":1,"k":1}`) },
		func(r *Run) { r.CostModel = "2" },
		func(r *Run) { r.GPU = "a100-sxm4-80" },
		func(r *Run) { r.Compiler = "ptxas" },
		func(r *Run) { r.Types = "f16" },
		func(r *Run) { r.Policy = "measured" },
	} {
		other := standard
		change(&other)
		o := mustBegin(t, s, other)
		e := correct(o, 1)
		e.TimeUS, e.Terms = 1, nil
		require.NoError(t, s.Record(e))
	}
	// A later run of the same problem, written in another order, sees all.
	same := standard
	same.Problem, same.Command, same.Budget, same.Seed = json.RawMessage(`{"k":4096,"m":4096,"n":4096}`), "again", 7, 1
	r2 := mustBegin(t, s, same)
	best, err := s.Best(r2, 3)
	require.NoError(t, err)
	var configs []string
	for _, e := range best {
		configs = append(configs, e.Config)
	}
	require.Equal(t, []string{"BM=128 BN=9", "BM=128 BN=3", "BM=128 BN=5"}, configs)
	require.Equal(t, 3.0, best[0].TimeUS)
	require.True(t, best[0].Verified)
	require.Equal(t, r.Key("p", "c"), r2.Key("p", "c"))
}

// Every field of the key matters, and none runs into the next.
func TestKey(t *testing.T) {
	base := standard.Key("p", "c")
	require.Len(t, base.String(), 64)
	for name, change := range map[string]func(*Run){
		"family":     func(r *Run) { r.Family += "x" },
		"problem":    func(r *Run) { r.Problem = json.RawMessage(`{"m":4096,"n":4096,"k":4097}`) },
		"gpu":        func(r *Run) { r.GPU += "x" },
		"driver":     func(r *Run) { r.Driver += "x" },
		"types":      func(r *Run) { r.Types += "x" },
		"policy":     func(r *Run) { r.Policy += "x" },
		"compiler":   func(r *Run) { r.Compiler += "x" },
		"cost model": func(r *Run) { r.CostModel += "x" },
	} {
		r := standard
		change(&r)
		require.NotEqual(t, base, r.Key("p", "c"), name)
	}
	require.NotEqual(t, base, standard.Key("pc", ""))
	require.NotEqual(t, base, standard.Key("", "pc"))
	for name, change := range map[string]func(*Run){
		"command": func(r *Run) { r.Command += "x" },
		"budget":  func(r *Run) { r.Budget++ },
		"seed":    func(r *Run) { r.Seed++ },
		"order":   func(r *Run) { r.Problem = json.RawMessage(`{"k":4096,"m":4096,  "n":4096}`) },
	} {
		r := standard
		change(&r)
		require.Equal(t, base, r.Key("p", "c"), name)
	}
}

func TestBadRecordsAreRefused(t *testing.T) {
	s := mustOpen(t, tempPath(t))
	r := mustBegin(t, s, standard)
	for want, spoil := range map[string]func(*Evaluation){
		"time of NaN us":       func(e *Evaluation) { e.TimeUS = math.NaN() },
		"time of +Inf us":      func(e *Evaluation) { e.TimeUS = math.Inf(1) },
		"its terms add up":     func(e *Evaluation) { e.TimeUS++ },
		"time of 0 us":         func(e *Evaluation) { e.TimeUS = 0 },
		"not formula":          func(e *Evaluation) { e.Provenance = bench.Formula },
		"not unknown":          func(e *Evaluation) { e.Provenance = 0 },
		"with the error":       func(e *Evaluation) { e.Error = "x" },
		"needs an error":       func(e *Evaluation) { e.Outcome = Timeout },
		`outcome "fine"`:       func(e *Evaluation) { e.Outcome = "fine" },
		"without a config":     func(e *Evaluation) { e.Config = "" },
		"a run or a key":       func(e *Evaluation) { e.Key = Key{} },
		"limit HBM of NaN us":  func(e *Evaluation) { e.Limits["HBM"] = math.NaN() },
		"FOREIGN KEY constrai": func(e *Evaluation) { e.Run = 99 },
	} {
		e := correct(r, 1)
		spoil(&e)
		require.ErrorContains(t, s.Record(e), want)
	}
	for _, problem := range []string{``, `null`, `[1]`, `{`, `{} {}`, `"x"`, `{"a":nan}`} {
		bad := standard
		bad.Problem = json.RawMessage(problem)
		_, err := s.Begin(bad)
		require.Error(t, err, problem)
		_, err = s.Best(&bad, 1)
		require.Error(t, err, problem)
	}
	bad := standard
	bad.Family = ""
	_, err := s.Begin(bad)
	require.ErrorContains(t, err, "family")
	got, err := s.Evaluations(r.ID)
	require.NoError(t, err)
	require.Empty(t, got)
}

// Whatever text a configuration or an error holds comes back unchanged.
func TestTextRoundTrip(t *testing.T) {
	s := mustOpen(t, tempPath(t))
	r := mustBegin(t, s, standard)
	rapid.Check(t, func(t *rapid.T) {
		e := Evaluation{
			Run: r.ID, Outcome: Compile, Program: rapid.String().Draw(t, "program"),
			Config: rapid.StringN(1, -1, -1).Draw(t, "config"), Error: rapid.StringN(1, -1, -1).Draw(t, "error"), At: time.UnixMilli(0).UTC(),
		}
		e.Key = r.Key(e.Program, e.Config)
		require.NoError(t, s.Record(e))
		got, ok, err := s.Lookup(e.Key)
		require.NoError(t, err)
		require.True(t, ok)
		e.ID = got.ID
		require.Empty(t, cmp.Diff(e, got))
	})
}

func TestManyGoroutines(t *testing.T) {
	s := mustOpen(t, tempPath(t))
	r := mustBegin(t, s, standard)
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() {
			for i := range 50 {
				e := correct(r, g*50+i)
				if err := s.Record(e); err != nil {
					t.Error(err)
				}
				if _, ok, err := s.Lookup(e.Key); err != nil || !ok {
					t.Errorf("%s: %t, %v", e.Config, ok, err)
				}
			}
		})
	}
	wg.Wait()
	got, err := s.Evaluations(r.ID)
	require.NoError(t, err)
	require.Len(t, got, 400)
}

// Two openings of one file see each other's records at once.
func TestTwoStoresOnOneFile(t *testing.T) {
	path := tempPath(t)
	a, b := mustOpen(t, path), mustOpen(t, path)
	ra, rb := mustBegin(t, a, standard), mustBegin(t, b, standard)
	require.NotEqual(t, ra.ID, rb.ID)
	for i := range 20 {
		require.NoError(t, a.Record(correct(ra, i)))
		_, ok, err := b.Lookup(rb.Key("program", fmt.Sprintf("BM=128 BN=%d", i)))
		require.NoError(t, err)
		require.True(t, ok)
		require.NoError(t, b.Record(correct(rb, 100+i)))
	}
	best, err := a.Best(ra, 100)
	require.NoError(t, err)
	require.Len(t, best, 40)
}

func TestAwkwardPaths(t *testing.T) {
	for _, name := range []string{"a b", "50%25", "what?x=1", "hash#tag", "ünï", "semi;colon&amp"} {
		path := filepath.Join(t.TempDir(), name, "tune.db")
		s := mustOpen(t, path)
		mustBegin(t, s, standard)
		require.NoError(t, s.Close())
		info, err := os.Stat(path)
		require.NoError(t, err, name)
		require.Positive(t, info.Size())
	}
}

func TestDir(t *testing.T) {
	t.Setenv("KGEN_STATE", "/one")
	t.Setenv("XDG_STATE_HOME", "/two")
	t.Setenv("HOME", "/three")
	dir := func() string {
		path, err := DefaultPath()
		require.NoError(t, err)
		return path
	}
	require.Equal(t, "/one/tune.db", dir())
	t.Setenv("KGEN_STATE", "")
	require.Equal(t, "/two/kgen/tune.db", dir())
	t.Setenv("XDG_STATE_HOME", "relative")
	require.Equal(t, "/three/.local/state/kgen/tune.db", dir())
	t.Setenv("HOME", "")
	_, err := DefaultPath()
	require.ErrorContains(t, err, "KGEN_STATE")
}

func TestMigration(t *testing.T) {
	path := tempPath(t)
	s := mustOpen(t, path)
	r := mustBegin(t, s, standard)
	require.NoError(t, s.Record(correct(r, 1)))
	require.NoError(t, s.Close())

	next := append(append([]string(nil), migrations...), `ALTER TABLE evaluations ADD COLUMN energy_mj REAL`)
	s, err := open(path, next)
	require.NoError(t, err)
	_, ok, err := s.Lookup(correct(r, 1).Key)
	require.NoError(t, err)
	require.True(t, ok)
	require.NoError(t, s.Close())

	// This kgen does not know the next version's store and leaves it alone.
	before, err := os.ReadFile(path)
	require.NoError(t, err)
	_, err = Open(path)
	require.ErrorIs(t, err, ErrNewer)
	require.ErrorContains(t, err, path)
	require.ErrorContains(t, err, fmt.Sprintf("schema version %d", len(next)))
	after, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, before, after)
	require.Empty(t, asides(t, path))

	// A step that fails changes nothing.
	broken := append(append([]string(nil), next...), `CREATE TABLE later (x); CREATE TABLE runs (x)`)
	_, err = open(path, broken)
	require.ErrorContains(t, err, fmt.Sprintf("schema version %d", len(next)+1))
	s, err = open(path, next)
	require.NoError(t, err)
	require.NoError(t, s.Close())
	db, err := sql.Open("sqlite", path)
	require.NoError(t, err)
	defer db.Close()
	require.Error(t, db.QueryRow(`SELECT * FROM later`).Scan(new(int)))
}

func BenchmarkRecord(b *testing.B) {
	s := mustOpen(b, tempPath(b))
	r := mustBegin(b, s, standard)
	i := 0
	for b.Loop() {
		i++
		if err := s.Record(correct(r, i)); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkLookup(b *testing.B) {
	s := mustOpen(b, tempPath(b))
	r := mustBegin(b, s, standard)
	for i := range 5000 {
		require.NoError(b, s.Record(correct(r, i)))
	}
	i := 0
	for b.Loop() {
		i++
		if _, ok, err := s.Lookup(correct(r, i%5000).Key); err != nil || !ok {
			b.Fatal(ok, err)
		}
	}
}

// A store of version 1 called correct what was only predicted.
func TestOldPredictionsAreNamed(t *testing.T) {
	path := tempPath(t)
	s, err := open(path, migrations[:1])
	require.NoError(t, err)
	r := mustBegin(t, s, standard)
	for i, row := range []struct {
		provenance string
		verified   bool
	}{{"predicted", false}, {"predicted", true}, {"measured", false}} {
		_, err := s.db.Exec(`INSERT INTO evaluations VALUES (?, ?, 0, ?, 'p', 'BM=64', 'correct', '', 1, 2, 3, 4, 5.5, ?, '{"HBM":1}', 'c', ?)`,
			i+1, r.ID, bytes.Repeat([]byte{1}, 32), row.provenance, row.verified)
		require.NoError(t, err)
	}
	require.NoError(t, s.Close())
	s = mustOpen(t, path)
	all, err := s.Evaluations(r.ID)
	require.NoError(t, err)
	require.Len(t, all, 3)
	for i, want := range []Outcome{Predicted, Correct, Correct} {
		require.Equal(t, want, all[i].Outcome)
		require.Equal(t, 5.5, all[i].TimeUS)
		require.Equal(t, int64(i+1), all[i].ID)
	}
}

// TestNegativeVersionIsForeign holds that a schema version below zero is refused, not
// taken as an index.
func TestNegativeVersionIsForeign(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tune.db")
	s, err := Open(path)
	require.NoError(t, err)
	_, err = s.db.Exec("PRAGMA user_version = -4")
	require.NoError(t, err)
	require.NoError(t, s.Close())
	_, err = Open(path)
	require.ErrorIs(t, err, ErrForeign)
	require.ErrorContains(t, err, "schema version -4")
}

func TestForeignDatabaseStaysAsItIs(t *testing.T) {
	for _, pragma := range []string{"user_version = 3", "application_id = 77"} {
		path := filepath.Join(t.TempDir(), "theirs.db")
		db, err := sql.Open("sqlite", path)
		require.NoError(t, err)
		_, err = db.Exec("CREATE TABLE x (a); PRAGMA " + pragma)
		require.NoError(t, err)
		require.NoError(t, db.Close())
		before, err := os.ReadFile(path)
		require.NoError(t, err)
		_, err = Open(path)
		require.ErrorIs(t, err, ErrForeign)
		require.ErrorContains(t, err, "another program's database")
		after, err := os.ReadFile(path)
		require.NoError(t, err)
		require.Equal(t, before, after)
		require.NoFileExists(t, path+".lock")
	}
}
