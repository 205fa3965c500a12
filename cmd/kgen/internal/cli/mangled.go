package cli

import (
	"regexp"
	"strings"

	"github.com/ianlancetaylor/demangle"
)

// mangledName is a name as C++ compilers write it into PTX.
var mangledName = regexp.MustCompile(`\b_Z[A-Za-z0-9_$.]+`)

// plainNames puts C++ names in a text for people as their source has them.
func plainNames(text string) string {
	return mangledName.ReplaceAllStringFunc(text, func(name string) string {
		return demangle.Filter(name, demangle.NoParams)
	})
}

// bothNames is plainNames with the name that PTX has behind, where it is asked for.
func bothNames(text string) string {
	return mangledName.ReplaceAllStringFunc(text, func(name string) string {
		if plain := demangle.Filter(name, demangle.NoParams); plain != name {
			return plain + " (" + name + ")"
		}
		return name
	})
}

// calledInSource says whether a kernel of PTX is what its source calls name: with
// its namespace and template arguments or without.
func calledInSource(kernel, name string) bool {
	full := demangle.Filter(kernel, demangle.NoParams)
	if full == kernel {
		return false
	}
	short := demangle.Filter(kernel, demangle.NoParams, demangle.NoTemplateParams)
	last := short[strings.LastIndex(short, "::")+1:]
	squeeze := strings.NewReplacer(" ", "")
	for _, called := range []string{full, demangle.Filter(kernel), short, strings.TrimPrefix(last, ":")} {
		if squeeze.Replace(called) == squeeze.Replace(name) {
			return true
		}
	}
	return false
}
