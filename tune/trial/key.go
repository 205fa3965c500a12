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
	k.mu.Lock()
	outside := k.outside
	k.mu.Unlock()
	if outside == "" {
		if outside, err = k.surroundings(); err != nil {
			return "", err
		}
		k.mu.Lock()
		defer k.mu.Unlock()
		if k.outside == "" {
			k.outside = outside
		}
		outside = k.outside
	}
	return digest(program, outside), nil
}

// surroundings is the digest of what all configurations have in common: the reference's
// source and the arrays. Where a source includes what cannot be read off it, that of all
// files that it could include is among it.
func (k *Kernel) surroundings() (string, error) {
	var parts []string
	whole := false
	for _, name := range k.roots() {
		all, err := k.reach(name, func(file, text string) { parts = append(parts, file, text) })
		if err != nil {
			return "", err
		}
		whole = whole || !all
	}
	arrays, err := k.Spec.ArrayFiles()
	if err != nil {
		return "", err
	}
	for _, file := range arrays {
		d, err := fileDigest(k.Spec.Path(file))
		if err != nil {
			return "", err
		}
		parts = append(parts, file, d)
	}
	if whole {
		parts = append(parts, k.headers())
	}
	return digest(parts...), nil
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
// that are not known, it is one that nothing else has, so that no result comes back.
func (k *Kernel) headers() string {
	folders, all := k.folders()
	if !all {
		return rand.Text()
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
			if size += len(text); err != nil || size > mostHeaderBytes {
				return errors.Join(err, errMany)
			}
			if bytes.IndexByte(text, 0) < 0 {
				parts = append(parts, path, string(text))
			}
			return nil
		})
		if err != nil {
			return rand.Text()
		}
	}
	return digest(parts...)
}
