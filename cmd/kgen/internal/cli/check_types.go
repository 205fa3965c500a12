package cli

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/ianlancetaylor/demangle"

	"github.com/kgen-dev/kgen/bench"
	"github.com/kgen-dev/kgen/bench/numcheck"
)

// elements are what a buffer may be of where a parameter points to a type of C++. Integers
// of a size pass for each other, and short and char for what CUDA C without includes keeps
// in them.
var elements = []struct {
	names string
	types []numcheck.Type
}{
	{"float", []numcheck.Type{numcheck.F32}},
	{"double", []numcheck.Type{numcheck.F64}},
	{"__half half", []numcheck.Type{numcheck.F16}},
	{"__nv_bfloat16", []numcheck.Type{numcheck.BF16}},
	{"int unsigned", []numcheck.Type{numcheck.I32, numcheck.U32}},
	{"long longlong unsignedlong unsignedlonglong", []numcheck.Type{numcheck.I64, numcheck.U64}},
	{"short unsignedshort", []numcheck.Type{numcheck.I16, numcheck.U16, numcheck.F16, numcheck.BF16}},
	{"char signedchar unsignedchar bool", []numcheck.Type{numcheck.I8, numcheck.U8, numcheck.E4M3, numcheck.E5M2}},
}

// checkTypes refuses buffers of another type than the kernel's parameters point to. PTX has
// bytes alone, but a mangled name tells the types, and so does CUDA C.
func checkTypes(c *bench.Case, given []string, kernel, source string) error {
	types := parameterTypes(kernel, source)
	args := c.Launches[0].Args
	if len(types) != len(args) {
		return nil
	}
	for i, a := range args {
		to, ok := pointee(types[i])
		if !ok || a.Kind != "buffer" {
			continue
		}
		for _, e := range elements {
			got := c.Buffers[a.Buffer].Type
			if slices.Contains(strings.Fields(e.names), to) && !slices.Contains(e.types, got) {
				return fmt.Errorf("--arg %s: %s points to %s there: want %s, not %s", given[i], plainNames(kernel), strings.TrimRight(types[i], " *"), wordsOf(e.types), got)
			}
		}
	}
	return nil
}

func wordsOf(types []numcheck.Type) string {
	var out []string
	for _, t := range types {
		out = append(out, t.String())
	}
	return strings.Join(out, " or ")
}

// qualifiers are words of a parameter that do not change what it points to.
var qualifiers = regexp.MustCompile(`\b(const|volatile|__restrict__|__restrict|restrict)\b`)

// pointee is the type that a parameter points to, without spaces; false for other parameters.
func pointee(parameter string) (string, bool) {
	plain := strings.Join(strings.Fields(qualifiers.ReplaceAllString(parameter, "")), "")
	to, ok := strings.CutSuffix(plain, "*")
	if to != "int" { // long int is long
		to = strings.TrimSuffix(to, "int")
	}
	return to, ok && !strings.Contains(to, "*")
}

// sourceOf is the text of CUDA C, "" for other files.
func sourceOf(name string) string {
	if !strings.HasSuffix(name, ".cu") {
		return ""
	}
	text, err := readSource(name)
	if err != nil { // whoever compiled it has said so
		return ""
	}
	return string(text)
}

// parameterTypes are the types of a kernel's parameters as far as its name or its source, ""
// for none, tells them.
func parameterTypes(kernel, source string) []string {
	if full := demangle.Filter(kernel); full != kernel {
		_, list, ok := strings.Cut(full, demangle.Filter(kernel, demangle.NoParams)+"(")
		if list, closed := strings.CutSuffix(list, ")"); ok && closed {
			return split(list)
		}
		return nil
	}
	found := regexp.MustCompile(`\b` + regexp.QuoteMeta(kernel) + `\s*\(([^()]*)\)\s*\{`).FindStringSubmatch(source)
	if found == nil {
		return nil
	}
	var types []string
	for _, p := range split(found[1]) { // the last word is the parameter's name
		types = append(types, strings.TrimRight(p, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_"))
	}
	return types
}

// split cuts a list of parameters at its commas, but for those within brackets.
func split(list string) []string {
	var out []string
	depth, from := 0, 0
	for i, r := range list {
		switch {
		case strings.ContainsRune("<([{", r):
			depth++
		case strings.ContainsRune(">)]}", r):
			depth--
		case r == ',' && depth == 0:
			out = append(out, strings.TrimSpace(list[from:i]))
			from = i + 1
		}
	}
	return append(out, strings.TrimSpace(list[from:]))
}
