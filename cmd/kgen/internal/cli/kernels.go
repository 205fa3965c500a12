package cli

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/kgen-dev/kgen/codegen/target"
	"github.com/kgen-dev/kgen/kernels"
	"github.com/kgen-dev/kgen/kernels/family"
	"github.com/kgen-dev/kgen/kernels/space"
)

// kernelInfo is a family as kgen kernels --json prints it.
type kernelInfo struct {
	Name        string           `json:"name"`
	Doc         string           `json:"doc"`
	Flags       []flagInfo       `json:"flags"`
	Parameters  []parameterInfo  `json:"parameters"`
	Constraints []constraintInfo `json:"constraints"`
}

type flagInfo struct {
	Name    string `json:"name"`
	Doc     string `json:"doc"`
	Default string `json:"default,omitempty"`
	Want    string `json:"want"`
}

type parameterInfo struct {
	Name   string `json:"name"`
	Doc    string `json:"doc"`
	Values []int  `json:"values"`         // that a search tries
	Also   []int  `json:"also,omitempty"` // that --set takes too
}

type constraintInfo struct {
	Name string `json:"name"`
	Doc  string `json:"doc"`
	Expr string `json:"expr"`
}

func (a *app) kernelsCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "kernels [FAMILY]",
		Short: "List the kernel families, their flags and what a search varies",
		Long: `List the kernel families, or show one: its flags with their defaults and
ranges, the parameters of its configurations with the values that a search
tries (and in brackets those that --set takes too), and the constraints that
configurations meet, over the parameters, the problem's sizes and the limits of
the GPU.`,
		Args:              positional("[FAMILY]"),
		ValidArgsFunction: completeFamilies,
		RunE: func(_ *cobra.Command, args []string) error {
			families := kernels.Families()
			if len(args) > 0 {
				f, err := kernelFamily(args[0])
				if err != nil {
					return err
				}
				families = []*family.Family{f}
			}
			return a.printKernels(families)
		},
	}
	a.jsonFlag(c)
	return c
}

// kernelFamily finds a family by name.
func kernelFamily(name string) (*family.Family, error) {
	for _, f := range kernels.Families() {
		if f.Name == name {
			return f, nil
		}
	}
	return nil, usagef("unknown kernel family %q%s", name, didYouMean(name, familyNames()))
}

// familyNames lists the families.
func familyNames() []string {
	var names []string
	for _, f := range kernels.Families() {
		names = append(names, f.Name)
	}
	return names
}

func completeFamilies(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	var names []string
	if len(args) == 0 {
		for _, f := range kernels.Families() {
			names = append(names, f.Name+"\t"+f.Doc)
		}
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}

// familySpace is the space of a family's default problem: parameters and
// constraints are the same for every GPU.
func familySpace(f *family.Family) (*space.Space, error) {
	gpus := target.All()
	g := gpus[len(gpus)-1]
	p, err := f.Problem(nil, g)
	if err != nil {
		return nil, err
	}
	b, err := p.Space(g)
	if err != nil {
		return nil, err
	}
	return b.Space(), nil
}

func (a *app) printKernels(families []*family.Family) error {
	var infos []kernelInfo
	for _, f := range families {
		info, err := describe(f)
		if err != nil {
			return err
		}
		infos = append(infos, info)
	}
	if a.json {
		return a.printJSON(map[string][]kernelInfo{"kernels": infos})
	}
	for i, info := range infos {
		if i > 0 {
			fmt.Fprintln(a.out)
		}
		if err := a.printKernel(info); err != nil {
			return err
		}
	}
	return nil
}

func describe(f *family.Family) (kernelInfo, error) {
	info := kernelInfo{Name: f.Name, Doc: f.Doc}
	for _, fl := range f.Flags {
		info.Flags = append(info.Flags, flagInfo{fl.Name, fl.Doc, fl.Default, fl.Range()})
	}
	s, err := familySpace(f)
	if err != nil {
		return info, err
	}
	for _, p := range s.Params {
		info.Parameters = append(info.Parameters, parameterInfo{p.Name, p.Doc, p.Values, p.Also})
	}
	for _, c := range s.Constraints {
		info.Constraints = append(info.Constraints, constraintInfo{c.Name, c.Doc, c.Expr})
	}
	return info, nil
}

func (a *app) printKernel(info kernelInfo) error {
	fmt.Fprintf(a.out, "%s: %s\n", info.Name, info.Doc)
	w := a.table()
	for _, f := range info.Flags {
		fmt.Fprintf(w, "  --%s\t%s\t%s\t%s\n", f.Name, f.Default, f.Doc, f.Want)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	fmt.Fprintln(a.out, " parameters")
	for _, p := range info.Parameters {
		values := strings.Trim(fmt.Sprint(p.Values), "[]")
		if len(p.Also) > 0 {
			values += " " + fmt.Sprint(p.Also)
		}
		fmt.Fprintf(w, "  %s\t%s\t%s\n", p.Name, values, p.Doc)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	fmt.Fprintln(a.out, " constraints")
	for _, c := range info.Constraints {
		fmt.Fprintf(w, "  %s\t%s\t%s\n", c.Name, c.Doc, c.Expr)
	}
	return w.Flush()
}
