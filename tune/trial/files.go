package trial

import (
	"errors"
	"io/fs"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/kgen-dev/kgen/codegen/ptx"
	"github.com/kgen-dev/kgen/internal/userfile"
)

// source reads a file of CUDA C, once. Those which are not in the description's folder have
// absolute names.
func (k *Kernel) source(name string) (string, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if text, ok := k.sources[name]; ok {
		return text, nil
	}
	path := name
	if !filepath.IsAbs(name) {
		path = k.Spec.Path(name)
	}
	text, err := userfile.Read(path, ptx.MaxSource)
	if err != nil {
		return "", err
	}
	if k.sources == nil {
		k.sources = map[string]string{}
	}
	k.sources[name] = string(text)
	return string(text), nil
}

var (
	// included matches a directive whose file can be read off it.
	included = regexp.MustCompile(`(?m)^[ \t]*#[ \t]*include[ \t]*(?:"([^"\n]+)"|<([^>\n]+)>)`)
	// mayInclude matches what every other directive that reads a file has in it: a sign and
	// the word, or a comment between them, or trigraphs. What else it matches costs nothing but time.
	mayInclude = regexp.MustCompile(`(?:#|%:)[^\n]*(?:include|import|embed)|(?:#|%:)\s*/\*|\?\?`)
	// spliced matches the end of a line that goes on.
	spliced = regexp.MustCompile(`\\[ \t\f\v]*\r?\n`)
)

// includes are the files that a text includes, as it names them. It reports whether they
// are all.
func includes(text string) (names []string, all bool) {
	text = spliced.ReplaceAllString(text, "")
	for _, m := range included.FindAllStringSubmatch(text, -1) {
		names = append(names, m[1]+m[2])
	}
	return names, !mayInclude.MatchString(included.ReplaceAllString(text, ""))
}

// maxIncludes bounds the files that a source includes.
const maxIncludes = 1000

// reach calls f for a source and the files that it includes, as far as they are there:
// those which are not may be the compiler's own. It reports whether those are all.
func (k *Kernel) reach(name string, f func(file, text string)) (all bool, err error) {
	folders, all := k.folders()
	seen := map[string]bool{name: true}
	for queue := []string{name}; len(queue) > 0; queue = queue[1:] {
		text, err := k.source(queue[0])
		switch {
		case err != nil && queue[0] == name:
			return false, err
		case err != nil:
			all = all && errors.Is(err, fs.ErrNotExist)
			continue
		}
		f(queue[0], text)
		names, read := includes(text)
		all = all && read
		for _, n := range names {
			for _, file := range places(n, filepath.Dir(queue[0]), folders) {
				if !seen[file] {
					seen[file] = true
					queue = append(queue, file)
				}
			}
		}
		if len(seen) > maxIncludes {
			return false, nil
		}
	}
	return all, nil
}

// places are where a file may lie that one in the folder dir includes.
func places(name, dir string, folders []string) []string {
	if filepath.IsAbs(name) {
		return []string{name}
	}
	out := []string{filepath.Clean(name), filepath.Join(dir, name)}
	for _, f := range folders {
		out = append(out, filepath.Join(f, name))
	}
	return out
}

// folders are where the compiler looks for files beside the description's folder. It
// reports whether it knows all. The working directory is NVRTC's for a source's quotes.
func (k *Kernel) folders() (dirs []string, all bool) {
	all = true
	dirs = slices.Clone(k.Includes)
	for _, flag := range k.Spec.Flags {
		dir, is := strings.CutPrefix(flag, "-I")
		if !is {
			dir, is = strings.CutPrefix(flag, "--include-path=")
		}
		switch {
		case is && dir != "":
			dirs = append(dirs, dir)
		case is || strings.Contains(flag, "include") || strings.Contains(flag, "pch") || strings.HasPrefix(flag, "@"):
			all = false
		}
	}
	dirs = append(dirs, ".")
	home, err := filepath.Abs(k.Spec.Dir)
	all = all && err == nil
	for i := range dirs {
		if dirs[i], err = filepath.Abs(dirs[i]); err != nil {
			all = false
		}
	}
	return slices.DeleteFunc(dirs, func(dir string) bool { return dir == home }), all
}

// sourceDigest is that of a source and of what it includes, as far as that can be read off.
func (k *Kernel) sourceDigest(name string) (string, error) {
	var parts []string
	_, err := k.reach(name, func(file, text string) { parts = append(parts, file, text) })
	return Digest(parts...), err
}

// Files are those that the description needs beside itself, as it names them: sources
// with what they include, and arrays.
func (k *Kernel) Files() ([]string, error) {
	var out []string
	add := func(file string) {
		if file = filepath.Clean(file); !slices.Contains(out, file) {
			out = append(out, file)
		}
	}
	for _, name := range k.roots() {
		if _, err := k.reach(name, func(file, _ string) { add(file) }); err != nil {
			return nil, err
		}
	}
	arrays, err := k.Spec.ArrayFiles()
	for _, file := range arrays {
		add(file)
	}
	return out, err
}

// roots are the description's own sources.
func (k *Kernel) roots() []string {
	out := []string{k.Spec.Source}
	if r := k.Spec.Reference; r != nil {
		out = append(out, r.Source)
	}
	return out
}
