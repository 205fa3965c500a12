package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"text/tabwriter"
	"unicode"
	"unicode/utf8"

	"golang.org/x/term"
)

// writer remembers the first error, so that a full disk or a closed pipe is
// reported once, at the end, without a check at every print.
type writer struct {
	w   io.Writer
	err error
}

func (w *writer) Write(p []byte) (int, error) {
	if w.err != nil {
		return 0, w.err
	}
	n, err := w.w.Write(p)
	w.err = err
	return n, err
}

// numberOf is a number of things in words, of a noun whose plural ends in s.
func numberOf[N int | int64](n N, noun string) string {
	if n != 1 {
		noun += "s"
	}
	return fmt.Sprintf("%d %s", n, noun)
}

// table lines up columns of results, until it is flushed.
func (a *app) table() *tabwriter.Writer {
	return tabwriter.NewWriter(&trimmer{w: a.out}, 0, 0, 2, ' ', 0)
}

// trimmer leaves out blanks at the ends of lines.
type trimmer struct {
	w      io.Writer
	blanks int // that were written last
}

func (t *trimmer) Write(p []byte) (int, error) {
	var out []byte
	for _, c := range p {
		switch c {
		case ' ':
			t.blanks++
			continue
		case '\n':
			t.blanks = 0
		}
		out = append(append(out, strings.Repeat(" ", t.blanks)...), c)
		t.blanks = 0
	}
	if _, err := t.w.Write(out); err != nil {
		return 0, err
	}
	return len(p), nil
}

// printJSON prints one value, indented, the way every --json does.
func (a *app) printJSON(v any) error {
	e := json.NewEncoder(a.out)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(v)
}

// isTerminal says whether a person watches.
func isTerminal(w any) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd())) && os.Getenv("TERM") != "dumb"
}

// colour says whether the results may be coloured (no-color.org).
func (a *app) colour() bool {
	return os.Getenv("NO_COLOR") == "" && isTerminal(a.out.w)
}

// visible escapes what a terminal would act on rather than show: control
// characters other than newlines and tabs, formatting characters, and bytes
// that are no UTF-8. Text from files and from kernels goes through it.
func visible(text string) string {
	var b strings.Builder
	for i, r := range text {
		switch {
		case r == utf8.RuneError && !strings.HasPrefix(text[i:], string(utf8.RuneError)):
			fmt.Fprintf(&b, "\\x%02x", text[i])
		case r == '\n' || r == '\t' || !unicode.IsControl(r) && !unicode.Is(unicode.Cf, r):
			b.WriteRune(r)
		default:
			b.WriteString(strings.Trim(strconv.QuoteRuneToASCII(r), "'"))
		}
	}
	return b.String()
}

// inLine is text as visible shows it, in one line: a name in a report or an error.
func inLine(text string) string {
	return strings.NewReplacer("\n", `\n`, "\t", `\t`).Replace(visible(text))
}

// paint colours text by its SGR code. Colour never carries a meaning alone.
func (a *app) paint(code, text string) string {
	if !a.colour() {
		return text
	}
	return "\x1b[" + code + "m" + text + "\x1b[0m"
}
