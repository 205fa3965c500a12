package ptx

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// ptxas is the assembler of the toolchain folder; the test is skipped where
// there is none.
func ptxas(t *testing.T) string {
	t.Helper()
	found, err := filepath.Glob("../../.toolchain/nvidia/*/bin/ptxas")
	require.NoError(t, err)
	if len(found) == 0 {
		t.Skip("no ptxas in .toolchain: make toolchain fetches it")
	}
	return found[0]
}

var ptxasLine = regexp.MustCompile(`line (\d+); (error|fatal)\s*: (.*)`)

// judge asks ptxas which of some instructions it takes. It returns the
// complaint about each, "" for none.
func judge(t *testing.T, tool string, v Version, target Target, lines []string) []string {
	t.Helper()
	verdict := make([]string, len(lines))
	head := fmt.Sprintf(sampleHead, v, target)
	first := strings.Count(head, "\n") + 1
	for range 40 {
		text := head
		for i, l := range lines {
			if verdict[i] != "" {
				l = ""
			}
			text += l + "\n"
		}
		file := filepath.Join(t.TempDir(), "s.ptx")
		require.NoError(t, os.WriteFile(file, []byte(text+sampleTail), 0o600))
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		out, err := exec.CommandContext(ctx, tool, "-O0", "-arch", target.String(), file, "-o", os.DevNull).CombinedOutput()
		cancel()
		if err == nil {
			return verdict
		}
		if bytes.Contains(out, []byte("(C7600)")) {
			return verdict // out of registers: past all checks
		}
		before := strings.Join(verdict, "")
		for _, m := range ptxasLine.FindAllSubmatch(out, -1) {
			n, _ := strconv.Atoi(string(m[1]))
			if i := n - first; i >= 0 && i < len(lines) && verdict[i] == "" {
				verdict[i] = string(m[3])
			}
		}
		if strings.Join(verdict, "") != before {
			continue
		}
		// It fails, or crashes, without saying where: find the line.
		exit, ok := errors.AsType[*exec.ExitError](err)
		switch {
		case len(lines) > 1:
			half := len(lines) / 2
			return append(judge(t, tool, v, target, lines[:half]), judge(t, tool, v, target, lines[half:])...)
		case ok && !exit.Exited():
			return []string{""} // a crash is no verdict
		}
		return []string{string(bytes.TrimSpace(out))}
	}
	return verdict
}

// ours is the verdict of Load on one instruction.
func ours(v Version, target Target, line string) error {
	_, err := Load("s.ptx", []byte(fmt.Sprintf(sampleHead, v, target)+line+"\n"+sampleTail))
	return err
}

// oracleTargets are the targets that samples are made for.
var oracleTargets = []string{"sm_75", "sm_80", "sm_89", "sm_90a", "sm_100a", "sm_103a", "sm_110a", "sm_120a", "sm_121a", "sm_100f", "sm_120f"}

// What ptxas 13.0 refuses of the manual, or takes beyond it, by pattern of the
// instruction.
var knownDifferences = []*regexp.Regexp{
	// Operands of textures and surfaces are looked at by number alone.
	// The back end has a complaint of its own about the layout.
	regexp.MustCompile(`^tcgen05\.ld\.red\.`),
	// It wants to know how many registers there are to give.
	regexp.MustCompile(`^setmaxnreg\.`),
	// The number of threads is looked at where it is used.
	regexp.MustCompile(`^bar(rier)?\..* [1-9]`),
	regexp.MustCompile(`^(tex|tld4|txq|suld|sust|sured|suq)\.`),
}

func known(line string) bool {
	for _, r := range knownDifferences {
		if r.MatchString(line) {
			return true
		}
	}
	return false
}

// Every form of the table, with modifiers and operands at random, is taken by
// ptxas for a target that the form is for.
func TestTableAgainstPtxas(t *testing.T) {
	tool := ptxas(t)
	v := Version{9, 0}
	rng := rand.New(rand.NewSource(1))
	samples := map[Target][]string{}
	for _, name := range Names() {
		for _, f := range specs()[name] {
			for range samplesPerForm() {
				for _, target := range oracleTargets {
					tt, _ := ParseTarget(target)
					if !f.need.met(v, tt) {
						continue
					}
					s := sampler{rng: rng}
					line := s.instruction(f, v, tt)
					if line == "" {
						continue
					}
					if err := ours(v, tt, line); err != nil {
						t.Errorf("%s for %s: %v", line, tt, err)
					}
					samples[tt] = append(samples[tt], line)
					break
				}
			}
		}
	}
	for _, target := range oracleTargets {
		tt, _ := ParseTarget(target)
		lines := samples[tt]
		for len(lines) > 0 {
			n := min(len(lines), 200)
			for i, complaint := range judge(t, tool, v, tt, lines[:n]) {
				if complaint != "" && !known(lines[i]) {
					t.Errorf("ptxas for %s refuses: %s\n\t%s", tt, lines[i], complaint)
				}
			}
			lines = lines[n:]
		}
	}
}

func samplesPerForm() int {
	if n, err := strconv.Atoi(os.Getenv("PTX_SAMPLES")); err == nil {
		return n
	}
	return 1
}
