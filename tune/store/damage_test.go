package store

import (
	"bytes"
	"database/sql"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// asides returns the damaged stores that were kept beside path.
func asides(t testing.TB, path string) []string {
	t.Helper()
	found, err := filepath.Glob(path + ".corrupt-*")
	require.NoError(t, err)
	return found
}

// filled makes a store with n records and returns its path and bytes.
func filled(t testing.TB, n int) (string, []byte) {
	t.Helper()
	path := tempPath(t)
	s := mustOpen(t, path)
	r := mustBegin(t, s, standard)
	for i := range n {
		require.NoError(t, s.Record(correct(r, i)))
	}
	require.NoError(t, s.Close())
	content, err := os.ReadFile(path)
	require.NoError(t, err)
	return path, content
}

func TestDamagedStoreIsKeptAside(t *testing.T) {
	for name, damage := range map[string]func([]byte) []byte{
		"truncated":      func(b []byte) []byte { return b[:len(b)/2] },
		"a page of zero": func(b []byte) []byte { clear(b[4096:8192]); return b },
		"noise": func(b []byte) []byte {
			random := rand.New(rand.NewPCG(1, 2))
			for i := 4096; i < len(b); i += 1 + random.IntN(5) {
				b[i] = byte(random.Uint32())
			}
			return b
		},
	} {
		t.Run(name, func(t *testing.T) {
			path, content := filled(t, 200)
			bad := damage(bytes.Clone(content))
			require.NoError(t, os.WriteFile(path, bad, 0o600))
			s := mustOpen(t, path)
			require.Equal(t, path+".corrupt-1", s.Aside())
			kept, err := os.ReadFile(s.Aside())
			require.NoError(t, err)
			require.True(t, bytes.Equal(bad, kept), "the damaged store must be kept as it was")
			r := mustBegin(t, s, standard)
			require.NoError(t, s.Record(correct(r, 1)))
			require.NoError(t, s.Close())

			// The next damage does not overwrite the first.
			require.NoError(t, os.WriteFile(path, content[:5000], 0o600))
			s = mustOpen(t, path)
			require.Equal(t, path+".corrupt-2", s.Aside())
			kept, err = os.ReadFile(path + ".corrupt-1")
			require.NoError(t, err)
			require.True(t, bytes.Equal(bad, kept))
		})
	}
}

// An empty file may be what is left of a store: a new one is begun in it, which is said,
// and what its log holds is kept.
func TestEmptyFile(t *testing.T) {
	path, _ := filled(t, 20)
	require.NoError(t, os.Truncate(path, 0))
	_, err := OpenWhole(path)
	require.ErrorIs(t, err, ErrForeign)
	require.ErrorContains(t, err, "an empty file, in which nothing was recorded")
	require.True(t, isEmpty(path))

	s := mustOpen(t, path)
	require.True(t, s.Emptied())
	require.Empty(t, s.Aside())
	require.NoError(t, s.Close())
	s = mustOpen(t, path)
	require.False(t, s.Emptied())
	require.NoError(t, s.Close())

	require.NoError(t, os.Truncate(path, 0))
	require.NoError(t, os.WriteFile(path+"-wal", []byte("records"), 0o600))
	s = mustOpen(t, path)
	require.False(t, s.Emptied())
	kept, err := os.ReadFile(s.Aside() + "-wal")
	require.NoError(t, err)
	require.Equal(t, "records", string(kept))
}

// A mistyped path costs nothing: what is no store keeps its name and its bytes,
// and nothing is made beside it.
func TestOtherFilesAreRefused(t *testing.T) {
	path, content := filled(t, 20)
	unmarked := bytes.Clone(content)
	clear(unmarked[68:72])
	for name, other := range map[string][]byte{
		"text":                 []byte("this is no database, but somebody wants it where it is"),
		"one byte":             {'S'},
		"part of the header":   content[:15],
		"damaged header":       append([]byte("SQLote"), content[6:]...),
		"damaged, another's":   unmarked[:5000],
		"header of another's":  unmarked[:16],
		"zeros":                make([]byte, 5000),
		"a database backwards": func() []byte { b := bytes.Clone(content); slices.Reverse(b); return b }(),
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(filepath.Dir(path), strings.ReplaceAll(name, " ", "-"))
			require.NoError(t, os.WriteFile(path, other, 0o600))
			_, err := Open(path)
			require.ErrorIs(t, err, ErrForeign)
			require.NotErrorIs(t, err, ErrDamaged)
			require.ErrorContains(t, err, path)
			kept, err := os.ReadFile(path)
			require.NoError(t, err)
			require.True(t, bytes.Equal(other, kept))
			require.Empty(t, asides(t, path))
		})
	}
}

// A row that fails the checks of a record is not believed and not lost.
func TestDamagedRowsAreSkipped(t *testing.T) {
	for name, damage := range map[string]string{
		"time beside its terms": `time_us = 1e-9`,
		"no time":               `time_us = NULL`,
		"a time of nothing":     `time_us = -1`,
		"provenance":            `provenance = 'guessed'`,
		"limits":                `limits = '{"HBM":'`,
		"a limit below zero":    `limits = '{"HBM":-1}'`,
		"terms":                 `terms = '[1]'`,
		"error of a success":    `error = 'x'`,
		"success of an error":   `outcome = 'compile'`,
		"configuration":         `config = ''`,
	} {
		t.Run(name, func(t *testing.T) {
			path := tempPath(t)
			s := mustOpen(t, path)
			r := mustBegin(t, s, standard)
			for i := range 4 {
				require.NoError(t, s.Record(correct(r, i)))
			}
			_, err := s.db.Exec(`UPDATE evaluations SET ` + damage + ` WHERE id = 2`)
			require.NoError(t, err)
			_, ok, err := s.Lookup(correct(r, 1).Key)
			require.NoError(t, err)
			require.False(t, ok, "it is evaluated again")
			best, err := s.Best(r, 3)
			require.NoError(t, err)
			require.Len(t, best, 3)
			require.Len(t, s.Skipped(), 1)
			require.ErrorContains(t, s.Skipped()[0], "store "+path+": evaluation 2: ")

			again := correct(r, 1)
			require.NoError(t, s.Record(again))
			got, ok, err := s.Lookup(again.Key)
			require.NoError(t, err)
			require.True(t, ok)
			require.Equal(t, again.TimeUS, got.TimeUS)
			var rows int
			require.NoError(t, s.db.QueryRow(`SELECT count(*) FROM evaluations`).Scan(&rows))
			require.Equal(t, 5, rows, "the damaged row is kept")
		})
	}
}

// Many open one damaged file at once: it is set aside exactly once and all
// work on the new store.
func TestDamageIsSetAsideOnce(t *testing.T) {
	path, content := filled(t, 10)
	require.NoError(t, os.WriteFile(path, content[:5000], 0o600))
	var wg sync.WaitGroup
	for i := range 6 {
		wg.Go(func() {
			s, err := Open(path)
			if err != nil {
				t.Error(err)
				return
			}
			defer s.Close()
			r, err := s.Begin(standard)
			if err != nil {
				t.Error(err)
				return
			}
			if err := s.Record(correct(r, i)); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	require.Len(t, asides(t, path), 1)
	s := mustOpen(t, path)
	best, err := s.Best(&standard, 100)
	require.NoError(t, err)
	require.Len(t, best, 6)
}

func TestAnotherProgramsDatabaseIsLeftAlone(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tune.db")
	db, err := sql.Open("sqlite", path)
	require.NoError(t, err)
	_, err = db.Exec(`CREATE TABLE precious (x); INSERT INTO precious VALUES (1)`)
	require.NoError(t, err)
	require.NoError(t, db.Close())
	_, err = Open(path)
	require.ErrorIs(t, err, ErrForeign)
	require.ErrorContains(t, err, path)
	require.Empty(t, asides(t, path))
	db, err = sql.Open("sqlite", path)
	require.NoError(t, err)
	defer db.Close()
	var x int
	require.NoError(t, db.QueryRow(`SELECT x FROM precious`).Scan(&x))
}

func TestUnwritablePaths(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	folder := filepath.Join(dir, "folder.db")
	require.NoError(t, os.Mkdir(folder, 0o700))
	for _, path := range []string{filepath.Join(file, "state", "tune.db"), folder, "/proc/kgen/tune.db"} {
		_, err := Open(path)
		require.ErrorIs(t, err, ErrReadOnly, path)
		require.ErrorContains(t, err, path)
		require.ErrorContains(t, err, "KGEN_STATE")
	}
	if os.Geteuid() == 0 {
		t.Log("file permissions do not bind root: the rest is covered for other users only")
		return
	}
	path, content := filled(t, 3)
	require.NoError(t, os.Chmod(path, 0o400))
	_, err := Open(path)
	require.ErrorIs(t, err, ErrReadOnly)
	require.NoError(t, os.Chmod(filepath.Dir(path), 0o500))
	t.Cleanup(func() { os.Chmod(filepath.Dir(path), 0o700) })
	_, err = Open(path)
	require.ErrorIs(t, err, ErrReadOnly)
	after, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, content, after)
}

// A store opened without the right to write says so when it is opened, also
// for root, to whom file permissions mean nothing.
func TestReadOnlyConnection(t *testing.T) {
	path, _ := filled(t, 3)
	db, err := sql.Open("sqlite", "file:"+path+"?mode=ro")
	require.NoError(t, err)
	defer db.Close()
	s := &Store{path: path, db: db, statements: map[string]*sql.Stmt{}}
	require.ErrorIs(t, explain(path, s.prepare(migrations)), ErrReadOnly)
}

func TestFullDisk(t *testing.T) {
	s := mustOpen(t, tempPath(t))
	r := mustBegin(t, s, standard)
	_, err := s.db.Exec("PRAGMA max_page_count = 20")
	require.NoError(t, err)
	recorded := 0
	for ; err == nil && recorded < 10_000; recorded++ {
		err = s.Record(correct(r, recorded))
	}
	require.ErrorIs(t, err, ErrFull)
	require.ErrorContains(t, err, s.path)
	// What was recorded before is there.
	got, err := s.Evaluations(r.ID)
	require.NoError(t, err)
	require.Len(t, got, recorded-1)
}

func TestBusyStore(t *testing.T) {
	path, _ := filled(t, 1)
	s := mustOpen(t, path)
	r := mustBegin(t, s, standard)
	_, err := s.db.Exec("PRAGMA busy_timeout = 50")
	require.NoError(t, err)
	db, err := sql.Open("sqlite", "file:"+path+"?_txlock=immediate")
	require.NoError(t, err)
	defer db.Close()
	tx, err := db.Begin()
	require.NoError(t, err)
	require.ErrorIs(t, s.Record(correct(r, 1)), ErrBusy)
	require.NoError(t, tx.Rollback())
	require.NoError(t, s.Record(correct(r, 1)))
}

// Damage below a store that is open is an error, not a loss of what is kept.
func TestDamageWhileOpen(t *testing.T) {
	path, content := filled(t, 2000)
	s := mustOpen(t, path)
	clear(content[4096:])
	require.NoError(t, os.WriteFile(path, content, 0o600))
	_, err := s.db.Exec("PRAGMA shrink_memory") // forget the pages read so far
	require.NoError(t, err)
	_, err = s.Best(&standard, 10)
	require.ErrorIs(t, err, ErrDamaged)
	require.NotErrorIs(t, err, ErrForeign)
	require.Contains(t, fmt.Sprint(err), path)
}
