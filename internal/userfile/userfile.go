// Package userfile opens the files that a user names. What is no regular file is refused
// before it is opened: a pipe that nobody writes to hangs, and devices have no end.
package userfile

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
)

// errKind says that a name is not of a regular file.
var errKind = errors.New("a folder, pipe or device: want a file")

// Open opens a regular file for reading. Its errors are of type *fs.PathError.
func Open(name string) (*os.File, error) {
	info, err := os.Stat(name)
	var path *fs.PathError
	if errors.As(err, &path) {
		path.Op = "open" // which is what was asked for
	}
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, &fs.PathError{Op: "open", Path: name, Err: errKind}
	}
	return os.Open(name)
}

// Read reads a regular file of at most limit bytes. Its errors are of type *fs.PathError.
func Read(name string, limit int64) ([]byte, error) {
	f, err := Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var all bytes.Buffer
	if info, err := f.Stat(); err == nil {
		all.Grow(int(min(info.Size(), limit)) + bytes.MinRead)
	}
	_, err = all.ReadFrom(io.LimitReader(f, limit+1))
	text := all.Bytes()
	if err == nil && int64(len(text)) > limit {
		err = &fs.PathError{Op: "read", Path: name, Err: fmt.Errorf("more than %d bytes", limit)}
	}
	return text, err
}
