package trial

import (
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"

	"github.com/kgen-dev/kgen/codegen/ptx"
	"github.com/kgen-dev/kgen/internal/userfile"
)

// Key is the digest of all contents that a configuration's result depends on: of its
// program, the arrays and what the result is compared with. Equal keys mean equal work.
func (k *Kernel) Key(point []int) (string, error) {
	program, err := k.Program(point)
	if err != nil {
		return "", err
	}
	outside, _, err := k.common()
	if err != nil {
		return "", err
	}
	return Digest(program, outside), nil
}

// Unrepeated says why no result of another run is taken for one of this, "" where they
// are.
func (k *Kernel) Unrepeated() (string, error) {
	_, why, err := k.common()
	return why, err
}

// common is what surroundings found first.
func (k *Kernel) common() (outside, unknown string, err error) {
	k.mu.Lock()
	outside, unknown = k.outside, k.unknown
	k.mu.Unlock()
	if outside != "" {
		return outside, unknown, nil
	}
	if outside, unknown, err = k.surroundings(); err != nil {
		return "", "", err
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.outside == "" {
		k.outside, k.unknown = outside, unknown
	}
	return k.outside, k.unknown, nil
}

// surroundings is the digest of what all configurations have in common: the reference's
// source and the arrays. Where a source includes what cannot be read off it, that of all
// files that it could include is among it; unknown says why that is of no use, if it is.
func (k *Kernel) surroundings() (outside, unknown string, err error) {
	var parts []string
	whole := false
	for _, name := range k.roots() {
		all, err := k.reach(name, func(file, text string) { parts = append(parts, file, text) })
		if err != nil {
			return "", "", err
		}
		whole = whole || !all
	}
	arrays, err := k.Spec.ArrayFiles()
	if err != nil {
		return "", "", err
	}
	for _, file := range arrays {
		d, err := fileDigest(k.Spec.Path(file))
		if err != nil {
			return "", "", err
		}
		parts = append(parts, file, d)
	}
	if whole {
		headers, why := k.headers()
		if why != "" {
			headers = rand.Text() // which nothing else has
		}
		parts, unknown = append(parts, headers), why
	}
	return Digest(parts...), unknown, nil
}

func fileDigest(path string) (string, error) {
	f, err := userfile.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", fmt.Errorf("reading %s: %w", path, err)
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// Bounds of the files that are read in place of those that a source includes.
const (
	MostHeaders     = 2000
	mostHeaderBytes = 64 << 20
)

var errMany = errors.New("too many files")

// headers is the digest of all texts in the folders where the compiler looks: what has a
// NUL byte is none, such as a store beside the source. Of more than the bounds, or folders
// that are not known, it says why there is none.
func (k *Kernel) headers() (all, why string) {
	folders, known := k.folders()
	if !known {
		return "", `a source includes what cannot be read off it, and "flags" name more to include: want folders as -IDIR`
	}
	var parts []string
	files, size := 0, 0
	for _, dir := range append(folders, k.Spec.Path(".")) {
		err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
			switch {
			case err != nil:
				return err
			case e.IsDir():
				return nil
			}
			if files++; files > MostHeaders {
				return errMany
			}
			if e.Type()&(fs.ModeDevice|fs.ModeNamedPipe|fs.ModeSocket) != 0 {
				return nil
			}
			text, err := userfile.Read(path, ptx.MaxSource)
			if err != nil {
				return err
			}
			if size += len(text); size > mostHeaderBytes {
				return errMany
			}
			if bytes.IndexByte(text, 0) < 0 {
				parts = append(parts, path, string(text))
			}
			return nil
		})
		switch {
		case errors.Is(err, errMany):
			return "", fmt.Sprintf("a source includes what cannot be read off it, and %s and what is below it are more than %d files or %d MB: want a folder with the sources alone", dir, MostHeaders, mostHeaderBytes>>20)
		case err != nil:
			return "", fmt.Sprintf("a source includes what cannot be read off it, and not all that it may be can be read: %v", err)
		}
	}
	return Digest(parts...), ""
}
