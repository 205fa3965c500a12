package ptx

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/stretchr/testify/require"
)

// corpus is every PTX file of the repository's test data.
func corpus(tb testing.TB) map[string][]byte {
	tb.Helper()
	all := map[string][]byte{}
	for _, pattern := range []string{"testdata/*.ptx", "../../testdata/ptx/*/*.ptx", "../../testdata/ptx/*/*/*.ptx"} {
		names, err := filepath.Glob(pattern)
		require.NoError(tb, err)
		for _, name := range names {
			src, err := os.ReadFile(name)
			require.NoError(tb, err)
			all[name] = src
		}
	}
	require.NotEmpty(tb, all)
	return all
}

// sameTree compares trees but for positions.
var sameTree = cmp.Options{cmpopts.IgnoreTypes(Pos{}), cmpopts.IgnoreFields(Module{}, "File")}

// withoutPositions clears every Pos that v reaches.
func withoutPositions(v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		if !v.IsNil() {
			withoutPositions(v.Elem())
		}
	case reflect.Slice:
		for i := range v.Len() {
			withoutPositions(v.Index(i))
		}
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[Pos]() {
			v.SetZero()
			return
		}
		for i := range v.NumField() {
			if k := v.Field(i).Kind(); k >= reflect.Array && k != reflect.String {
				withoutPositions(v.Field(i))
			}
		}
	}
}

func requireRoundTrip(tb testing.TB, m *Module) {
	tb.Helper()
	text := m.String()
	again, err := Parse("printed", []byte(text))
	if err != nil {
		tb.Fatalf("printed text does not parse: %v\n%s", err, text)
	}
	withoutPositions(reflect.ValueOf(m))
	withoutPositions(reflect.ValueOf(again))
	again.File = m.File
	if !reflect.DeepEqual(m, again) {
		d := cmp.Diff(m, again, sameTree)
		tb.Fatalf("printed text parses to another tree (-first +again):\n%s\n%s", d, text)
	}
	require.Equal(tb, text, again.String())
}

func TestCorpusRoundTrip(t *testing.T) {
	for name, src := range corpus(t) {
		t.Run(filepath.Base(filepath.Dir(name)), func(t *testing.T) {
			m, err := Parse(name, src)
			require.NoError(t, err)
			requireRoundTrip(t, m)
		})
	}
}

func FuzzParse(f *testing.F) {
	for _, src := range corpus(f) {
		if len(src) < 20_000 {
			f.Add(string(src))
		}
	}
	f.Fuzz(func(t *testing.T, src string) {
		m, err := Parse("f", []byte(src))
		if err != nil {
			if !strings.HasPrefix(err.Error(), "f:") {
				t.Fatalf("error without a place: %v", err)
			}
			return
		}
		requireRoundTrip(t, m)
	})
}

func BenchmarkParse(b *testing.B) {
	var all []byte
	for _, src := range corpus(b) {
		if len(src) > len(all) {
			all = src
		}
	}
	m, err := Parse("b", all)
	require.NoError(b, err)
	one := *m
	for len(one.Decls) < 30*len(m.Decls) {
		one.Decls = append(one.Decls, m.Decls...)
	}
	src := []byte(one.String())
	b.SetBytes(int64(len(src)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Parse("b", src); err != nil {
			b.Fatal(err)
		}
	}
}
