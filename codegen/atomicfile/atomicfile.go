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
// will be. Only a kill leaves one behind, until the next file is written there.
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

// Write writes the files beside their places first, and renames them, in their order,
// once all are whole: when one cannot be written, none is replaced. Permissions are 0666
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
	swept := ""
	for _, f := range files {
		if special(f.Path) {
			written = append(written, "")
			if err := f.direct(); err != nil {
				return named(f.Path, err)
			}
			continue
		}
		dir := filepath.Dir(f.Path)
		if swept != dir {
			sweep(dir)
			swept = dir
		}
		temp := filepath.Join(dir, fmt.Sprintf("%s%08x", Unfinished, rand.Uint32()))
		written = append(written, temp)
		release, err := f.beside(temp)
		defer release()
		if err != nil {
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
func (f *File) direct() error {
	out, err := os.OpenFile(f.Path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	return f.to(out)
}

// beside makes the file under another name, which is held until release.
func (f *File) beside(temp string) (release func(), err error) {
	out, err := os.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if err != nil {
		return func() {}, err
	}
	return hold(temp), f.to(out)
}

func (f *File) to(out *os.File) error {
	w := bufio.NewWriterSize(out, 1<<16)
	err := f.Write(w)
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
