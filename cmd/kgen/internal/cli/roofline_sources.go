package cli

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/kgen-dev/kgen/bench"
	"github.com/kgen-dev/kgen/bench/vm"
	"github.com/kgen-dev/kgen/codegen/target"
	"github.com/kgen-dev/kgen/internal/jsontext"
	"github.com/kgen-dev/kgen/internal/userfile"
	"github.com/kgen-dev/kgen/kernels/family"
	"github.com/kgen-dev/kgen/roofline"
	"github.com/kgen-dev/kgen/roofline/counts"
	"github.com/kgen-dev/kgen/roofline/measured"
	"github.com/kgen-dev/kgen/roofline/ncu"
	"github.com/kgen-dev/kgen/roofline/plot"
	"github.com/kgen-dev/kgen/tune"
	"github.com/kgen-dev/kgen/tune/replay"
)

// imported is what files hold, held to a GPU's roofs.
type imported struct {
	title        string
	gpu          *target.GPU
	kernels      []*roofline.Judged
	unused       []string
	skipped      int
	notes        []string
	alternatives bool // ways to do the same
	run          bool // in the order in which they were tried

	found []roofline.Kernel // before they are judged
	named string            // the GPU, in the file's words
	fits  bool              // nobody asked for it: it is the oldest that the kernel fits
	cc    string            // its compute capability, if the file tells
	space bool              // a tuning space, whose work the flags tell
	bare  bool              // times are of kernels alone, without what a launch takes
}

// maxImport bounds a file.
const maxImport = 1 << 30

// judged reads files and judges what they hold.
func (f *importFlags) judged(ctx context.Context, files []string) (*imported, error) {
	if f.gpu != "" {
		if _, err := lookupGPU(f.gpu); err != nil { // before the files are read
			return nil, err
		}
	}
	set, err := f.read(ctx, files)
	if err != nil {
		return nil, err
	}
	if err := set.findGPU(f.gpu, files[0]); err != nil {
		return nil, err
	}
	if set.space && (f.flops.value == 0 || f.bytes.value == 0) {
		return nil, usagef("%s: a tuning space does not tell the work of a configuration: want --flops and --bytes", files[0])
	}
	roofs, err := f.figure.roofs(set.gpu)
	if err != nil {
		return nil, err
	}
	byShare := 0
	set.kernels = make([]*roofline.Judged, 0, len(set.found))
	for i := range set.found {
		k := &set.found[i]
		if k.FromBusy(roofs) {
			byShare++
		}
		if f.flops.value > 0 && len(k.Work.Operations) == 0 {
			k.Work.Operations = []roofline.Operations{{Math: target.Math(f.math.value), Count: roofline.Formula(f.flops.value)}}
		}
		if f.bytes.value > 0 {
			k.Least = roofline.Formula(f.bytes.value)
			if k.Work.HBMBytes.Value == 0 {
				k.Work.HBMBytes = k.Least
			}
		}
		at := cmp.Or(k.At, files[0])
		if k.Work.Nothing() {
			had := "a time"
			if busy := busyText(k.Seen.Busy); busy != "" { // from which no work follows
				had += " and shares of peaks (" + busy + ")"
			}
			return nil, usagef("%s: kernel %s: %s alone: want bytes (dram__bytes.sum, or DRAM Throughput in percent), instructions (sm__sass_thread_inst_executed_op_ffma_pred_on.sum and its like), or --flops and --bytes", at, inLine(k.Name), had)
		}
		if !set.bare && k.Work.Launches.Value == 0 {
			k.Work.Launches = roofline.Formula(1)
		}
		j, err := k.Judge(roofs)
		if err != nil {
			return nil, usage(fmt.Errorf("%s: kernel %s: %w", at, inLine(k.Name), err))
		}
		set.kernels = append(set.kernels, j)
	}
	if byShare > 0 {
		set.notes = append(set.notes, fmt.Sprintf("memory's bytes, of %d of %d kernels, are by the share of its peak that the profiler counted, times %.0f GB/s (%s) and the time; dram__bytes.sum counts them",
			byShare, len(set.found), roofs.HBM.Value, roofs.HBM.Basis))
	}
	return set, nil
}

// busyText names the shares of peaks that a profiler saw.
func busyText(all []roofline.Busy) string {
	var shares []string
	for _, b := range all {
		shares = append(shares, fmt.Sprintf("%s %.4g %%", b.Part, 100*b.Share))
	}
	return strings.Join(shares, ", ")
}

// findGPU takes the GPU asked for, or else the one that the file names, and notes where
// they contradict each other.
func (set *imported) findGPU(asked, file string) error {
	if set.fits && asked != "" {
		set.named = "" // which contradicts nothing
	}
	names := set.gpu
	if names == nil && set.named != "" {
		g, err := target.Lookup(set.named)
		if err != nil && asked == "" {
			return usagef("--gpu is missing, and %s names a GPU that is not in the table: %w", file, err)
		}
		names = g
	}
	if asked == "" {
		if names == nil {
			return usagef("--gpu is missing, and %s names none: want a name such as h100; kgen gpus lists them", file)
		}
		set.gpu = names
		if set.fits {
			set.notes = append(set.notes, fmt.Sprintf("%s ran as on %s, the oldest GPU that its kernel fits, and is held to its limits; --gpu names another", file, names.Name))
		}
		return nil
	}
	g, err := lookupGPU(asked)
	if err != nil {
		return err
	}
	set.gpu = g
	of := ""
	switch {
	case names != nil && names.ID != g.ID:
		of = names.Name
	case names == nil && set.named != "":
		of = set.named
	case names == nil && set.cc != "" && set.cc != g.CC.String():
		of = "a GPU of compute capability " + set.cc
	}
	if of != "" {
		set.notes = append(set.notes, fmt.Sprintf("%s is of %s, and is held to the limits of %s, as --gpu asks", file, of, g.Name))
	}
	return nil
}

// read tells what a file holds by its beginning, and reads it. Several files must be
// Nsight Compute's.
func (f *importFlags) read(ctx context.Context, files []string) (*imported, error) {
	data, err := f.readImport(files[0])
	if err != nil {
		return nil, err
	}
	text := bytes.TrimLeft(bytes.TrimPrefix(data, []byte("\xef\xbb\xbf")), " \t\r\n")
	var set *imported
	switch {
	case len(files) == 1 && len(text) > 0 && text[0] == '{':
		set, err = f.readJSON(ctx, files[0], bytes.TrimPrefix(data, []byte("\xef\xbb\xbf")))
	case len(files) == 1 && measured.IsTable(data):
		set, err = readTable(files[0], data)
	case len(files) == 1 && !bytes.Contains(data, []byte("Kernel Name")) && !bytes.Contains(data, []byte("Function Name")) && len(text) > 0:
		if set, err = importSpace(ctx, files[0], data); err != nil && bytes.HasPrefix(text, []byte(`"ID"`)) {
			err = fmt.Errorf("%s: %w", files[0], ncu.ErrNoTable)
		} else if errors.Is(err, replay.ErrFormat) {
			err = fmt.Errorf("%w; nor is it Nsight Compute's CSV, a table of times, or what kgen run or kgen tune prints", err)
		}
	default:
		set, err = readProfile(files, data)
	}
	if err != nil {
		return nil, usage(err)
	}
	if set.title == "" {
		set.title = set.found[0].Name
	}
	return set, nil
}

func (f *importFlags) readImport(file string) (data []byte, err error) {
	if file == "-" {
		data, err = readAll("standard input", f.in, maxImport)
	} else {
		data, err = userfile.Read(file, maxImport)
	}
	if bytes.HasPrefix(data, []byte("\xff\xfe")) || bytes.HasPrefix(data, []byte("\xfe\xff")) {
		err = fmt.Errorf("%s:1: UTF-16, as PowerShell's > writes: want UTF-8", file)
	}
	if err == nil && len(data) == 0 {
		err = fmt.Errorf("%s: the file is empty: want what a profiler, a tuner or kgen wrote", file)
	}
	return data, usage(err)
}

// readProfile reads Nsight Compute's files, of which the first one's text is at hand.
func readProfile(files []string, first []byte) (*imported, error) {
	read := func() (*ncu.Report, error) { return ncu.ReadFiles(files...) }
	if len(files) == 1 { // which may be standard input
		read = func() (*ncu.Report, error) { return ncu.Read(bytes.NewReader(first), files[0]) }
	}
	r, err := read()
	if err != nil {
		return nil, err
	}
	return &imported{title: baseNames(files), bare: true, found: r.Kernels, named: r.Device, cc: r.CC, unused: r.Unused, skipped: r.Skipped, notes: r.Notes}, nil
}

func baseNames(files []string) string {
	var names []string
	for _, f := range files {
		names = append(names, filepath.Base(f))
	}
	return strings.Join(names, ", ")
}

func readTable(file string, data []byte) (*imported, error) {
	samples, err := measured.Read(bytes.NewReader(data), file)
	if err != nil {
		return nil, err
	}
	set := &imported{title: filepath.Base(file)}
	for i := range samples {
		s := &samples[i]
		m, ok := measured.Arithmetic(s.Type)
		if !ok {
			return nil, fmt.Errorf("%s: type %q: no kind of arithmetic is known for it", file, s.Type)
		}
		set.found = append(set.found, roofline.Kernel{
			Name: s.Shape() + " " + s.Type, Launches: 1, TimeUS: s.US, From: bench.Measured,
			Work: roofline.Work{Operations: []roofline.Operations{{Math: m, Count: roofline.Formula(s.FLOPs())}}, HBMBytes: roofline.Formula(s.Bytes())},
		})
	}
	return set, nil
}

// importSpace reads a tuning space: configurations that failed are skipped.
func importSpace(ctx context.Context, file string, data []byte) (*imported, error) {
	s, err := replay.ReadBytes(ctx, file, data)
	if err != nil {
		return nil, err
	}
	set := &imported{title: strings.TrimSpace(s.Kernel + " " + filepath.Base(file)), named: s.Device, alternatives: true, run: true, space: true}
	set.found = make([]roofline.Kernel, 0, len(s.Entries))
	for i := range s.Entries {
		e := &s.Entries[i]
		if e.Status != replay.Correct {
			set.skipped++
			continue
		}
		var words []string
		for p, v := range e.Values {
			words = append(words, s.Names[p]+"="+v.Text)
		}
		set.found = append(set.found, roofline.Kernel{Name: strings.Join(words, " "), Launches: 1, TimeUS: e.MS * 1e3, From: cmp.Or(e.From, bench.Measured)})
	}
	if len(set.found) == 0 {
		return nil, fmt.Errorf("%s: every configuration failed", file)
	}
	return set, nil
}

// readJSON tells kgen's own results and tuning spaces apart by their keys.
func (f *importFlags) readJSON(ctx context.Context, file string, text []byte) (*imported, error) {
	var keys map[string]json.RawMessage
	err := json.Unmarshal(text, &keys)
	has := func(key string) bool { _, ok := keys[key]; return ok }
	if err == nil {
		if again := jsontext.Once(text); again != nil {
			return nil, fmt.Errorf("%s:%w", file, again)
		}
	}
	switch {
	case err == nil && bytes.HasPrefix(keys["best"], []byte("[")) && has("kernel") && has("gpu"): // of a replay it is one
		return readTuning(file, text)
	case err == nil && has("kernel") && has("provenance"):
		k, err := counts.Parse(text)
		if err != nil {
			return nil, fmt.Errorf("%s:%w", file, err)
		}
		var r struct{ Device string }
		if err := json.Unmarshal(text, &r); err != nil {
			return nil, fmt.Errorf("%s:%w", file, jsontext.Locate(text, err))
		}
		set := &imported{found: []roofline.Kernel{*k}}
		set.named, set.fits = deviceGPU(r.Device)
		return set, nil
	case err == nil && !has("cache") && !has("results") && !has("Results") && !has("trace"):
		return nil, fmt.Errorf("%s:1: neither what kgen run or kgen tune prints, nor a tuning space", file)
	}
	set, spaceErr := importSpace(ctx, file, text)
	if spaceErr != nil && err != nil { // no JSON at all
		return nil, fmt.Errorf("%s:%w", file, jsontext.Locate(text, err))
	}
	return set, spaceErr
}

// deviceGPU is the GPU in the name of a device that ran kernels: a GPU's own or that of
// the virtual machine, which chooses one that fits where it was asked for none.
func deviceGPU(device string) (gpu string, fits bool) {
	of, ok := strings.CutPrefix(device, vm.BareName)
	if !ok {
		return device, false
	}
	if gpu, ok = strings.CutPrefix(of, ", "); ok {
		return gpu, false
	}
	if gpu, ok = strings.CutPrefix(of, " as on "); ok {
		return gpu, true
	}
	return "", false
}

// readTuning reads what kgen tune --json printed. The work is the problem's, computed
// anew; of a kernel of --space it is what the machine counted.
func readTuning(file string, text []byte) (*imported, error) {
	var r struct {
		Kernel  string
		GPU     string
		Problem map[string]any
		Best    []struct {
			Config     map[string]any
			TimeUS     float64 `json:"time_us"`
			Limits     map[string]float64
			Provenance bench.Provenance
		}
	}
	if err := json.Unmarshal(text, &r); err != nil {
		return nil, fmt.Errorf("%s:%w", file, jsontext.Locate(text, err))
	}
	if len(r.Best) == 0 {
		return nil, fmt.Errorf("%s: no configuration is in best", file)
	}
	g, err := target.Lookup(r.GPU)
	if err != nil {
		return nil, fmt.Errorf("%s: gpu: %w", file, err)
	}
	var work family.Work
	if r.Problem != nil {
		if work, err = problemWork(r.Kernel, r.Problem, g); err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
	}
	set := &imported{title: strings.TrimSpace(r.Kernel + " " + settingsText(r.Problem)), gpu: g, alternatives: true}
	roofs := roofline.DeviceRoofs(g)
	set.found = make([]roofline.Kernel, 0, len(r.Best))
	for i, b := range r.Best {
		if !(b.TimeUS > 0) {
			return nil, fmt.Errorf("%s: best.%d.time_us %g: want microseconds above 0", file, i, b.TimeUS)
		}
		for _, unit := range slices.Sorted(maps.Keys(b.Limits)) {
			if b.Limits[unit] < 0 {
				return nil, fmt.Errorf("%s: best.%d.limits.%s %g: want microseconds from 0", file, i, unit, b.Limits[unit])
			}
		}
		w := roofs.WorkOf(b.Limits, bench.Predicted)
		least := roofline.Count{}
		if r.Problem != nil {
			w.Operations, least = tune.FormulaWork(work).Operations, roofline.Formula(work.Bytes)
		}
		if reach := b.Limits[string(roofline.Tensor)]; reach > 0 && r.Problem != nil {
			p, _ := g.Peak(work.Math)
			w.TensorReach = min(1, work.FLOPs/(p.TFLOPS*1e6)/reach)
		}
		set.found = append(set.found, roofline.Kernel{Name: settingsText(b.Config), Launches: 1, Work: w, Least: least, TimeUS: b.TimeUS, From: b.Provenance})
	}
	return set, nil
}

// problemWork is the work of a family's problem by its settings.
func problemWork(kernel string, settings map[string]any, g *target.GPU) (family.Work, error) {
	f, err := kernelFamily(kernel)
	if err != nil {
		return family.Work{}, err
	}
	given := map[string]string{}
	for name, v := range settings {
		given[name] = fmt.Sprint(v)
		if n, ok := v.(float64); ok {
			given[name] = fmt.Sprintf("%.0f", n)
			if n != float64(int64(n)) {
				given[name] = fmt.Sprint(n)
			}
		}
	}
	p, err := f.Problem(given, g)
	if err != nil {
		return family.Work{}, fmt.Errorf("problem: %w", err)
	}
	return p.Work(), nil
}

// settingsText writes a configuration in the order of its names.
func settingsText(config map[string]any) string {
	var words []string
	for _, name := range slices.Sorted(maps.Keys(config)) {
		words = append(words, fmt.Sprintf("%s=%v", name, config[name]))
	}
	return strings.Join(words, " ")
}

// subject is what to draw of the kernels.
func (set *imported) subject() *plot.Subject {
	s := &plot.Subject{Title: set.title, Subtitle: set.gpu.Name, Kernels: set.kernels, Alternatives: set.alternatives}
	if !set.run {
		return s
	}
	path := plot.Path{Name: "best so far", Bare: true}
	for _, j := range set.kernels {
		if n := len(path.Kernels); n == 0 || j.Kernel.TimeUS < path.Kernels[n-1].Kernel.TimeUS {
			path.Kernels = append(path.Kernels, j)
		}
	}
	s.Paths = []plot.Path{path}
	return s
}
