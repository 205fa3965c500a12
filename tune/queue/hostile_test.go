package queue_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/kgen-dev/kgen/bench"
	"github.com/kgen-dev/kgen/tune/queue"
)

// packed is text as gzip.
func packed(t *testing.T, text []byte) []byte {
	t.Helper()
	var out bytes.Buffer
	z := gzip.NewWriter(&out)
	_, err := z.Write(text)
	require.NoError(t, err)
	require.NoError(t, z.Close())
	return out.Bytes()
}

// Messages of any kind on any subject harm neither end.
func TestAnyMessages(t *testing.T) {
	s, c := place(t)
	b := open(t, c, options(identity))
	stop, _ := work(t, s.URL(), "w", identity, 1, &trier{})
	defer stop()
	tuneAll(t, b, 3, bench.Predicted)
	js, err := jetstream.New(c)
	require.NoError(t, err)
	stream := ""
	for name := range js.StreamNames(t.Context()).Name() {
		if strings.HasPrefix(name, "KGEN-") {
			stream = strings.TrimPrefix(name, "KGEN-")
		}
	}
	require.NotEmpty(t, stream)
	r := rand.New(rand.NewPCG(1, 2))
	noise := make([]byte, 100)
	for i := range noise {
		noise[i] = byte(r.Uint32())
	}
	texts := [][]byte{
		nil, noise, []byte("{"), []byte("null"), []byte(`[1]`), []byte(`{"point": "x"}`), []byte(`{"point":[99999999999999999999]}`),
		[]byte(`{"worker":"a.b*>"}`), []byte(`{"worker":"` + strings.Repeat("x", 100_000) + `","gpu":"a100","device":"vm"}`),
		[]byte(`{"ran":{"outcome":"correct","provenance":"measured","time_us":-1}}`), []byte(`{"built":{"outcome":"no such"}}`),
		{0x1f, 0x8b}, packed(t, []byte("{")), packed(t, bytes.Repeat([]byte(" "), 80<<20)),
	}
	for i, text := range texts {
		for _, subject := range []string{"kgen.greet", "kgen.tuner." + stream} {
			require.NoError(t, c.PublishMsg(&nats.Msg{Subject: subject, Data: text, Reply: "nobody"}))
		}
		for _, kind := range []string{"compile", "check", "time", "result", "other"} {
			_, err := js.Publish(t.Context(), fmt.Sprintf("kgen.tune.%s.%s.%s%d", stream, kind, kind, i), text)
			require.NoError(t, err)
		}
	}
	tuneAll(t, b, 20, bench.Predicted)
}

// Files of a tuning stay in their folder, and none outside of it are sent.
func TestFilesStayInTheirFolder(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "a.cu"), []byte("1"), 0o600))
	require.NoError(t, queue.Pack(io.Discard, dir, []string{"a.cu"}, nil))
	for _, name := range []string{"../a.cu", "/etc/hostname", ".", "none.cu"} {
		require.Error(t, queue.Pack(io.Discard, dir, []string{name}, nil), name)
	}
	for _, h := range []tar.Header{
		{Name: "../x", Typeflag: tar.TypeReg}, {Name: "/x", Typeflag: tar.TypeReg}, {Name: "a/../../x", Typeflag: tar.TypeReg},
		{Name: "x", Typeflag: tar.TypeSymlink, Linkname: "/etc"}, {Name: "x", Typeflag: tar.TypeDir},
	} {
		s, c := place(t)
		o := options(identity)
		o.Files = func(w io.Writer) error {
			z := gzip.NewWriter(w)
			t := tar.NewWriter(z)
			err := t.WriteHeader(&h)
			if err == nil {
				err = t.Close()
			}
			if err == nil {
				err = z.Close()
			}
			return err
		}
		open(t, c, o)
		_, ended := work(t, s.URL(), "w", identity, 1, &trier{})
		require.ErrorContains(t, <-ended, "want a plain one in a folder of its own", h.Name)
	}
}

// When all is closed nothing is left: no port, no folder, no goroutine.
func TestNothingIsLeft(t *testing.T) {
	before, _ := goroutines()
	dir := filepath.Join(t.TempDir(), "queue")
	s := serve(t, dir, "127.0.0.1:0", queue.Access{Token: token})
	c, err := s.Connect()
	require.NoError(t, err)
	b, err := queue.Open(t.Context(), c, options(identity))
	require.NoError(t, err)
	stop, _ := work(t, s.URL(), "w", identity, 2, &trier{})
	tuneAll(t, b, 5, bench.Predicted)
	url := s.URL()
	stop()
	b.Close()
	c.Close()
	require.NoError(t, s.Close())
	_, err = net.Dial("tcp", strings.TrimPrefix(url, "nats://"))
	require.Error(t, err)
	entries, err := os.ReadDir(filepath.Dir(dir))
	require.NoError(t, err)
	require.Empty(t, entries)
	for range 100 {
		if now, _ := goroutines(); now <= before {
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
	now, stacks := goroutines()
	t.Fatalf("%d goroutines are left:\n%s", now-before, stacks)
}

// stranded is a goroutine that nats.go 1.55 leaves for ever where a connection that put
// objects is closed before the goroutine first ran: it then waits at a channel that is nil.
var stranded = regexp.MustCompile(`\(nil chan\)[^\n]*\n[^\n]*resetPendingAcksOnReconnect`)

// goroutines counts those that run, but for the stranded, and says where they are.
func goroutines() (int, string) {
	stacks := make([]byte, 1<<22)
	stacks = stacks[:runtime.Stack(stacks, true)]
	return bytes.Count(stacks, []byte("\n\ngoroutine ")) + 1 - len(stranded.FindAll(stacks, -1)), string(stacks)
}
