package ncu

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// unnamed takes away what stands for a namespace without a name.
var unnamed = strings.NewReplacer("(anonymous namespace)::", "", "<unnamed>::", "", "{anonymous}::", "")

// short is a kernel's name without its namespaces, template arguments and parameters.
func short(name string) string {
	s := unnamed.Replace(name)
	if i := strings.IndexAny(s, "<("); i > 0 {
		s = s[:i]
	}
	s = strings.TrimSpace(s)
	if i := strings.LastIndex(s, "::"); i >= 0 && i+2 < len(s) {
		s = s[i+2:]
	}
	if i := strings.LastIndexByte(s, ' '); i >= 0 { // the result's type
		s = s[i+1:]
	}
	s = clip(s)
	if s == "" || strings.ContainsAny(s, ">)") {
		return name
	}
	return s
}

// general are functions that templates of many kernels share, whose arguments name them.
var general = []string{"device_kernel", "kernel", "Kernel", "Kernel2", "kernel_entry"}

var qualifier = regexp.MustCompile(`\w+::`)

// long is a kernel's name with its template arguments, without namespaces.
func long(name string) string {
	s := unnamed.Replace(name)
	s = s[:parameters(s)]
	s = strings.TrimPrefix(strings.TrimSpace(s), "void ")
	return clip(qualifier.ReplaceAllString(s, ""))
}

// parameters is where a function's parameters begin, or the name's end.
func parameters(name string) int {
	depth := 0
	for i, r := range name {
		switch {
		case r == '<':
			depth++
		case r == '>':
			depth--
		case r == '(' && depth == 0 && i > 0:
			return i
		}
	}
	return len(name)
}

// clip shortens a name that no plot or table has room for.
func clip(s string) string {
	const most = 80
	if len(s) > most {
		return strings.ToValidUTF8(s[:most], "")
	}
	return s
}

// distinct names kernels as shortly as tells them apart.
func distinct(full []string) []string {
	names := make([]string, len(full))
	times := map[string]int{}
	for i, f := range full {
		names[i] = short(f)
		times[names[i]]++
	}
	given := map[string]int{}
	for i, f := range full {
		if times[names[i]] > 1 || slices.Contains(general, names[i]) {
			names[i] = long(f)
		}
		if given[names[i]]++; given[names[i]] > 1 {
			names[i] = fmt.Sprintf("%s (%d)", names[i], given[names[i]])
		}
	}
	return names
}
