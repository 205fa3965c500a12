package cli

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/kgen-dev/kgen/bench"
	"github.com/kgen-dev/kgen/bench/vm"
	"github.com/kgen-dev/kgen/codegen/ptx"
)

// explainFlags say what a descriptor is of, or which tensor map of a case.
type explainFlags struct {
	rows       int
	typ        choice
	transposed bool
	launch     int
	arg        int
	at         []int32
}

func (a *app) ptxExplainCommand() *cobra.Command {
	f := explainFlags{typ: choice{value: "f16", words: []string{"f16", "bf16", "tf32", "e4m3", "e5m2", "s8", "u8"}}}
	c := &cobra.Command{
		Use:   "explain DESCRIPTOR|CASE.json",
		Short: "Show which bytes a descriptor of wgmma or a tensor map reads",
		Long: `Show which bytes of shared memory wgmma reads through a matrix descriptor, row by row,
with its swizzle; or which bytes of a tensor a bulk copy of a box moves, and where in
shared memory they lie, for a tensor map of a case.

A descriptor is 64 bits: the start, leading and stride offsets in units of 16 bytes, the
base offset and the swizzle. Addresses are those of shared memory.`,
		Example: "  kgen ptx explain 0x4000004000010040 --rows 64 --type f16\n  kgen ptx explain case.json --arg 0 --at 64,0 --json",
		Args:    positional("DESCRIPTOR|CASE.json"),
		RunE:    func(_ *cobra.Command, args []string) error { return a.explainPTX(args[0], &f) },
	}
	a.jsonFlag(c)
	c.Flags().SortFlags = false
	c.Flags().IntVar(&f.rows, "rows", 64, "`N` rows of A (64), or columns of B")
	choiceFlag(c, &f.typ, "type", "the elements' type")
	c.Flags().BoolVar(&f.transposed, "transposed", false, "rows, not k, are contiguous")
	c.Flags().IntVar(&f.launch, "launch", 0, "`N` of the case's launch, from 0")
	c.Flags().IntVar(&f.arg, "arg", 0, "`N` of the launch's argument that is a tensor map, from 0")
	c.Flags().Int32SliceVar(&f.at, "at", nil, "`LIST` of the box's coordinates, innermost first (default all 0)")
	c.ValidArgsFunction = cobra.FixedCompletions([]string{"json"}, cobra.ShellCompDirectiveFilterFileExt)
	return c
}

func (a *app) explainPTX(what string, f *explainFlags) error {
	if strings.HasSuffix(what, ".json") {
		return a.explainMap(what, f)
	}
	v, err := strconv.ParseUint(what, 0, 64)
	if err != nil {
		return usagef("descriptor %q: want 64 bits, such as 0x4000004000010040, or the file of a case", what)
	}
	t, _ := ptx.ParseType(f.typ.value)
	m, err := vm.ExplainDescriptor(v, vm.Operand{Rows: f.rows, Type: t, Transposed: f.transposed})
	if err != nil {
		return usage(err)
	}
	if a.json {
		return a.printJSON(m)
	}
	fmt.Fprintf(a.out, "start %#x, leading offset %d bytes, stride offset %d, swizzle %d, base offset %d\n", m.Start, m.Leading, m.Stride, m.Swizzle, m.Base)
	fmt.Fprintf(a.out, "%d bytes of [%#x, %#x)\n\n", m.Bytes, m.First, m.End)
	w := a.table()
	name := "ROW"
	if f.transposed {
		name = "K"
	}
	fmt.Fprintf(w, "%s\tBYTES\n", name)
	for _, r := range m.Rows {
		fmt.Fprintf(w, "%d\t%s\n", r.Row, spans(r.Bytes))
	}
	return w.Flush()
}

// spans is ranges of addresses in the order they are read.
func spans(list []vm.Span) string {
	words := make([]string, len(list))
	for i, s := range list {
		words[i] = fmt.Sprintf("[%#x, %#x)", s.First, s.End)
	}
	return strings.Join(words, " ")
}

func (a *app) explainMap(file string, f *explainFlags) error {
	c, err := bench.ReadCase(file)
	if err != nil {
		return usage(err)
	}
	if f.launch < 0 || f.launch >= len(c.Launches) {
		return usagef("--launch %d: the case has %d launches", f.launch, len(c.Launches))
	}
	args := c.Launches[f.launch].Args
	if f.arg < 0 || f.arg >= len(args) {
		return usagef("--arg %d: the launch has %d arguments", f.arg, len(args))
	}
	m := args[f.arg].Map
	if m == nil {
		return usagef("--arg %d: it is %s, want a tensor map", f.arg, args[f.arg].Kind)
	}
	at := f.at
	if at == nil {
		at = make([]int32, len(m.Box))
	}
	rows, err := vm.ExplainTensorMap(m, at)
	switch {
	case err != nil && len(at) != len(m.Box):
		return usagef("--at: %w", err)
	case err != nil:
		return usagef("--arg %d: %w", f.arg, err)
	}
	if a.json {
		return a.printJSON(rows)
	}
	w := a.table()
	fmt.Fprintln(w, "BYTES OF THE TENSOR\tOUTSIDE\tSHARED MEMORY, FROM THE DESTINATION")
	for _, r := range rows {
		global := "-"
		if r.Global.End > 0 {
			global = spans([]vm.Span{r.Global})
		}
		fmt.Fprintf(w, "%s\t%d\t%s\n", global, r.Outside, spans(r.Shared))
	}
	return w.Flush()
}
