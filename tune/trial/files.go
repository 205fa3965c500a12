package trial

import (
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/kgen-dev/kgen/codegen/ptx"
	"github.com/kgen-dev/kgen/internal/userfile"
)

// source reads a file of CUDA C, once.
func (k *Kernel) source(name string) (string, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if text, ok := k.sources[name]; ok {
		return text, nil
	}
	path := k.Spec.Path(name)
	if k.elsewhere(name) {
		path = name
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

// elsewhere tells whether a file lies in one of the folders that are not the description's.
func (k *Kernel) elsewhere(name string) bool {
	return slices.ContainsFunc(k.Includes, func(dir string) bool { return strings.HasPrefix(name, dir+string(filepath.Separator)) })
}

// included matches what a source reads from its own folder.
var included = regexp.MustCompile(`(?m)^[ \t]*#[ \t]*include[ \t]*"([^"\n]+)"`)

// maxIncludes bounds the files that a source includes.
const maxIncludes = 1000

// reach calls f for a source and the files beside it that it includes, as far as they
// are there: those which are not may be the compiler's own.
func (k *Kernel) reach(name string, f func(file, text string)) error {
	seen := map[string]bool{name: true}
	for queue := []string{name}; len(queue) > 0 && len(seen) < maxIncludes; queue = queue[1:] {
		text, err := k.source(queue[0])
		if err != nil {
			if queue[0] == name {
				return err
			}
			continue
		}
		f(queue[0], text)
		for _, m := range included.FindAllStringSubmatch(text, -1) {
			files := []string{m[1], filepath.Join(filepath.Dir(queue[0]), m[1])}
			for _, dir := range k.Includes {
				files = append(files, filepath.Join(dir, m[1]))
			}
			for _, file := range files {
				if !seen[file] {
					seen[file] = true
					queue = append(queue, file)
				}
			}
		}
	}
	return nil
}

// sourceDigest is that of a source and of what it includes.
func (k *Kernel) sourceDigest(name string) (string, error) {
	var parts []string
	err := k.reach(name, func(file, text string) { parts = append(parts, file, text) })
	return digest(parts...), err
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
	sources := []string{k.Spec.Source}
	if r := k.Spec.Reference; r != nil {
		sources = append(sources, r.Source)
	}
	for _, name := range sources {
		if err := k.reach(name, func(file, _ string) { add(file) }); err != nil {
			return nil, err
		}
	}
	arrays, err := k.Spec.ArrayFiles()
	for _, file := range arrays {
		add(file)
	}
	return out, err
}
