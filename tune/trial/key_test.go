package trial_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kgen-dev/kgen/codegen/target"
	"github.com/kgen-dev/kgen/tune/spec"
	"github.com/kgen-dev/kgen/tune/trial"
)

// keyed describes a kernel that reads a file, whose result is compared with args' last or
// with another source's.
const keyed = `{
  "source": "a.cu", "kernel": "a", "flags": [%s], "parameters": [{"name": "block", "values": [32, 64]}],
  "grid": 1, "block": "block", "arguments": [%s]%s
}`

// folder is a description's with all its files.
func folder(t *testing.T, description, source string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{
		"a.json": description, "a.cu": source, "b.cu": `#include "b.h"`, "b.h": "b",
		"v.h": "v", "in/v.h": "v", "in/w.h": `#include <x.h>`, "in/x.h": "x", "one.npy": "1", "two.npy": "2", "store.db": "a\x00b",
	} {
		write(t, dir, name, text)
	}
	return dir
}

func write(t *testing.T, dir, name, text string) {
	t.Helper()
	file := filepath.Join(dir, name)
	require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o777))
	require.NoError(t, os.WriteFile(file, []byte(text), 0o666))
}

// keyOf is that of a point by a process that reads a folder's files as they are now.
func keyOf(t *testing.T, dir string, point []int, includes ...string) string {
	key, why := keyAndWhy(t, dir, point, includes...)
	require.Empty(t, why)
	return key
}

// keyAndWhy is a key, and why nothing has the like.
func keyAndWhy(t *testing.T, dir string, point []int, includes ...string) (key, why string) {
	t.Helper()
	s, err := spec.Read(filepath.Join(dir, "a.json"))
	require.NoError(t, err)
	g, err := target.Lookup("a100")
	require.NoError(t, err)
	b, err := s.Bind(g)
	require.NoError(t, err)
	k := &trial.Kernel{Spec: b, Includes: includes}
	for _, dir := range includes {
		k.Flags = append(k.Flags, "-I"+dir)
	}
	key, err = k.Key(point)
	require.NoError(t, err)
	again, err := k.Key(point)
	require.NoError(t, err)
	require.Equal(t, key, again)
	why, err = k.Unrepeated()
	require.NoError(t, err)
	return key, why
}

// A point's key follows every file that its result depends on, in whatever way the source
// includes it, and nothing else, so that a store's results come back for the same work.
func TestKey(t *testing.T) {
	const none, reference = `"f32[8]:none"`, `, "reference": {"source": "b.cu", "kernel": "b", "grid": 1, "block": 32}`
	plain := fmt.Sprintf(keyed, "", none, "")
	for name, c := range map[string]struct {
		description, source, changed string
		include                      bool // -I in
	}{
		"wanted":           {description: fmt.Sprintf(keyed, "", `"f32[8]:none,want=two.npy"`, ""), changed: "two.npy"},
		"input":            {description: fmt.Sprintf(keyed, "", `"f32:one.npy"`, ""), changed: "one.npy"},
		"reference":        {description: fmt.Sprintf(keyed, "", none, reference), changed: "b.cu"},
		"reference header": {description: fmt.Sprintf(keyed, "", none, reference), changed: "b.h"},
		"source":           {changed: "a.cu"},
		"quotes":           {source: `#include "v.h"`, changed: "v.h"},
		"below":            {source: `#include "in/w.h"`, changed: "in/w.h"},
		"angles":           {source: "#include <v.h>", changed: "v.h"},
		"angles by -I":     {source: "#include <w.h>", include: true, changed: "in/x.h"},
		"flag":             {description: fmt.Sprintf(keyed, `"-I%s/in"`, none, ""), source: "#include <w.h>", changed: "in/x.h"},
		"comment":          {source: `#include /* x */ "v.h"`, changed: "v.h"},
		"comment before":   {source: `/* x */ #include "v.h"`, changed: "v.h"},
		"comment within":   {source: "# /*\n*/ include \"v.h\"", changed: "v.h"},
		"macro":            {source: "#define H \"v.h\"\n#include H", changed: "v.h"},
		"macro by -I":      {source: "#define H <x.h>\n#include H", include: true, changed: "in/x.h"},
		"digraph":          {source: `%:include "v.h"`, changed: "v.h"},
		"trigraph":         {source: `??=include "v.h"`, changed: "v.h"},
		"two lines":        {source: "#inc\\\nlude \"v.h\"", changed: "v.h"},
		"import":           {source: `#import "v.h"`, changed: "v.h"},
	} {
		t.Run(name, func(t *testing.T) {
			if c.description == "" {
				c.description = plain
			}
			dir := folder(t, c.description, c.source)
			if name == "flag" {
				write(t, dir, "a.json", fmt.Sprintf(c.description, dir))
			}
			var includes []string
			if c.include {
				includes = append(includes, filepath.Join(dir, "in"))
			}
			before := keyOf(t, dir, []int{0}, includes...)
			require.NotEqual(t, before, keyOf(t, dir, []int{1}, includes...))
			write(t, dir, "store.db", "a\x00c")
			require.Equal(t, before, keyOf(t, dir, []int{0}, includes...))
			write(t, dir, c.changed, "changed")
			require.NotEqual(t, before, keyOf(t, dir, []int{0}, includes...))
		})
	}
}

// Where what a source may include is too much to read, nothing comes back.
func TestKeyOfTooMuch(t *testing.T) {
	dir := folder(t, fmt.Sprintf(keyed, "", `"f32[8]:none"`, ""), "#define H <v.h>\n#include H")
	require.Equal(t, keyOf(t, dir, []int{0}), keyOf(t, dir, []int{0}))
	for i := range trial.MostHeaders {
		write(t, dir, fmt.Sprintf("%d.h", i), "")
	}
	key, why := keyAndWhy(t, dir, []int{0})
	require.Contains(t, why, "are more than 2000 files or 64 MB: want a folder with the sources alone")
	other, _ := keyAndWhy(t, dir, []int{0})
	require.NotEqual(t, key, other)
}
