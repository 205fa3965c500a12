package cli

import (
	"bufio"
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"path"
	"strings"

	"github.com/kgen-dev/kgen/codegen/ptx"
)

// ptxOf names the PTX that a file's kernels run from: the file, or what NVRTC made of it,
// whose lines are not the file's.
func ptxOf(name string) string {
	if strings.HasSuffix(name, ".cu") {
		return "PTX of " + name
	}
	return name
}

// atSource adds to complaints about the PTX that NVRTC made of a file the lines of the
// source that they are about, as .loc says.
func atSource(err error, name string, text []byte) error {
	if ptxOf(name) == name {
		return err
	}
	located := func(e *ptx.Error) *ptx.Error {
		line := sourceLine(text, int(e.Pos.Line))
		if line == "" {
			return e
		}
		return &ptx.Error{File: e.File, Pos: e.Pos, Msg: fmt.Sprintf("%s (%s)", e.Msg, line)}
	}
	var all ptx.Errors
	var one *ptx.Error
	switch {
	case errors.As(err, &all):
		out := make(ptx.Errors, len(all))
		for i, e := range all {
			out[i] = located(e)
		}
		return out
	case errors.As(err, &one):
		return located(one)
	}
	return err
}

// sourceLine is the line of the source, as "add.cu:7", that a line of PTX is of: that of
// the last .loc before it in the same function; "" where there is none.
func sourceLine(text []byte, at int) string {
	var file, line string
	lines := bufio.NewScanner(bytes.NewReader(text))
	lines.Buffer(nil, len(text)+1)
	files := map[string]string{}
	for n := 1; lines.Scan(); n++ {
		words := strings.Fields(lines.Text())
		switch {
		case len(words) == 0:
		case words[0] == ".file" && len(words) >= 3: // they stand at the end
			_, quoted, _ := strings.Cut(lines.Text(), `"`)
			files[words[1]], _, _ = strings.Cut(quoted, `"`)
		case n > at:
		case words[0] == "}":
			file, line = "", ""
		case words[0] == ".loc" && len(words) >= 3 && words[2] != "0": // 0: the compiler's own
			file, line = words[1], words[2]
		}
	}
	if line == "" {
		return ""
	}
	return path.Base(cmp.Or(files[file], "file "+file)) + ":" + line
}
