package cache

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	_ "github.com/kgen-dev/kgen/internal/fixedseed" // of rapid
)

func fresh(t *testing.T) *Cache {
	t.Helper()
	c, err := Open(filepath.Join(t.TempDir(), "deep", "cache"))
	require.NoError(t, err)
	return c
}

// files lists every file under the cache but the stamp.
func files(t *testing.T, c *Cache) []string {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(c.dir, "*", "*"))
	require.NoError(t, err)
	return names
}

func TestPutGet(t *testing.T) {
	c := fresh(t)
	rapid.Check(t, func(rt *rapid.T) {
		data := rapid.SliceOf(rapid.Byte()).Draw(rt, "data")
		key := KeyOf(rapid.String().Draw(rt, "key"))
		require.NoError(rt, c.Put(key, data))
		got, ok := c.Get(key)
		require.True(rt, ok)
		require.True(rt, bytes.Equal(data, got))
	})
	_, ok := c.Get(KeyOf("never", "put"))
	require.False(t, ok)
}

func TestKeysTellPartsApart(t *testing.T) {
	keys := map[Key][]string{}
	for _, parts := range [][]string{{}, {""}, {"", ""}, {"ab"}, {"a", "b"}, {"b", "a"}, {"ab", ""}, {"", "ab"}} {
		k := KeyOf(parts...)
		require.NotContains(t, keys, k, "%q and %q", parts, keys[k])
		keys[k] = parts
	}
	require.Len(t, KeyOf().String(), 64)
}

// An entry that is damaged in whatever way is a miss, is removed, and can be
// put again.
func TestDamagedEntry(t *testing.T) {
	data := []byte("a cubin of some length")
	whole := seal(data)
	flip := func(at int) []byte {
		b := bytes.Clone(whole)
		b[at] ^= 0x10
		return b
	}
	damages := map[string][]byte{
		"empty": {}, "torn in the magic": whole[:5], "torn in the digest": whole[:len(magic)+9],
		"torn in the data": whole[:len(whole)-1], "longer": append(bytes.Clone(whole), 0),
		"magic": flip(0), "digest": flip(len(magic)), "data": flip(len(whole) - 1),
	}
	c, k := fresh(t), KeyOf("k")
	for name, b := range damages {
		require.NoError(t, c.Put(k, data))
		require.NoError(t, os.WriteFile(c.path(k), b, 0o666))
		_, ok := c.Get(k)
		require.False(t, ok, name)
		require.Empty(t, files(t, c), name)
	}
	require.NoError(t, c.Put(k, data))
	got, ok := c.Get(k)
	require.True(t, ok)
	require.Equal(t, data, got)
}

func TestNilCache(t *testing.T) {
	var c *Cache
	require.NoError(t, c.Put(KeyOf("k"), []byte("data")))
	_, ok := c.Get(KeyOf("k"))
	require.False(t, ok)
}

func TestDir(t *testing.T) {
	t.Setenv(Env, "/somewhere/else")
	dir, err := Dir()
	require.NoError(t, err)
	require.Equal(t, "/somewhere/else", dir)

	t.Setenv(Env, "")
	t.Setenv("HOME", "")
	t.Setenv("XDG_CACHE_HOME", "")
	_, err = Dir()
	require.ErrorContains(t, err, "set KGEN_CACHE")
}

// A folder that cannot be made or written is an error that names it, and what
// was there stays.
func TestFolderThatCannotBeWritten(t *testing.T) {
	blocked := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(blocked, []byte("mine"), 0o666))
	_, err := Open(blocked)
	require.ErrorContains(t, err, blocked)

	c, k := fresh(t), KeyOf("k")
	require.NoError(t, os.WriteFile(filepath.Dir(c.path(k)), []byte("mine"), 0o666))
	require.ErrorContains(t, c.Put(k, []byte("data")), c.path(k))
	_, ok := c.Get(k)
	require.False(t, ok)

	c = fresh(t)
	require.NoError(t, os.MkdirAll(filepath.Join(c.path(k), "folder"), 0o777))
	require.Error(t, c.Put(k, []byte("data")), "the rename fails")
	require.Equal(t, []string{c.path(k)}, files(t, c), "and leaves nothing behind")
}

func TestTrim(t *testing.T) {
	c := fresh(t)
	now := time.Now()
	age := func(path string, by time.Duration) {
		require.NoError(t, os.Chtimes(path, time.Time{}, now.Add(-by)))
	}
	for _, name := range []string{"old", "used", "young"} {
		require.NoError(t, c.Put(KeyOf(name), []byte(name)))
	}
	age(c.path(KeyOf("old")), keep+time.Minute)
	age(c.path(KeyOf("used")), keep+time.Minute)
	age(c.path(KeyOf("young")), keep-time.Minute)
	left, busy := c.path(KeyOf("old"))+"x", c.path(KeyOf("old"))+"y"
	left, busy = filepath.Join(filepath.Dir(left), ".new-1"), filepath.Join(filepath.Dir(busy), ".new-2")
	for _, path := range []string{left, busy} {
		require.NoError(t, os.WriteFile(path, nil, 0o666))
	}
	age(left, abandoned+time.Minute)
	_, ok := c.Get(KeyOf("used"))
	require.True(t, ok)

	c.trim(now)
	require.FileExists(t, left, "Open has trimmed a moment ago")
	age(filepath.Join(c.dir, "trimmed"), trimEvery+time.Minute)
	c.trim(now)
	require.ElementsMatch(t, []string{c.path(KeyOf("used")), c.path(KeyOf("young")), busy}, files(t, c))
}

// blob is data that its key tells, so that any reader can judge what it got.
func blob(i int) []byte {
	r := rand.New(rand.NewPCG(1, uint64(i)))
	b := make([]byte, 1+r.IntN(1<<14))
	for j := range b {
		b[j] = byte(r.Uint32())
	}
	return b
}

// hammer puts and gets the same few keys over and over; a get that hits must
// give the key's own data.
func hammer(c *Cache, rounds int, seed uint64) error {
	r := rand.New(rand.NewPCG(2, seed))
	for range rounds {
		i := r.IntN(16)
		k := KeyOf(strconv.Itoa(i))
		if r.IntN(2) == 0 {
			if err := c.Put(k, blob(i)); err != nil {
				return err
			}
		}
		if got, ok := c.Get(k); ok && !bytes.Equal(got, blob(i)) {
			return fmt.Errorf("key %d gives another's data", i)
		}
	}
	return nil
}

func TestManyGoroutines(t *testing.T) {
	c := fresh(t)
	var wg sync.WaitGroup
	for seed := range uint64(8) {
		wg.Go(func() {
			if err := hammer(c, 200, seed); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
}

// Processes that are killed while they write leave a cache that serves.
func TestKilledProcesses(t *testing.T) {
	if dir := os.Getenv("KGEN_CACHE_HAMMER"); dir != "" {
		c, err := Open(dir)
		require.NoError(t, err)
		fmt.Println("ready")
		require.NoError(t, hammer(c, 1<<30, uint64(os.Getpid())))
		return
	}
	exe, err := os.Executable()
	require.NoError(t, err)
	c := fresh(t)
	for range 4 {
		cmd := exec.Command(exe, "-test.run=^TestKilledProcesses$")
		cmd.Env = append(os.Environ(), "KGEN_CACHE_HAMMER="+c.dir)
		out, err := cmd.StdoutPipe()
		require.NoError(t, err)
		require.NoError(t, cmd.Start())
		_, err = out.Read(make([]byte, 1))
		require.NoError(t, err)
		require.NoError(t, hammer(c, 100, 3))
		require.NoError(t, cmd.Process.Kill())
		require.Error(t, cmd.Wait())
	}
	hits := 0
	for i := range 16 {
		if got, ok := c.Get(KeyOf(strconv.Itoa(i))); ok {
			hits++
			require.Equal(t, blob(i), got)
		}
	}
	require.Positive(t, hits)
}

func FuzzOpen(f *testing.F) {
	f.Add(seal([]byte("data")))
	f.Add([]byte(magic))
	f.Fuzz(func(t *testing.T, entry []byte) {
		if data, ok := open(entry); ok && !bytes.Equal(seal(data), entry) {
			t.Errorf("%q opens as %q", entry, data)
		}
	})
}

func BenchmarkGet(b *testing.B) {
	c, err := Open(b.TempDir())
	require.NoError(b, err)
	require.NoError(b, c.Put(KeyOf("k"), make([]byte, 64<<10)))
	for b.Loop() {
		if _, ok := c.Get(KeyOf("k")); !ok {
			b.Fatal("miss")
		}
	}
}
