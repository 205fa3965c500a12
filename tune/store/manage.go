package store

import (
	"database/sql"
	"errors"
	"fmt"
)

// ErrNoRun says that the store has no run of that number.
var ErrNoRun = errors.New("no such run")

// Run returns a run by its number.
func (s *Store) Run(id int64) (*Run, error) {
	runs, err := s.Runs()
	if err != nil {
		return nil, err
	}
	for i := range runs {
		if runs[i].ID == id {
			return &runs[i], nil
		}
	}
	return nil, fmt.Errorf("store %s: run %d: %w", s.path, id, ErrNoRun)
}

// Recorded is a run with its evaluations.
type Recorded struct {
	Run
	Evaluations []Evaluation `json:"evaluations"`
}

// Import adds runs with their evaluations, all or nothing, and returns the numbers of the
// runs that were added and how many evaluations: those that the store has, by key, moment
// and outcome, are left out, and so are runs with no others. Keys are computed anew.
func (s *Store) Import(all []Recorded) (runs []int64, added int, err error) {
	tx, err := s.db.Begin()
	if err != nil {
		return nil, 0, explain(s.path, err)
	}
	defer tx.Rollback() //nolint:errcheck // no effect after Commit
	for i := range all {
		id, n, err := s.importRun(tx, all[i])
		if err != nil {
			return nil, 0, fmt.Errorf("run %d of %d: %w", i+1, len(all), err)
		}
		if id != 0 {
			runs = append(runs, id)
		}
		added += n
	}
	if err := tx.Commit(); err != nil {
		return nil, 0, explain(s.path, err)
	}
	return runs, added, nil
}

func (s *Store) importRun(tx *sql.Tx, r Recorded) (id int64, added int, err error) {
	if r.Problem, err = canonical(r.Problem); err != nil {
		return 0, 0, err
	}
	if err := errors.Join(r.check(), r.checkNames()); err != nil {
		return 0, 0, err
	}
	if r.Started.IsZero() {
		return 0, 0, errors.New("it has no time at which it was started")
	}
	for _, e := range r.Evaluations {
		e.Key = r.Key(e.Program, e.Config)
		e.Run = max(id, 1) // until there is one
		if err := e.check(); err != nil {
			return 0, 0, err
		}
		there, err := known(tx, &e)
		if err != nil {
			return 0, 0, explain(s.path, err)
		}
		if there {
			continue
		}
		if id == 0 {
			res, err := tx.Exec(insertRun, r.row()...)
			if err != nil {
				return 0, 0, explain(s.path, err)
			}
			if id, err = res.LastInsertId(); err != nil {
				return 0, 0, explain(s.path, err)
			}
		}
		e.Run = id
		row, err := e.row()
		if err != nil {
			return 0, 0, err
		}
		if _, err := tx.Exec(insertEvaluation, row...); err != nil {
			return 0, 0, explain(s.path, err)
		}
		added++
	}
	return id, added, nil
}

func known(tx *sql.Tx, e *Evaluation) (bool, error) {
	var n int
	err := tx.QueryRow(`SELECT count(*) FROM evaluations WHERE key = ? AND at = ? AND outcome = ?`, e.Key[:], e.At.UnixMilli(), string(e.Outcome)).Scan(&n)
	return n > 0, err
}

// Prune removes runs with all their evaluations, in one transaction, and gives the room
// back. It returns how many evaluations went. A run that is not there is an error, and
// nothing is removed.
func (s *Store) Prune(runs []int64) (evaluations int64, err error) {
	tx, err := s.db.Begin()
	if err != nil {
		return 0, explain(s.path, err)
	}
	defer tx.Rollback() //nolint:errcheck // no effect after Commit
	for _, id := range runs {
		res, err := tx.Exec(`DELETE FROM evaluations WHERE run = ?`, id)
		if err != nil {
			return 0, explain(s.path, err)
		}
		n, err := res.RowsAffected()
		if err != nil {
			return 0, explain(s.path, err)
		}
		evaluations += n
		if res, err = tx.Exec(`DELETE FROM runs WHERE id = ?`, id); err != nil {
			return 0, explain(s.path, err)
		}
		if n, err = res.RowsAffected(); err != nil || n == 0 {
			return 0, errors.Join(err, fmt.Errorf("store %s: run %d: %w", s.path, id, ErrNoRun))
		}
	}
	if err := tx.Commit(); err != nil {
		return 0, explain(s.path, err)
	}
	// It fails while others write; the room is given back another time then.
	_, _ = s.db.Exec("VACUUM")
	return evaluations, nil
}
