package cli

import (
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/kgen-dev/kgen/codegen/atomicfile"
	"github.com/kgen-dev/kgen/codegen/gopkg"
)

// packageFolder holds a package's folder to be new, empty or of an earlier run.
func packageFolder(dir string) error {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return usagef("-o %s: %w", dir, reason(err))
	}
	entries = slices.DeleteFunc(entries, func(e fs.DirEntry) bool { return strings.HasPrefix(e.Name(), atomicfile.Unfinished) })
	if len(entries) == 0 {
		return nil
	}
	_, err = ours(dir, "doc.go")
	if _, stopped := ours(dir, gopkg.UnfinishedFile); err != nil && stopped != nil {
		return usagef("-o %s: holds files that kgen did not write: want a new or empty folder", dir)
	}
	return nil
}

// writePackage writes the files, and removes what an earlier run wrote and this one did
// not. If a file cannot be written none is replaced; if it is killed between the first and
// the last that is, what is left does not compile.
func writePackage(dir string, p *gopkg.Package, files map[string][]byte) error {
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return outputError("-o", dir, err)
	}
	old, err := earlier(dir)
	if err != nil {
		return outputError("-o", dir, err)
	}
	out := replacing(dir, p, files)
	for _, f := range out {
		name := filepath.Base(f.Path)
		if _, err := os.Lstat(f.Path); err == nil && !slices.Contains(old, name) {
			return usagef("-o %s: %s is not of an earlier run: want a new or empty folder", dir, name)
		}
	}
	if err := atomicfile.Write(out...); err != nil {
		return outputError("-o", dir, err)
	}
	gone := slices.DeleteFunc(old, func(name string) bool { return files[name] != nil || name == gopkg.UnfinishedFile })
	for _, name := range append(gone, gopkg.UnfinishedFile) {
		if err := os.Remove(filepath.Join(dir, name)); err != nil {
			return outputError("-o", dir, err)
		}
	}
	return nil
}

// replacing are the files to write, in the order in which they come to their places: first
// the one that does not compile, which is removed when the package is whole.
func replacing(dir string, p *gopkg.Package, files map[string][]byte) []atomicfile.File {
	out := []atomicfile.File{atomicfile.Bytes(filepath.Join(dir, gopkg.UnfinishedFile), gopkg.Unfinished(p))}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		out = append(out, atomicfile.Bytes(filepath.Join(dir, name), files[name]))
	}
	return out
}

// errNotOurs is of a file that no earlier run wrote.
var errNotOurs = errors.New("kgen did not write it")

// ours reads a Go file that an earlier run wrote; others, and what is no file, are
// errNotOurs.
func ours(dir, name string) ([]byte, error) {
	if !regular(dir, name) {
		return nil, errNotOurs
	}
	text, err := os.ReadFile(filepath.Join(dir, name))
	if err == nil && !gopkg.Ours(text) {
		err = errNotOurs
	}
	return text, err
}

// regular tells whether there is a file in the folder itself: no link, and nothing that a
// path leads to elsewhere.
func regular(dir, name string) bool {
	info, err := os.Lstat(filepath.Join(dir, name))
	return err == nil && info.Mode().IsRegular() && filepath.Base(name) == name
}

// earlier lists what an earlier run wrote: Go files that say so, and the images beside
// them that they embed.
func earlier(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, e := range entries {
		if filepath.Ext(e.Name()) != ".go" {
			continue
		}
		text, err := ours(dir, e.Name())
		if errors.Is(err, errNotOurs) {
			continue
		}
		if err != nil {
			return nil, err
		}
		names = append(names, e.Name())
		for line := range strings.Lines(string(text)) {
			image, ok := strings.CutPrefix(strings.TrimSpace(line), "//go:embed ")
			if ok && filepath.Ext(image) == ".ptx" && regular(dir, image) && !slices.Contains(names, image) {
				names = append(names, image)
			}
		}
	}
	return names, nil
}
