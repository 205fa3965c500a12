package vm

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kgen-dev/kgen/codegen/ptx"
	"github.com/kgen-dev/kgen/codegen/target"
)

var update = flag.Bool("update", false, "take out of the list of refused instructions what is executed now")

// formTargets are the targets that forms are tried for, each form for the first
// that has it.
var formTargets = []string{"sm_60", "sm_75", "sm_80", "sm_86", "sm_89", "sm_90", "sm_90a", "sm_100a", "sm_103a", "sm_110a", "sm_120a", "sm_121a"}

// newTargets are those that PTX 9.3 and 9.4 add or add to.
var newTargets = []string{"sm_75", "sm_80", "sm_90", "sm_90a", "sm_100", "sm_100a", "sm_107a"}

// TestForms tries every form of the table of PTX instructions with its
// modifiers: the virtual machine executes it, or refuses it by name, and those
// that it refuses are counted in testdata: up to PTX 9.2, and what came after.
// The lists only shrink: -update takes out of them what is executed now and never
// puts anything in.
func TestForms(t *testing.T) {
	tryForms(t, ptx.Version{}, ptx.Version{Major: 9, Minor: 2}, formTargets, 900, "refused.txt")
}

func TestNewForms(t *testing.T) {
	tryForms(t, ptx.Version{Major: 9, Minor: 2}, ptx.Version{Major: 9, Minor: 4}, newTargets, 100, "refused_new.txt")
}

// tryForms tries the forms that version v has and old has not.
func tryForms(t *testing.T, old, v ptx.Version, names []string, least int, list string) {
	var targets []ptx.Target
	for _, name := range names {
		tt, err := ptx.ParseTarget(name)
		require.NoError(t, err)
		targets = append(targets, tt)
	}
	byTarget := map[ptx.Target][]ptx.Sample{}
	for _, s := range ptx.Samples(old, v, targets, 130) {
		byTarget[s.Target] = append(byTarget[s.Target], s)
	}
	tried, refused := map[*ptx.Spec]int{}, map[*ptx.Spec]int{}
	var forms []*ptx.Spec
	for _, tt := range targets {
		for i, complaint := range refusals(t, v, tt, byTarget[tt]) {
			f := byTarget[tt][i].Form
			if tried[f] == 0 {
				forms = append(forms, f)
			}
			tried[f]++
			if complaint != "" {
				refused[f]++
				t.Log(complaint)
			}
		}
	}
	require.Greater(t, len(forms), least)
	line := func(f *ptx.Spec) string { return formLine(f, old == ptx.Version{}) }
	now := map[string]int{}
	total := map[string]int{}
	for _, f := range forms {
		total[line(f)] += tried[f]
		now[line(f)] += refused[f]
	}
	logForms(t, forms, tried, refused)
	file := filepath.Join("testdata", list)
	listed := readRefused(t, file)
	for _, form := range slices.Sorted(maps.Keys(now)) {
		n, before := now[form], listed[form]
		switch {
		case n > before:
			t.Errorf("%s: %d of %d refused, %d listed in %s", form, n, total[form], before, file)
		case n < before && !*update:
			t.Errorf("%s: %d of %d refused, %d listed in %s: run with -update", form, n, total[form], before, file)
		}
	}
	if *update {
		var text strings.Builder
		for _, form := range slices.Sorted(maps.Keys(listed)) {
			if n := min(now[form], listed[form]); n > 0 {
				fmt.Fprintf(&text, "%s: %d of %d\n", form, n, total[form])
			}
		}
		require.NoError(t, os.WriteFile(file, []byte(text.String()), 0o644))
	}
}

// logForms logs for every instruction its forms, how many choices of modifiers
// were tried, and how many refused.
func logForms(t *testing.T, forms []*ptx.Spec, tried, refused map[*ptx.Spec]int) {
	t.Helper()
	byName := map[string][3]int{}
	for _, f := range forms {
		n := byName[f.Name]
		byName[f.Name] = [3]int{n[0] + 1, n[1] + tried[f], n[2] + refused[f]}
	}
	for _, name := range slices.Sorted(maps.Keys(byName)) {
		n := byName[name]
		t.Logf("form: %s %d %d %d", name, n[0], n[1], n[2])
	}
}

// readRefused reads lines of a form, how many of its samples are refused, and
// of how many.
func readRefused(t *testing.T, file string) map[string]int {
	t.Helper()
	data, err := os.ReadFile(file)
	require.NoError(t, err)
	listed := map[string]int{}
	for line := range strings.Lines(string(data)) {
		i := strings.LastIndex(line, ": ")
		require.Positive(t, i, line)
		var n, of int
		_, err := fmt.Sscanf(line[i+2:], "%d of %d", &n, &of)
		require.NoError(t, err, line)
		listed[line[:i]] = n
	}
	return listed
}

// refusals decodes each sample by itself and says what the complaint is, "" for
// none.
func refusals(t *testing.T, v ptx.Version, tt ptx.Target, samples []ptx.Sample) []string {
	t.Helper()
	if len(samples) == 0 {
		return nil
	}
	lines := make([]string, len(samples))
	for i, s := range samples {
		lines[i] = s.Text
	}
	src := ptx.SampleModule(v, tt, lines)
	tree, err := ptx.Load("forms.ptx", []byte(src))
	require.NoError(t, err)
	gpu, err := target.Lookup("h100")
	require.NoError(t, err)
	dev, err := New(Options{GPU: gpu})
	require.NoError(t, err)
	m := &module{dev: dev, src: tree, gpu: gpu, globals: map[*ptx.Variable]*allocation{}, byName: map[string]*ptx.Variable{}, funcs: map[string]*ptx.Function{}, numbers: map[*ptx.Function]int{}}
	k := &kernel{mod: m, sharedGrain: 2, globalGrain: 2, funcs: map[*ptx.Function]*program{}, shared: map[*ptx.Variable]int64{}}
	var fn *ptx.Function
	for _, decl := range tree.Decls {
		switch decl := decl.(type) {
		case *ptx.Function:
			m.funcs[decl.Name] = decl
			m.numbers[decl] = len(m.numbers)
			if decl.Kernel {
				fn = decl
			}
		case *ptx.Variable:
			if decl.Space == ptx.SpaceGlobal || decl.Space == ptx.SpaceConst {
				require.NoError(t, m.place(decl))
			}
		}
	}
	complaints := make([]string, len(samples))
	d := newDecoder(k, fn)
	for i := range samples {
		complaints[i] = complaint(d, fn.Code[i])
	}
	return complaints
}

// complaint decodes one instruction.
func complaint(d *decoder, in *ptx.Instruction) (text string) {
	defer func() {
		switch e := recover().(type) {
		case nil:
		case *ptx.Error:
			text = e.Msg
		default:
			panic(fmt.Sprint(opcode(in), ": ", e))
		}
	}()
	d.instruction(in)
	return ""
}

// formLine is a form's name, modifiers and operands, long lists shortened; of one
// that is old, without the modifiers that came after.
func formLine(f *ptx.Spec, old bool) string {
	words := []string{f.Name}
	for m := range strings.FieldsSeq(f.Mods) {
		m, optional := strings.CutSuffix(m, "?")
		all := strings.Split(m, "|")
		if old {
			all = slices.DeleteFunc(all, isNew)
		}
		switch {
		case len(all) == 0:
			continue
		case len(all) > 8:
			all = []string{all[0], "...", all[len(all)-1]}
		}
		m = strings.Join(all, "|")
		if optional {
			m += "?"
		}
		words = append(words, m)
	}
	return strings.Join(words, " ") + " (" + strings.TrimSpace(f.Operands) + ")"
}

// isNew says whether a modifier of the table came after PTX 9.2.
func isNew(word string) bool {
	_, need, _ := strings.Cut(word, "@")
	return need == "rubin" || strings.HasPrefix(need, "9.3") || strings.HasPrefix(need, "9.4")
}
