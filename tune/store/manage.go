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

// Import adds a run with its evaluations, all or nothing, and returns its number and how
// many evaluations are new: those that the store has, by key, moment and outcome, are left
// out, and a run with no others is not added, of number 0. Keys are computed anew.
func (s *Store) Import(r Run, all []Evaluation) (id int64, added int, err error) {
	problem, err := canonical(r.Problem)
	if err != nil {
		return 0, 0, err
	}
	r.Problem = problem
	if r.Family == "" || r.GPU == "" || r.Policy == "" || r.Started.IsZero() {
		return 0, 0, fmt.Errorf("run of family %q on GPU %q with policy %q, started %s: want all four", r.Family, r.GPU, r.Policy, r.Started)
	}
	tx, err := s.db.Begin()
	if err != nil {
		return 0, 0, explain(s.path, err)
	}
	defer tx.Rollback() //nolint:errcheck // no effect after Commit
	for _, e := range all {
		e.Key = r.Key(e.Program, e.Config)
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
		if err := e.check(); err != nil {
			return 0, 0, err
		}
		row, err := e.row()
		if err != nil {
			return 0, 0, err
		}
		if _, err := tx.Exec(insertEvaluation, row...); err != nil {
			return 0, 0, explain(s.path, err)
		}
		added++
	}
	if err := tx.Commit(); err != nil {
		return 0, 0, explain(s.path, err)
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
