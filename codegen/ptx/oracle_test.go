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

// ptxas is the assembler of the toolchain folder, or that which PTXAS names; the
// test is skipped where there is none.
func ptxas(t *testing.T) string {
	t.Helper()
	if named := os.Getenv("PTXAS"); named != "" {
		return named
	}
	found, err := filepath.Glob("../../.toolchain/nvidia/*/bin/ptxas")
	require.NoError(t, err)
	if len(found) == 0 {
		t.Skip("no ptxas in .toolchain: make toolchain fetches it")
	}
	return found[0]
}

// knownTo is the newest PTX that a ptxas knows, by its release.
func knownTo(t *testing.T, tool string) Version {
	t.Helper()
	out, err := exec.Command(tool, "--version").Output()
	require.NoError(t, err)
	m := regexp.MustCompile(`release 13\.(\d+)`).FindSubmatch(out)
	require.NotNil(t, m, "%s", out)
	minor, _ := strconv.Atoi(string(m[1]))
	return Version{9, minor} // CUDA 13.0 has PTX 9.0, and so on
}

var ptxasLine = regexp.MustCompile(`line (\d+); (error|fatal)\s*: (.*)`)

// judge asks ptxas which of some instructions it takes. It returns the
// complaint about each, "" for none.
func judge(t *testing.T, tool string, v Version, target Target, lines []string) []string {
	t.Helper()
	verdict := make([]string, len(lines))
	head := sampleModule(v, target)
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
		if bytes.Contains(out, []byte("Internal compiler error")) && len(lines) == 1 {
			return []string{""} // no verdict
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
	_, err := Load("s.ptx", []byte(sampleModule(v, target)+line+"\n"+sampleTail))
	return err
}

// oracleTargets are the targets that samples are made for.
var oracleTargets = []string{"sm_75", "sm_80", "sm_89", "sm_90a", "sm_100a", "sm_103a", "sm_110a", "sm_120a", "sm_121a", "sm_100f", "sm_120f", "sm_107a", "sm_107f"}

// What ptxas 13.0 refuses of the manual, or takes beyond it, by pattern of the
// instruction.
var knownDifferences = []*regexp.Regexp{
	// Operands of textures and surfaces are looked at by number alone.
	// The back end has a complaint of its own about the layout.
	regexp.MustCompile(`^tcgen05\.ld\.red\.`),
	// Where in a module it stands is not looked at.
	regexp.MustCompile(`\.param::func\.`),
	// It wants to know how many registers there are to give.
	regexp.MustCompile(`^setmaxnreg\.`),
	// A part larger than the whole is looked at where it is used.
	regexp.MustCompile(`^createpolicy\.range\..* [1-9], [1-9];`),
	// Newer ones take what is of PTX 9.3 in older versions too.
	regexp.MustCompile(`^(multimem\.)?cp\.async\.bulk\.(shared|global).*\.b128 `),
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
	t.Parallel()
	tool := ptxas(t)
	v := knownTo(t, tool)
	rng := rand.New(rand.NewSource(1))
	samples := map[Target][]string{}
	for _, name := range Names() {
		for _, f := range specs()[name] {
			for range samplesPerForm() {
				for _, target := range oracleTargets {
					tt, _ := ParseTarget(target)
					if least, _ := leastVersion(tt); v.Less(least) || !f.need.met(v, tt) {
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

// mutate changes one modifier or operand of an instruction's text.
func mutate(rng *rand.Rand, line string, pool []string) string {
	name, ops, _ := strings.Cut(strings.TrimSuffix(line, ";"), " ")
	words := strings.Split(name, ".")
	operands := strings.Split(ops, ", ")
	switch rng.Intn(4) {
	case 0:
		if len(words) > 1 {
			i := 1 + rng.Intn(len(words)-1)
			words = append(words[:i:i], words[i+1:]...)
		}
	case 1:
		if len(words) > 1 {
			words[1+rng.Intn(len(words)-1)] = pool[rng.Intn(len(pool))]
		}
	case 2:
		if len(operands) > 1 && !strings.ContainsAny(ops, "{[(") {
			i := rng.Intn(len(operands))
			operands = append(operands[:i:i], operands[i+1:]...)
		}
	case 3:
		i := rng.Intn(len(operands))
		if strings.Contains(operands[i], "_") && !strings.ContainsAny(operands[i], "{[(}])|") {
			operands[i] = fmt.Sprintf("%s_%d", []string{"b16", "u16", "b32", "s32", "f32", "b64", "u64", "f64", "f16", "f16x2", "b8"}[rng.Intn(11)], rng.Intn(8))
		}
	}
	line = strings.Join(words, ".")
	if ops != "" {
		line += " " + strings.Join(operands, ", ")
	}
	return line + ";"
}

// Of instructions with one change at random, ptxas takes those that Check
// takes, nearly: in a vector it looks at the first register's type alone, and
// it lets a modifier stand twice.
func TestMutationsAgainstPtxas(t *testing.T) {
	t.Parallel()
	tool := ptxas(t)
	v := knownTo(t, tool)
	rng := rand.New(rand.NewSource(2))
	total, differ := 0, []string{}
	targets := []string{"sm_90a"}
	if os.Getenv("KGEN_FULL") != "" {
		targets = oracleTargets
	}
	for _, target := range targets {
		tt, _ := ParseTarget(target)
		lines := mutations(rng, v, tt)
		total += len(lines)
		for len(lines) > 0 {
			n := min(len(lines), 200)
			for i, complaint := range judge(t, tool, v, tt, lines[:n]) {
				err := ours(v, tt, lines[i])
				if (err == nil) != (complaint == "") {
					differ = append(differ, fmt.Sprintf("%s: %.200s: ours: %.200v; ptxas: %s", tt, lines[i], err, complaint))
				}
			}
			lines = lines[n:]
		}
	}
	t.Logf("%d of %d differ", len(differ), total)
	require.Greater(t, total, 600)
	require.Less(t, 100*len(differ), total, "one in a hundred: %s", strings.Join(differ, "\n"))
}

// mutations is a changed instruction of each form that a target has.
func mutations(rng *rand.Rand, v Version, target Target) []string {
	var lines []string
	for _, name := range Names() {
		var pool []string
		for _, f := range specs()[name] {
			for _, g := range f.groups {
				for _, w := range g.words {
					pool = append(pool, w.text)
				}
			}
		}
		for _, f := range specs()[name] {
			if pool == nil || !f.need.met(v, target) {
				continue
			}
			s := sampler{rng: rng}
			if line := s.instruction(f, v, target); line != "" && !known(line) {
				lines = append(lines, mutate(rng, line, pool))
			}
		}
	}
	return lines
}

// A form needs the version that the table says: ptxas takes it there, and not
// in the version before.
func TestVersionsAgainstPtxas(t *testing.T) {
	t.Parallel()
	tool := ptxas(t)
	newest := knownTo(t, tool)
	rng := rand.New(rand.NewSource(3))
	type at struct {
		v Version
		t Target
	}
	samples := map[at][]string{}
	var order []at
	for _, name := range Names() {
		for _, f := range specs()[name] {
			for _, one := range f.need {
				if one.before || one.version.Less(Version{6, 0}) || newest.Less(one.version) {
					continue
				}
				for _, target := range oracleTargets {
					tt, _ := ParseTarget(target)
					before := previous(one.version)
					least, _ := leastVersion(tt)
					if f.need.met(before, tt) || !f.need.met(one.version, tt) || before.Less(least) {
						continue
					}
					s := sampler{rng: rng}
					line := s.instruction(f, one.version, tt)
					if line == "" || known(line) {
						continue
					}
					for _, v := range []Version{one.version, before} {
						k := at{v, tt}
						if samples[k] == nil {
							order = append(order, k)
						}
						samples[k] = append(samples[k], line)
					}
					break
				}
			}
		}
	}
	for _, k := range order {
		for i, complaint := range judge(t, tool, k.v, k.t, samples[k]) {
			line := samples[k][i]
			if err := ours(k.v, k.t, line); (err == nil) != (complaint == "") {
				t.Errorf("%s for %s: %.150s\n\tours:  %.200v\n\tptxas: %s", k.v, k.t, line, err, complaint)
			}
		}
	}
}

// previous is the PTX version before one.
func previous(v Version) Version {
	last := map[int]int{6: 0, 7: 5, 8: 8, 9: 8}
	if v.Minor > 0 {
		return Version{v.Major, v.Minor - 1}
	}
	return Version{v.Major - 1, last[v.Major]}
}
