// Package cache keeps what compilers made on disk, by the digest of everything
// that went in: the compiler's version, its options and the source.
//
// Any number of processes may share a folder, and may be killed at any moment:
// an entry appears whole, by a rename, and carries its own digest, so that one
// damaged afterwards is a miss and is removed.
package cache

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/kgen-dev/kgen/codegen/atomicfile"
)

// Env names the environment variable that replaces the user's cache folder.
const Env = "KGEN_CACHE"

// Key is the digest of what an entry was made from.
type Key [sha256.Size]byte

// KeyOf digests the parts. Where one ends and the next begins counts.
func KeyOf(parts ...string) Key {
	h := sha256.New()
	for _, p := range parts {
		var n [8]byte
		binary.LittleEndian.PutUint64(n[:], uint64(len(p)))
		h.Write(n[:])
		h.Write([]byte(p))
	}
	return Key(h.Sum(nil))
}

func (k Key) String() string { return hex.EncodeToString(k[:]) }

// Cache is a folder of entries. It is safe for use by several goroutines. A
// nil *Cache holds nothing and drops what it is given.
type Cache struct{ dir string }

// Dir is $KGEN_CACHE, or else kgen in the user's cache folder, which is
// $XDG_CACHE_HOME or ~/.cache on Linux.
func Dir() (string, error) {
	if dir := os.Getenv(Env); dir != "" {
		return filepath.Abs(dir)
	}
	dir, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("no cache folder (set %s): %w", Env, err)
	}
	return filepath.Join(dir, "kgen"), nil
}

// Open opens the cache in dir, [Dir] when that is "", making the folder. Once
// a day it also removes the entries that have not been used for a month.
func Open(dir string) (*Cache, error) {
	if dir == "" {
		var err error
		if dir, err = Dir(); err != nil {
			return nil, err
		}
	}
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return nil, fmt.Errorf("cache folder %s: %w", dir, err)
	}
	c := &Cache{dir}
	c.trim(time.Now())
	return c, nil
}

// magic precedes the digest and the data of an entry.
const magic = "kgen entry 1\n"

// used is how old an entry's time may get before a read renews it.
const used = time.Hour

// Get returns the entry of a key, and whether there is one.
func (c *Cache) Get(k Key) ([]byte, bool) {
	if c == nil {
		return nil, false
	}
	path := c.path(k)
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, false
	}
	data, ok := open(b)
	if !ok {
		os.Remove(path)
		return nil, false
	}
	if fi, err := os.Stat(path); err == nil && time.Since(fi.ModTime()) > used {
		os.Chtimes(path, time.Time{}, time.Now())
	}
	return data, true
}

// Put stores an entry. An error leaves the cache as it was.
func (c *Cache) Put(k Key, data []byte) error {
	if c == nil {
		return nil
	}
	path := c.path(k)
	if err := write(path, seal(data)); err != nil {
		return fmt.Errorf("cache entry %s: %w", path, err)
	}
	return nil
}

// path spreads the entries over 256 folders.
func (c *Cache) path(k Key) string {
	name := k.String()
	return filepath.Join(c.dir, name[:2], name[2:])
}

func seal(data []byte) []byte {
	sum := sha256.Sum256(data)
	return bytes.Join([][]byte{[]byte(magic), sum[:], data}, nil)
}

func open(entry []byte) (data []byte, ok bool) {
	rest, ok := bytes.CutPrefix(entry, []byte(magic))
	if !ok || len(rest) < sha256.Size {
		return nil, false
	}
	data = rest[sha256.Size:]
	return data, sha256.Sum256(data) == [sha256.Size]byte(rest)
}

// write makes the file appear whole or not at all. It does not wait for the
// disk: what a power failure tears, the digest tells.
func write(path string, b []byte) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		return err
	}
	return atomicfile.Write(atomicfile.Bytes(path, b))
}

const (
	trimEvery = 24 * time.Hour
	keep      = 30 * 24 * time.Hour // an entry since its last use
	abandoned = time.Hour           // a file that is being written
)

// trim removes what is out of use. It is best effort: whatever fails is tried
// again another day.
func (c *Cache) trim(now time.Time) {
	stamp := filepath.Join(c.dir, "trimmed")
	if fi, err := os.Stat(stamp); err == nil && now.Sub(fi.ModTime()) < trimEvery {
		return
	}
	if err := os.WriteFile(stamp, []byte(now.UTC().Format(time.RFC3339)+"\n"), 0o666); err != nil {
		return
	}
	entries, err := filepath.Glob(filepath.Join(c.dir, "[0-9a-f][0-9a-f]", "*"))
	if err != nil {
		return
	}
	for _, path := range entries {
		fi, err := os.Lstat(path)
		if err != nil || !fi.Mode().IsRegular() {
			continue
		}
		if now.Sub(fi.ModTime()) > lifetime(fi) {
			os.Remove(path)
		}
	}
}

func lifetime(fi fs.FileInfo) time.Duration {
	if strings.HasPrefix(fi.Name(), atomicfile.Unfinished) {
		return abandoned
	}
	return keep
}
