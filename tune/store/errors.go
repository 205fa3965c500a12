package store

import (
	"errors"
	"fmt"
	"io/fs"
	"syscall"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"
)

// Causes that callers tell apart, by errors.Is.
var (
	ErrReadOnly = errors.New("cannot be written")
	ErrFull     = errors.New("no space left")
	ErrDisk     = errors.New("the disk fails or has no room")
	ErrBusy     = errors.New("held by another process for too long")
	ErrDamaged  = errors.New("damaged")
	ErrNewer    = errors.New("written by a newer kgen")
	ErrForeign  = errors.New("not a kgen store")
)

// explain names the store and the cause of an error.
func explain(path string, err error) error {
	cause, advice := causeOf(err)
	switch {
	case cause == nil || errors.Is(err, cause):
		return fmt.Errorf("store %s: %w", path, err)
	default:
		return fmt.Errorf("store %s: %w: %w%s", path, cause, err, advice)
	}
}

//nolint:revive,staticcheck // neither result is a failure of its own
func causeOf(err error) (cause error, advice string) {
	const elsewhere = ": set " + Env + " to a folder with room for it"
	var s *sqlite.Error
	if errors.As(err, &s) {
		switch s.Code() & 0xff { // the low byte is the primary code
		case sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM:
			return ErrReadOnly, elsewhere
		case sqlite3.SQLITE_FULL:
			return ErrFull, elsewhere
		case sqlite3.SQLITE_IOERR, sqlite3.SQLITE_PROTOCOL, sqlite3.SQLITE_NOLFS:
			return ErrDisk, ": make room, or set " + Env + " to a folder on another disk"
		case sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED:
			return ErrBusy, ""
		case sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB:
			return ErrDamaged, ""
		}
	}
	switch {
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		return ErrFull, elsewhere
	case errors.Is(err, fs.ErrPermission), errors.Is(err, syscall.EROFS), errors.Is(err, syscall.ENOTDIR), errors.Is(err, syscall.EISDIR), errors.Is(err, fs.ErrNotExist):
		return ErrReadOnly, elsewhere
	}
	return nil, ""
}
