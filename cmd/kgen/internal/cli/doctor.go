package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/kgen-dev/kgen/bench/cuda"
	"github.com/kgen-dev/kgen/codegen/cache"
	"github.com/kgen-dev/kgen/codegen/nvrtc"
	"github.com/kgen-dev/kgen/tune/store"
)

// finding is one thing that kgen uses and whether it is there.
type finding struct {
	Name    string `json:"name"`
	OK      bool   `json:"ok"`
	Version string `json:"version,omitempty"`
	Path    string `json:"path,omitempty"`
	Problem string `json:"problem,omitempty"`
	Note    string `json:"note,omitempty"`
	// Needed says what does not work without it, Remedy how to get it.
	Needed   string `json:"needed"`
	Remedy   string `json:"remedy,omitempty"`
	Required bool   `json:"required"`
}

// diagnosis is what kgen doctor --json prints.
type diagnosis struct {
	OK       bool      `json:"ok"` // everything required is there
	Findings []finding `json:"findings"`
}

func (a *app) doctorCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "doctor",
		Short: "Say what kgen finds on this machine, and what is missing",
		Long: `Say what kgen finds on this machine, what is missing, what does not work
without it and how to get it. It fails only when a folder that kgen must write
to cannot be written: everything else is optional.`,
		Args: positional(),
		RunE: func(c *cobra.Command, _ []string) error { return a.doctor(c.Context()) },
	}
	a.jsonFlag(c)
	return c
}

func (a *app) doctor(ctx context.Context) error {
	d := diagnosis{OK: true, Findings: []finding{
		findNVRTC(),
		findProgram(ctx, "ptxas", "turning direct PTX into a cubin, and its registers and spills", findPtxas),
		findProgram(ctx, "nvdisasm", "the sass line of tune, which counts machine instructions", findNvdisasm),
		findFolder("cache folder", "keeping what was compiled", cache.Env, cache.Dir),
		findFolder("state folder", "keeping tuning results", store.Env, store.Dir),
		findGPU(),
	}}
	var broken []string
	for _, f := range d.Findings {
		if f.Required && !f.OK {
			d.OK = false
			broken = append(broken, f.Name+": "+f.Problem)
		}
	}
	if err := a.printDiagnosis(d); err != nil {
		return err
	}
	if len(broken) > 0 {
		return errors.New(strings.Join(broken, "; "))
	}
	return nil
}

func (a *app) printDiagnosis(d diagnosis) error {
	if a.json {
		return a.printJSON(d)
	}
	for _, f := range d.Findings {
		mark := a.paint("32", "found  ")
		if !f.OK {
			mark = a.paint("33", "missing")
		}
		fmt.Fprintf(a.out, "%s  %-13s  %s\n", mark, f.Name, f.detail())
		if !f.OK {
			fmt.Fprintf(a.out, "%24sneeded for %s\n%24s%s\n", "", f.Needed, "", f.Remedy)
		}
	}
	return nil
}

func (f finding) detail() string {
	if !f.OK {
		return oneLine(errors.New(f.Problem))
	}
	detail := strings.TrimSpace(f.Version + " " + f.Path)
	if f.Note != "" {
		detail += "; " + f.Note
	}
	return detail
}

func findNVRTC() finding {
	f := finding{Name: "NVRTC", Needed: "compiling CUDA C; direct PTX does without"}
	c, err := nvrtc.Find()
	if err != nil {
		f.Problem, f.Remedy = err.Error(), nvrtc.Remedy(err)
		return f
	}
	major, minor := c.Version()
	archs := c.Archs()
	f.OK, f.Path = true, c.Path()
	f.Version = fmt.Sprintf("%d.%d", major, minor)
	if len(archs) > 0 {
		f.Version += fmt.Sprintf(" (sm_%d to sm_%d)", archs[0], archs[len(archs)-1])
	}
	return f
}

// program is a tool of the toolkit.
type program struct {
	path    string
	version func(context.Context) (string, error)
}

func findPtxas() (program, error) {
	p, err := nvrtc.FindPtxas()
	return program{p.Path, p.Version}, err
}

func findNvdisasm() (program, error) {
	n, err := nvrtc.FindNvdisasm()
	return program{n.Path, n.Version}, err
}

func findProgram(ctx context.Context, name, needed string, find func() (program, error)) finding {
	f := finding{Name: name, Needed: needed}
	p, err := find()
	if err == nil {
		f.Path = p.path
		f.Version, err = p.version(ctx)
	}
	if err != nil {
		f.Problem, f.Remedy = err.Error(), nvrtc.Remedy(err)
		return f
	}
	f.OK = true
	return f
}

func findFolder(name, needed, env string, dir func() (string, error)) finding {
	f := finding{Name: name, Needed: needed, Required: true, Remedy: "set " + env + " to a folder that can be written"}
	path, err := dir()
	if err == nil {
		f.Path = path
		err = checkWritable(path)
	}
	if err != nil {
		f.Problem = err.Error()
		return f
	}
	f.OK, f.Remedy = true, ""
	return f
}

func findGPU() finding {
	f := finding{
		Name: "NVIDIA driver", Needed: "running on a GPU, kgen run --device cuda; the virtual machine checks and counts without",
		Remedy: "install NVIDIA's driver on a machine with its GPU",
	}
	library, release := findDriver()
	info, err := cuda.Find()
	switch {
	case err == nil:
		f.OK, f.Path, f.Remedy = true, library, ""
		f.Version = fmt.Sprintf("%s for CUDA %d.%d", release, info.Driver/1000, info.Driver%1000/10)
		for _, d := range info.Devices {
			f.Version += ", " + d.Name
		}
		f.Version = strings.TrimSpace(f.Version)
	case library != "" && !errors.Is(err, cuda.ErrNotBuilt):
		f.Problem = err.Error()
	case library != "":
		f.OK, f.Path, f.Version, f.Remedy = true, library, release, ""
		f.Note = err.Error()
	case release != "":
		f.Problem = "driver " + release + " is loaded but libcuda.so.1 is not found"
	default:
		f.Problem = "no driver is loaded and libcuda.so.1 is not found"
	}
	return f
}
