// Package document writes tables anew into documents whose words stay.
package document

import (
	"bytes"
	"fmt"
	"os"
	"slices"
	"strings"
)

// Mark is the line before a table that a make target writes.
func Mark(target string) string { return "<!-- written by make " + target + " -->\n" }

// WriteTable puts a target's table into a file in the place of what stands behind its mark,
// or on standard output where the file is "".
func WriteTable(file, target string, table []byte) error {
	if file == "" {
		_, err := os.Stdout.Write(table)
		return err
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	mark := Mark(target)
	before, _, found := bytes.Cut(text, []byte(mark))
	if !found {
		return fmt.Errorf("%s: want a line %q before the table", file, strings.TrimSpace(mark))
	}
	return os.WriteFile(file, slices.Concat(before, []byte(mark), table), 0o644)
}
