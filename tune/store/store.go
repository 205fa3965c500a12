// Package store keeps every evaluation of every tuning run in one SQLite file,
// so that a killed run resumes, nothing is done twice, and runs that share the
// file help each other. Evaluations are appended and never changed.
package store

import (
	"database/sql"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	_ "modernc.org/sqlite" // the driver
)

// Store is an open store. Its methods may be called from many goroutines, and
// many processes may have one file open.
type Store struct {
	path    string
	aside   string
	emptied bool
	db      *sql.DB

	mu         sync.Mutex           // of what follows
	statements map[string]*sql.Stmt // prepared, when first needed
	skipped    map[int64]error      // damaged rows by their id
}

// Env names the environment variable that replaces the folder for kgen's state.
const Env = "KGEN_STATE"

// Dir returns the folder for kgen's state: $KGEN_STATE, or kgen under
// $XDG_STATE_HOME, or ~/.local/state/kgen.
func Dir() (string, error) {
	if dir := os.Getenv(Env); dir != "" {
		return filepath.Abs(dir)
	}
	// The base directory specification says to ignore a relative path.
	if dir := os.Getenv("XDG_STATE_HOME"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "kgen"), nil
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return "", fmt.Errorf("no folder for the store: set KGEN_STATE: %w", err)
	}
	return filepath.Join(home, ".local", "state", "kgen"), nil
}

// DefaultPath returns the store's file in Dir.
func DefaultPath() (string, error) {
	dir, err := Dir()
	if err != nil {
		return "", err
	}
	return filepath.Join(dir, "tune.db"), nil
}

// Open opens the store at path and makes it, with its folders, if there is
// none. A damaged store is kept aside under another name (see Aside) and a new
// one begun; any other file is left as it is and refused. Errors wrap
// ErrReadOnly, ErrFull, ErrDisk, ErrBusy, ErrNewer or ErrForeign where one of
// these is the cause.
func Open(path string) (*Store, error) { return open(path, migrations) }

// OpenWhole opens a store as Open does, but refuses a damaged one with
// ErrDamaged and an empty file with ErrForeign, and leaves both as they are: for those who
// read what was recorded.
func OpenWhole(path string) (*Store, error) {
	if _, err := os.Stat(path); err != nil {
		return Open(path)
	}
	path, _, err := identify(path)
	if err != nil {
		return nil, err
	}
	if isEmpty(path) { // or another process is about to make a store there
		unlock, err := lock(path + ".lock")
		if err != nil {
			return nil, explain(path, err)
		}
		defer unlock()
		if isEmpty(path) {
			return nil, explain(path, fmt.Errorf("%w: an empty file, in which nothing was recorded", ErrForeign))
		}
	}
	return connect(path, migrations)
}

// isEmpty tells whether a file is there and holds nothing.
func isEmpty(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular() && info.Size() == 0
}

// identify makes a store's path absolute, and tells whether the file there is kgen's.
func identify(path string) (abs string, ours bool, err error) {
	abs, err = filepath.Abs(path)
	if err != nil {
		return "", false, fmt.Errorf("store %s: %w", path, err)
	}
	if ours, err = readHeader(abs); err != nil {
		return "", false, explain(abs, err)
	}
	return abs, ours, nil
}

func open(path string, steps []string) (*Store, error) {
	path, ours, err := identify(path)
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, explain(path, err)
	}
	// The lock keeps two processes from setting one damaged file aside twice,
	// the second time with the first one's new store in it.
	unlock, err := lock(path + ".lock")
	if err != nil {
		return nil, explain(path, err)
	}
	defer unlock()

	emptied := isEmpty(path)
	var s *Store
	if wal, statErr := os.Stat(path + "-wal"); emptied && statErr == nil && wal.Size() > 0 {
		err = explain(path, fmt.Errorf("%w: it is empty, and its log is not", ErrDamaged)) // SQLite would remove the log
	} else {
		s, err = connect(path, steps)
	}
	switch {
	case err == nil:
		s.emptied = emptied
		return s, nil
	case !errors.Is(err, ErrDamaged):
		return nil, err
	case !ours:
		return nil, explain(path, fmt.Errorf("%w: a damaged database that nothing says is kgen's", ErrForeign))
	}
	aside, moveErr := setAside(path)
	if moveErr != nil {
		return nil, errors.Join(err, moveErr)
	}
	s, err = connect(path, steps)
	if err != nil {
		return nil, err
	}
	s.aside = aside
	return s, nil
}

// readHeader refuses a file that is no database, and tells whether one is
// marked as kgen's. The header's form: SQLite, "Database File Format".
func readHeader(path string) (ours bool, err error) {
	info, err := os.Stat(path)
	if err != nil || !info.Mode().IsRegular() || info.Size() == 0 {
		return true, nil // made or refused when it is opened
	}
	f, err := os.Open(path)
	if err != nil {
		return false, err
	}
	defer f.Close()
	const magic, schemaCookie, id = "SQLite format 3\x00", 40, 68
	header := make([]byte, 100)
	n, err := io.ReadFull(f, header)
	if errors.Is(err, io.EOF) {
		return true, nil // begun anew since, by another process
	}
	if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) {
		return false, err
	}
	if !strings.HasPrefix(string(header[:n]), magic) {
		return false, fmt.Errorf("%w: no SQLite database: want the name of a store or a new one", ErrForeign)
	}
	ours = binary.BigEndian.Uint32(header[id:]) == applicationID
	// Tables and mark come in one transaction: a schema without the mark is another's.
	if schema := binary.BigEndian.Uint32(header[schemaCookie:]); !ours && (schema != 0 || binary.BigEndian.Uint32(header[id:]) != 0) {
		return false, fmt.Errorf("%w: it is another program's database", ErrForeign)
	}
	return ours, nil
}

// connect opens the file as it is.
func connect(path string, steps []string) (*Store, error) {
	query := url.Values{"_pragma": {
		"busy_timeout(20000)", // first: the next ones may have to wait
		"synchronous(NORMAL)", // a killed process loses nothing; a power cut at most the newest records
		"foreign_keys(ON)",
	}, "_txlock": {"immediate"}}
	dsn := url.URL{Scheme: "file", OmitHost: true, Path: path, RawQuery: query.Encode()}
	db, err := sql.Open("sqlite", dsn.String())
	if err != nil {
		return nil, explain(path, err)
	}
	// One connection: writers would only wait for each other.
	db.SetMaxOpenConns(1)
	s := &Store{path: path, db: db, statements: map[string]*sql.Stmt{}, skipped: map[int64]error{}}
	if err := s.prepare(steps); err != nil {
		db.Close()
		return nil, explain(path, err)
	}
	return s, nil
}

// prepare checks that the file is whole and ours, and brings its schema up to
// date.
func (s *Store) prepare(steps []string) error {
	var id, version, tables int
	if err := s.db.QueryRow("PRAGMA application_id").Scan(&id); err != nil {
		return err
	}
	if err := s.db.QueryRow("SELECT count(*) FROM sqlite_schema").Scan(&tables); err != nil {
		return err
	}
	if id != applicationID && (id != 0 || tables > 0) {
		return fmt.Errorf("%w: it is another program's database", ErrForeign)
	}
	var verdict string
	if err := s.db.QueryRow("PRAGMA quick_check(1)").Scan(&verdict); err != nil {
		return err
	}
	if verdict != "ok" {
		return fmt.Errorf("%w: %s", ErrDamaged, verdict)
	}
	if err := s.db.QueryRow("PRAGMA user_version").Scan(&version); err != nil {
		return err
	}
	if version < 0 {
		return fmt.Errorf("%w: schema version %d, want 0 to %d", ErrForeign, version, len(steps))
	}
	if version > len(steps) {
		return fmt.Errorf("%w: schema version %d, this kgen knows versions up to %d: use a newer kgen or another KGEN_STATE", ErrNewer, version, len(steps))
	}
	// Only now, for it changes the file.
	if _, err := s.db.Exec("PRAGMA journal_mode = WAL"); err != nil {
		return err
	}
	return s.migrate(steps, version)
}

// migrate runs the steps the file lacks in one transaction. It begins one even
// if there are none, which shows whether the file can be written at all.
func (s *Store) migrate(steps []string, version int) error {
	tx, err := s.db.Begin()
	if err != nil {
		return err
	}
	defer tx.Rollback() //nolint:errcheck // no effect after Commit
	for _, step := range steps[version:] {
		if _, err := tx.Exec(step); err != nil {
			return fmt.Errorf("schema version %d: %w", version+1, err)
		}
		version++
	}
	if _, err := tx.Exec(fmt.Sprintf("PRAGMA application_id = %d", applicationID)); err != nil {
		return err
	}
	if _, err := tx.Exec(fmt.Sprintf("PRAGMA user_version = %d", version)); err != nil {
		return err
	}
	return tx.Commit()
}

// Path returns the store's file.
func (s *Store) Path() string { return s.path }

// Aside returns where Open kept a damaged store, empty if there was none. The
// caller tells the user.
func (s *Store) Aside() string { return s.aside }

// Emptied tells whether Open found an empty file, in which it began a new store: whoever
// had recorded something there has lost it. The caller tells the user.
func (s *Store) Emptied() bool { return s.emptied }

// Skipped returns what is wrong with the rows that queries left out, in the
// order of the rows. They stay in the file.
func (s *Store) Skipped() []error {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []error
	for _, id := range slices.Sorted(maps.Keys(s.skipped)) {
		out = append(out, s.skipped[id])
	}
	return out
}

func (s *Store) skip(id int64, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.skipped[id] = fmt.Errorf("store %s: evaluation %d: %w", s.path, id, err)
}

// Close ends the use of the store.
func (s *Store) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, st := range s.statements {
		st.Close()
	}
	s.statements = map[string]*sql.Stmt{}
	if err := s.db.Close(); err != nil {
		return explain(s.path, err)
	}
	return nil
}

// statement returns a prepared statement.
func (s *Store) statement(query string) (*sql.Stmt, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if st, ok := s.statements[query]; ok {
		return st, nil
	}
	st, err := s.db.Prepare(query)
	if err != nil {
		return nil, explain(s.path, err)
	}
	s.statements[query] = st
	return st, nil
}

// setAside renames a damaged store and what SQLite keeps beside it to the
// first free name PATH.corrupt-N and returns that name.
func setAside(path string) (string, error) {
	for n := 1; ; n++ {
		aside := fmt.Sprintf("%s.corrupt-%d", path, n)
		if _, err := os.Lstat(aside); err == nil {
			continue
		} else if !errors.Is(err, os.ErrNotExist) {
			return "", explain(path, err)
		}
		if err := os.Rename(path, aside); err != nil {
			return "", explain(path, fmt.Errorf("keep the damaged store as %s: %w", aside, err))
		}
		for _, suffix := range []string{"-wal", "-shm"} {
			if err := os.Rename(path+suffix, aside+suffix); err != nil && !errors.Is(err, os.ErrNotExist) {
				return "", explain(path, fmt.Errorf("keep the damaged store as %s: %w", aside, err))
			}
		}
		return aside, nil
	}
}
