package cli

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/kgen-dev/kgen/bench/launchfile"
	"github.com/kgen-dev/kgen/codegen"
	"github.com/kgen-dev/kgen/codegen/nvrtc"
	"github.com/kgen-dev/kgen/codegen/target"
	"github.com/kgen-dev/kgen/internal/userfile"
	"github.com/kgen-dev/kgen/ir"
)

// stages are the forms of a kernel that kgen emit prints, in the order in which
// they are made.
var stages = []string{"tile", "staged", "simt", "cuda", "ptx", "sass"}

// emitFlags are what kgen emit takes beside the problem or the file.
type emitFlags struct {
	stage            choice
	maps             choice
	set              []string
	passes, portable bool
	file, launch     string
}

func (a *app) emitCommand() *cobra.Command {
	f := &emitFlags{stage: choice{words: stages}, maps: *mapsChoice()}
	return a.familyCommand(familyVerb{
		name:  "emit",
		short: "Print a kernel at any stage of its compilation",
		long: `Print a kernel at any stage of its compilation: the tile program as the family
writes it, the same with buffers and time (staged), threads (simt), the two
ends, CUDA C that needs no include and PTX, and the machine's instructions (sass)
that NVRTC makes of the CUDA C, or ptxas of the PTX where there is no NVRTC, by
nvdisasm. All kernels of the program are in one text. Without --set the
configuration is the problem's default.

--launch writes beside it how a program launches the kernels for these sizes: grids,
parameters, tensor maps, memory. CUDA C and PTX then begin with the same in words.

What stage tile prints can be edited and read back as a file.`,
		example: `  kgen emit gemm --gpu a100 --stage cuda
  kgen emit mine.tile --gpu a100 --stage ptx
  kgen emit flashattn --gpu h100 --head-dim 64 --set BM=64 --stage ptx -o f.ptx
  kgen emit gemm --gpu h100 --stage cuda -o gemm.cu --launch gemm.json
  kgen emit gemm --gpu a100 --passes | less`,
		flags: func(c *cobra.Command) {
			choiceFlag(c, &f.stage, "stage", "what to print (default cuda)")
			settingFlag(c, &f.set)
			launchFlag(c, &f.launch)
			c.Flags().BoolVar(&f.portable, "portable", false, "leave out tensor maps and what only the GPU's own architecture has, such as wgmma on sm_90a")
			choiceFlag(c, &f.maps, "maps", mapsDoc)
			c.Flags().BoolVar(&f.passes, "passes", false, "print the program after each pass, and what --stage names if given")
			c.Flags().StringVarP(&f.file, "output", "o", "", "write to `FILE`, whole or not at all; - is standard output")
		},
		run:     func(ctx context.Context, j *job) error { return a.emit(ctx, j, f) },
		endings: []string{".tile"},
		file:    func(ctx context.Context, name, gpu string) error { return a.emitFile(ctx, name, gpu, f) },
	})
}

// emit prints a configuration of a family.
func (a *app) emit(ctx context.Context, j *job, f *emitFlags) error {
	if err := checkOutput("-o", f.file); err != nil {
		return err
	}
	if err := checkLaunch(f.launch, f.file); err != nil {
		return err
	}
	config, err := j.config(f.set)
	if err != nil {
		return err
	}
	l := a.listing(ctx, f)
	c, plan, err := j.lower(config, l.options())
	if err != nil {
		return err
	}
	text, err := l.text(c)
	if err != nil {
		return compileError(err)
	}
	if f.launch != "" {
		d, err := j.describe(config, c, plan)
		if err != nil {
			return err
		}
		if text, err = emitLaunch(d, f.launch, f.file, l.stage, text); err != nil {
			return err
		}
	}
	return a.write(f.file, []byte(text))
}

// emitFile prints the program of a file.
func (a *app) emitFile(ctx context.Context, name, gpuName string, f *emitFlags) error {
	gpu, err := lookupGPU(gpuName)
	if err != nil {
		return err
	}
	if len(f.set) > 0 {
		return usagef("--set %s: a file has no parameters, want a family", f.set[0])
	}
	if f.launch != "" {
		return usagef("--launch %s: a file's program has no sizes to launch it for: want a family", f.launch)
	}
	if err := checkOutput("-o", f.file); err != nil {
		return err
	}
	if err := checkNotInput("-o", f.file, name); err != nil {
		return err
	}
	program, err := readProgram(name)
	if err != nil {
		return usage(err)
	}
	text, err := a.listing(ctx, f).file(program, gpu)
	if err != nil {
		return fileError(name, err)
	}
	return a.write(f.file, []byte(text))
}

// byPrologue is who makes tensor maps where launches do not take them as parameters.
const byPrologue = "prologue"

// mapsDoc says what the flag is for.
const mapsDoc = "how kernels get tensor maps: as parameters, which launches encode, or from a kernel before them, which makes them on the GPU"

// mapsChoice is the flag for it.
func mapsChoice() *choice {
	return &choice{value: "parameter", words: []string{"parameter", byPrologue}}
}

// maxProgramBytes bounds files of tile IR: those of the families are below 10 KB.
const maxProgramBytes = 16 << 20

func readProgram(name string) (*ir.Program, error) {
	text, err := userfile.Read(name, maxProgramBytes)
	if err != nil {
		return nil, err
	}
	p, err := ir.Parse(name, text)
	if err != nil {
		return nil, fmt.Errorf("%w%s", err, nearOperation(err))
	}
	return p, nil
}

// nearOperation names the operations near one that a program misspells.
func nearOperation(err error) string {
	var unknown *ir.UnknownOperationError
	if !errors.As(err, &unknown) {
		return ""
	}
	var names []string
	for _, code := range ir.Opcodes() {
		names = append(names, code.String())
	}
	return didYouMean(unknown.Name, names)
}

// fileError classes what compiling a file's program refused: all but our own
// bugs are the file's.
func fileError(name string, err error) error {
	var internal *codegen.InternalError
	if errors.As(err, &internal) {
		return err
	}
	return usage(fmt.Errorf("%s: %w", name, err))
}

// listing is a program's text at a stage, after those of the passes if asked.
type listing struct {
	stage  string
	passes bool
	asked  codegen.Options

	sass  func(c *codegen.Compiled) (string, error)
	dumps strings.Builder
}

func (a *app) listing(ctx context.Context, f *emitFlags) *listing {
	return &listing{
		stage: f.stage.value, passes: f.passes, asked: codegen.Options{Portable: f.portable, Prologue: f.maps.value == byPrologue},
		sass: func(c *codegen.Compiled) (string, error) { return a.sass(ctx, c) },
	}
}

// sass is what a compiler makes of a program, as nvdisasm prints it.
func (a *app) sass(ctx context.Context, c *codegen.Compiled) (string, error) {
	disassembler, err := nvrtc.FindNvdisasm()
	if err != nil {
		return "", fmt.Errorf("%w; %s", err, nvrtc.Remedy(err))
	}
	build := a.viaNVRTC
	if _, err := nvrtc.Find(); err != nil {
		build = a.viaPtxas
	}
	image, err := build(ctx, c, &cubinReport{Kernel: c.Program.Name})
	if err != nil {
		return "", err
	}
	return disassembler.Disassemble(ctx, image, "-c")
}

// emitLaunch writes a launch description, and returns the text with it in words, where
// that may have comments.
func emitLaunch(d *launchfile.File, launch, file, stage, text string) (string, error) {
	name, err := beside(file, launch)
	if err != nil {
		return "", err
	}
	switch stage {
	case "", "cuda":
		d.Files.CUDA = name
	case "ptx":
		d.Files.PTX = name
	default:
		return text, writeLaunch(launch, d)
	}
	return d.Comment(filepath.Base(launch)) + "\n" + text, writeLaunch(launch, d)
}

// options make a compilation write down what the passes do.
func (l *listing) options() codegen.Options {
	o := l.asked
	o.Verify = true
	if l.passes {
		o.Dump = func(kernel, pass, text string) {
			l.dumps.WriteString("\n// kernel " + kernel + " after " + pass + "\n" + text)
		}
	}
	return o
}

// file is the text of a file's program, which is compiled unless it is all that is
// asked for.
func (l *listing) file(p *ir.Program, gpu *target.GPU) (string, error) {
	if l.stage == "tile" && !l.passes {
		return p.String(), nil
	}
	c, err := codegen.Compile(p, gpu, l.options())
	if err != nil {
		return "", err
	}
	return l.text(c)
}

// text is the text of what was compiled under the options.
func (l *listing) text(c *codegen.Compiled) (string, error) {
	if l.stage == "tile" && !l.passes {
		return c.Program.String(), nil
	}
	var b strings.Builder
	if l.passes {
		b.WriteString("// tile program\n" + c.Program.String() + l.dumps.String())
	}
	if l.passes && l.stage == "" {
		return b.String(), nil
	}
	text, err := l.stageText(c)
	if err != nil {
		return "", err
	}
	if l.passes {
		b.WriteByte('\n')
	}
	if l.stage == "" || l.stage == "cuda" || l.stage == "ptx" {
		for _, k := range c.Kernels {
			for _, note := range k.Notes {
				b.WriteString("// " + k.Name + ": " + note + "\n")
			}
			if k.Wave > 0 {
				b.WriteString("// " + k.Name + ": " + walkOf(k) + "\n")
			}
		}
	}
	b.WriteString(text)
	return b.String(), nil
}

// walkOf says how the blocks of a persistent kernel go through the tiles.
func walkOf(k codegen.Kernel) string {
	text := fmt.Sprintf("at most %d blocks go on from tile to tile, and copy ahead for the next one", k.Wave)
	if k.Snake {
		text += "; every other round begins at the last block, as tiles get shorter"
	}
	return text
}

func (l *listing) stageText(c *codegen.Compiled) (string, error) {
	switch l.stage {
	case "tile":
		return c.Program.String(), nil
	case "staged":
		staged := *c.Program
		staged.Kernels = c.Staged
		return staged.String(), nil
	case "simt":
		var texts []string
		for _, k := range c.Module.Kernels {
			texts = append(texts, k.String())
		}
		return strings.Join(texts, "\n"), nil
	case "ptx":
		return c.PTX()
	case "sass":
		return l.sass(c)
	}
	return c.CUDA()
}
