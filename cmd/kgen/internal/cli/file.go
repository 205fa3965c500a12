package cli

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"github.com/kgen-dev/kgen/codegen/atomicfile"
)

// readAll reads at most so many bytes of what is no file, such as standard input; more
// are an error that calls it name.
func readAll(name string, r io.Reader, most int64) ([]byte, error) {
	text, err := io.ReadAll(io.LimitReader(r, most+1))
	if err == nil && int64(len(text)) > most {
		err = fmt.Errorf("%s: want at most %d bytes", name, most)
	}
	return text, err
}

// exists tells whether there is anything of a name.
func exists(name string) bool {
	_, err := os.Lstat(name)
	return err == nil
}

// toStdout tells whether -o means standard output.
func toStdout(file string) bool { return file == "" || file == "-" }

// write puts a result on standard output, for "" and "-", or in a file that is
// replaced in one step.
func (a *app) write(file string, data []byte) error {
	if toStdout(file) {
		_, err := a.out.Write(data)
		return err
	}
	return writeFile("-o", file, data)
}

// writeFile replaces a file in one step, so that a reader, a kill or a full
// disk never leave half of it. A device or pipe is written as it is.
func writeFile(flag, name string, data []byte) error {
	file := name
	if real, err := filepath.EvalSymlinks(name); err == nil {
		file = real
	}
	return outputError(flag, name, atomicfile.Write(atomicfile.Bytes(file, data)))
}

// outputError says the path as the user gave it.
func outputError(flag, name string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s %s: %w", flag, name, reason(err))
}

// reason is an error without the path that a message says already.
func reason(err error) error {
	var path *fs.PathError
	if errors.As(err, &path) {
		return path.Err
	}
	return err
}

// checkOutput finds out whether the file of a flag can be written, before the work
// whose result it is for. Standard output can.
func checkOutput(flag, file string) error {
	if toStdout(file) {
		return nil
	}
	real := file
	if target, err := filepath.EvalSymlinks(file); err == nil {
		real = target
	}
	switch info, err := os.Stat(real); {
	case err == nil && info.IsDir():
		return usagef("%s %s: a folder: want a file", flag, file)
	case err == nil && !info.Mode().IsRegular():
		return nil // a device or pipe
	}
	parent := filepath.Dir(real)
	if _, err := os.Stat(parent); errors.Is(err, fs.ErrNotExist) {
		return usagef("%s %s: no folder %s", flag, file, parent)
	}
	return checkFolder(flag, file, parent)
}

// checkNotInput refuses an output that is the file which the command reads, by whatever
// name: writing it would lose the input.
func checkNotInput(flag, file, input string) error {
	if toStdout(file) {
		return nil
	}
	to, err := os.Stat(file)
	if err != nil {
		return nil // it is not there yet
	}
	if from, err := os.Stat(input); err == nil && to.Mode().IsRegular() && os.SameFile(from, to) {
		return usagef("%s %s: that is %s, which is read: want another file", flag, file, input)
	}
	return nil
}

// checkFolder finds out whether files can be made in a folder or, while it does
// not exist, in the one that it would be made in. name is what the user gave
// for flag.
func checkFolder(flag, name, dir string) error {
	var file notFolderError
	switch err := checkWritable(dir); {
	case errors.As(err, &file):
		return usagef("%s %s: %w", flag, name, file)
	case err != nil:
		return outputError(flag, name, err)
	}
	return nil
}

// notFolderError is a file in the way of a folder.
type notFolderError string

func (e notFolderError) Error() string { return string(e) + " is a file: want a folder" }

// checkWritable tries whether files can be made in dir or, while it does not
// exist, in the folder that it would be made in.
func checkWritable(dir string) error {
	for {
		fi, err := os.Stat(dir)
		parent := filepath.Dir(dir)
		if (errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR)) && parent != dir {
			dir = parent
			continue
		}
		if err != nil {
			return err
		}
		if !fi.IsDir() {
			return notFolderError(dir)
		}
		break
	}
	f, err := os.CreateTemp(dir, atomicfile.Unfinished)
	if err != nil {
		return err
	}
	return errors.Join(f.Close(), os.Remove(f.Name()))
}
