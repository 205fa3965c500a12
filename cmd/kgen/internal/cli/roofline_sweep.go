package cli

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/kgen-dev/kgen/kernels/family"
	"github.com/kgen-dev/kgen/roofline"
	"github.com/kgen-dev/kgen/roofline/plot"
)

// mostSwept bounds the values of a sweep.
const mostSwept = 100

// sweptValues reads FLAG=V,V,... or FLAG=FROM:TO.
func sweptValues(text string) (flag string, values []string, err error) {
	flag, list, ok := strings.Cut(text, "=")
	flag = strings.TrimLeft(flag, "-")
	if !ok || flag == "" || list == "" {
		return "", nil, usagef("--sweep %q: want FLAG=V,V,... or FLAG=FROM:TO", text)
	}
	if from, to, ok := strings.Cut(list, ":"); ok {
		a, err1 := strconv.ParseInt(from, 10, 64)
		b, err2 := strconv.ParseInt(to, 10, 64)
		if err1 != nil || err2 != nil || a < 1 || b < a {
			return "", nil, usagef("--sweep %s: %s:%s: want whole numbers above 0, the larger behind the colon", text, from, to)
		}
		for ; a <= b; a *= 2 {
			values = append(values, strconv.FormatInt(a, 10))
			if a > b/2 {
				break
			}
		}
		return flag, values, nil
	}
	values = strings.Split(list, ",")
	if slices.Contains(values, "") {
		return "", nil, usagef("--sweep %s: an empty value: want FLAG=V,V,... or FLAG=FROM:TO", text)
	}
	if len(values) > mostSwept {
		return "", nil, usagef("--sweep %s: %d values: want at most %d", flag, len(values), mostSwept)
	}
	return flag, values, nil
}

// sweep says what a problem's limits are as one of its flags changes.
func (a *app) sweep(j *job, figure *figureFlags, set []string, text string) error {
	flag, values, err := sweptValues(text)
	if err != nil {
		return err
	}
	if !slices.ContainsFunc(j.family.Flags, func(f family.Flag) bool { return f.Name == flag }) {
		return usagef("--sweep %s: want one of the flags of %s", flag, j.family.Name)
	}
	if v, ok := j.given[flag]; ok {
		return usagef("--%s %s beside --sweep %s: want one of them", flag, v, flag)
	}
	roofs, err := figure.roofs(j.gpu)
	if err != nil {
		return err
	}
	jobs, err := j.swept(flag, values)
	if err != nil {
		return err
	}
	var all []*limits
	for i, each := range jobs {
		l, err := each.limits(roofs, set)
		if err != nil {
			return err
		}
		for _, k := range l.kernels() {
			k.Kernel.Name = flag + "=" + values[i]
		}
		all = append(all, l)
	}
	drawing, err := figure.draw(sweptSubject(jobs, flag, all))
	if err != nil {
		return err
	}
	if a.json {
		reports := make([]*rooflineReport, 0, len(all))
		for _, l := range all {
			reports = append(reports, l.report)
		}
		return a.printJSON(struct {
			Sweep   string            `json:"sweep"`
			Reports []*rooflineReport `json:"reports"`
			Drawing string            `json:"drawing,omitempty"`
		}{flag, reports, drawing})
	}
	return a.printSweep(jobs, flag, values, all, drawing)
}

// swept are the jobs of a flag's values, all of them checked before any work.
func (j *job) swept(flag string, values []string) ([]*job, error) {
	given := maps.Clone(j.given)
	var jobs []*job
	for _, v := range values {
		given[flag] = v
		p, err := j.family.Problem(given, j.gpu)
		if err != nil {
			return nil, usagef("--sweep %s=%s: %w; a sweep is FLAG=V,V,... or FLAG=FROM:TO", flag, v, err)
		}
		each := &job{family: j.family, gpu: j.gpu, problem: p}
		if err := each.launchable(); err != nil {
			return nil, err
		}
		jobs = append(jobs, each)
	}
	return jobs, nil
}

// unswept are the settings that all jobs of a sweep share: a size that another's value
// stands for where it is not given goes along with it.
func unswept(jobs []*job, flag string) family.Settings {
	return slices.DeleteFunc(slices.Clone(jobs[0].problem.Settings()), func(s family.Setting) bool {
		return s.Name == flag || slices.ContainsFunc(jobs, func(j *job) bool { return !slices.Contains(j.problem.Settings(), s) })
	})
}

// sweptSubject draws a path each of what is attainable, predicted and measured.
func sweptSubject(jobs []*job, flag string, all []*limits) *plot.Subject {
	j := jobs[0]
	s := &plot.Subject{Title: fmt.Sprintf("%s on %s, by %s", j.family.Name, j.gpu.Name, flag), Subtitle: unswept(jobs, flag).String(), Alternatives: true}
	for _, path := range []struct {
		name string
		of   func(*limits) *roofline.Judged
	}{
		{"attainable", func(l *limits) *roofline.Judged { return l.best }},
		{"default configuration", func(l *limits) *roofline.Judged { return l.configuration }},
		{"library", func(l *limits) *roofline.Judged { return l.library }},
	} {
		p := plot.Path{Name: path.name}
		for _, l := range all {
			if k := path.of(l); k != nil {
				p.Kernels = append(p.Kernels, k)
			}
		}
		if len(p.Kernels) > 0 {
			s.Paths = append(s.Paths, p)
		}
	}
	return s
}

func (a *app) printSweep(jobs []*job, flag string, values []string, all []*limits, drawing string) error {
	fmt.Fprintf(a.out, "%s (%s) on %s, by %s\n\n", jobs[0].family.Name, unswept(jobs, flag), jobs[0].gpu.Name, flag)
	w := a.table()
	fmt.Fprintf(w, "%s\tLEAST (FORMULA)\tTFLOP/S\tLIMIT\tPREDICTED\tOF LEAST\tLIBRARY\t\n", strings.ToUpper(flag))
	for i, l := range all {
		predicted, share, library := "-", "-", "-"
		if c := l.configuration; c != nil {
			predicted, share = fmt.Sprintf("%.4g us", c.Kernel.TimeUS), fmt.Sprintf("%.0f %%", 100*l.best.LeastUS()/c.Kernel.TimeUS)
		}
		if t := l.report.Library; t != nil {
			library = fmt.Sprintf("%.4g us\t%s, %s, %s", t.US, t.Framework, t.Match, t.Provenance)
		}
		fmt.Fprintf(w, "%s\t%.4g us\t%.4g\t%s\t%s\t%s\t%s\n", values[i], l.best.LeastUS(), l.best.AttainableTFLOPS(), l.best.Roofs.Name(l.best.Binding.Unit), predicted, share, library)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	if drawing != "" {
		fmt.Fprintf(a.out, "\ndrawing   %s\n", drawing)
	}
	return nil
}
