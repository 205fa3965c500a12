package cli

import (
	"fmt"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/kgen-dev/kgen/kernels"
	"github.com/kgen-dev/kgen/kernels/family"
)

// kernelInfo is a family as kgen kernels --json prints it.
type kernelInfo struct {
	Name  string     `json:"name"`
	Doc   string     `json:"doc"`
	Flags []flagInfo `json:"flags"`
}

type flagInfo struct {
	Name    string `json:"name"`
	Doc     string `json:"doc"`
	Default string `json:"default,omitempty"`
	Want    string `json:"want"`
}

func (a *app) kernelsCommand() *cobra.Command {
	c := &cobra.Command{
		Use:               "kernels [FAMILY]",
		Short:             "List the kernel families and their flags",
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
	var names []string
	for _, f := range kernels.Families() {
		if f.Name == name {
			return f, nil
		}
		names = append(names, f.Name)
	}
	return nil, usagef("unknown kernel family %q%s", name, didYouMean(name, names))
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

func (a *app) printKernels(families []*family.Family) error {
	var infos []kernelInfo
	for _, f := range families {
		info := kernelInfo{Name: f.Name, Doc: f.Doc}
		for _, fl := range f.Flags {
			info.Flags = append(info.Flags, flagInfo{fl.Name, fl.Doc, fl.Default, flagWants(fl)})
		}
		infos = append(infos, info)
	}
	if a.json {
		return a.printJSON(map[string][]kernelInfo{"kernels": infos})
	}
	w := tabwriter.NewWriter(a.out, 0, 0, 2, ' ', 0)
	for _, info := range infos {
		fmt.Fprintf(w, "%s: %s\n", info.Name, info.Doc)
		for _, fl := range info.Flags {
			fmt.Fprintf(w, "  --%s\t%s\t%s\t%s\n", fl.Name, fl.Default, fl.Doc, fl.Want)
		}
	}
	return w.Flush()
}

// flagWants says which values a family's flag takes.
func flagWants(f family.Flag) string {
	switch f.Kind {
	case family.Int:
		s := fmt.Sprintf("%d to %d", f.Min, f.Max)
		if f.Multiple > 1 {
			s += fmt.Sprintf(", multiples of %d", f.Multiple)
		}
		return s
	case family.Float:
		return "a number"
	case family.Bool:
		return "true or false"
	}
	names := make([]string, len(f.Options))
	for i, o := range f.Options {
		names[i] = o.Name
	}
	return strings.Join(names, ", ")
}
