// Package atomicfile writes files that appear whole or not at all: a reader, a
// kill or a full disk never sees a part of one.
package atomicfile

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
)

// Unfinished begins the name of a file that is being written, beside the one it
// will be. Only a kill leaves one behind.
const Unfinished = ".new-"

// File is a file to write.
type File struct {
	Path  string
	Write func(io.Writer) error // its content
}

// Bytes is a file with the given content.
func Bytes(path string, data []byte) File {
	return File{path, func(w io.Writer) error {
		_, err := w.Write(data)
		return err
	}}
}

// Write writes the files beside their places first, and renames them once all
// are whole: when one cannot be written, none is replaced. Permissions are 0666
// less the umask. A device or pipe is written as it is. Errors are an
// *[fs.PathError] that names a file of the caller's.
func Write(files ...File) (err error) {
	written := make([]string, 0, len(files))
	defer func() {
		if err != nil {
			for _, name := range written {
				os.Remove(name)
			}
		}
	}()
	for _, f := range files {
		if special(f.Path) {
			written = append(written, "")
			if err := f.direct(); err != nil {
				return named(f.Path, err)
			}
			continue
		}
		temp := filepath.Join(filepath.Dir(f.Path), fmt.Sprintf("%s%08x", Unfinished, rand.Uint32()))
		written = append(written, temp)
		if err := f.to(temp, os.O_CREATE|os.O_EXCL); err != nil {
			return named(f.Path, err)
		}
	}
	for i, f := range files {
		if written[i] == "" {
			continue
		}
		if err := os.Rename(written[i], f.Path); err != nil {
			return named(f.Path, err)
		}
	}
	return nil
}

// special tells a device, pipe or folder from a file that can be replaced.
func special(path string) bool {
	info, err := os.Stat(path)
	return err == nil && !info.Mode().IsRegular()
}

// direct writes to what is there.
func (f *File) direct() error { return f.to(f.Path, 0) }

func (f *File) to(name string, flags int) error {
	out, err := os.OpenFile(name, os.O_WRONLY|flags, 0o666)
	if err != nil {
		return err
	}
	w := bufio.NewWriterSize(out, 1<<16)
	err = f.Write(w)
	if err == nil {
		err = w.Flush()
	}
	return errors.Join(err, out.Close())
}

// named says the caller's name in place of the temporary file's.
func named(path string, err error) error {
	var p *fs.PathError
	var l *os.LinkError
	switch {
	case errors.As(err, &p):
		return &fs.PathError{Op: "write", Path: path, Err: p.Err}
	case errors.As(err, &l):
		return &fs.PathError{Op: "write", Path: path, Err: l.Err}
	}
	return &fs.PathError{Op: "write", Path: path, Err: err}
}
