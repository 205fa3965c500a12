package queue

import (
	"archive/tar"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
)

// Bounds of what a tuning sends its workers.
const (
	mostFiles     = 4096
	mostFileBytes = 4 << 30 // together
)

// Pack writes files of a folder, which their names must not lead out of, and others as
// they are given.
func Pack(w io.Writer, dir string, names []string, made map[string][]byte) error {
	z, err := gzip.NewWriterLevel(w, gzip.BestSpeed)
	if err != nil {
		return err
	}
	t := tar.NewWriter(z)
	for _, name := range slices.Sorted(maps.Keys(made)) {
		if err := t.WriteHeader(&tar.Header{Name: name, Mode: 0o600, Size: int64(len(made[name]))}); err != nil {
			return err
		}
		if _, err := t.Write(made[name]); err != nil {
			return err
		}
	}
	for _, name := range names {
		if _, ok := made[name]; ok {
			continue
		}
		if err := packFile(t, dir, name); err != nil {
			return err
		}
	}
	return errors.Join(t.Close(), z.Close())
}

func packFile(t *tar.Writer, dir, name string) error {
	if !filepath.IsLocal(name) {
		return fmt.Errorf("%s: it does not lie in the description's folder, and workers get nothing else", name)
	}
	f, err := os.Open(filepath.Join(dir, name))
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() {
		return fmt.Errorf("%s: want a regular file", name)
	}
	if err := t.WriteHeader(&tar.Header{Name: filepath.ToSlash(name), Mode: 0o600, Size: info.Size()}); err != nil {
		return err
	}
	_, err = io.CopyN(t, f, info.Size())
	return err
}

// unpack makes the files in a folder. Names that lead out of it, and more than is
// reasonable, are refused.
func unpack(r io.Reader, dir string) error {
	z, err := gzip.NewReader(r)
	if err != nil {
		return err
	}
	t := tar.NewReader(io.LimitReader(z, mostFileBytes))
	for range mostFiles {
		h, err := t.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if err := unpackFile(t, h, dir); err != nil {
			return err
		}
	}
	return fmt.Errorf("more than %d files", mostFiles)
}

func unpackFile(t *tar.Reader, h *tar.Header, dir string) error {
	name := filepath.FromSlash(h.Name)
	if !filepath.IsLocal(name) || h.Typeflag != tar.TypeReg {
		return fmt.Errorf("file %q: want a plain one in a folder of its own", clip(h.Name, 200))
	}
	path := filepath.Join(dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(f, t)
	return errors.Join(err, f.Close())
}
