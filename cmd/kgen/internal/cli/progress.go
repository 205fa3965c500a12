package cli

import (
	"fmt"
	"io"
	"log/slog"
	"sync"
	"time"

	"github.com/schollz/progressbar/v3"

	"github.com/kgen-dev/kgen/bench"
	"github.com/kgen-dev/kgen/tune"
	"github.com/kgen-dev/kgen/tune/explore"
	"github.com/kgen-dev/kgen/tune/queue"
)

// logEvery is how often a long phase says where it stands when no bar does.
const logEvery = 10 * time.Second

// progress shows where a tuning run stands: a bar where a person watches,
// elsewhere a line for each phase and now and then.
type progress struct {
	a     *app
	log   *slog.Logger // for the run: above the bar where there is one
	draw  bool
	phase string
	last  time.Time

	workers func() []queue.Standing // nil: this process's children do the work

	mu  sync.Mutex // the bar and the log share the terminal
	bar *progressbar.ProgressBar
}

// newProgress draws no bar where it would be read by nobody, or run into the
// lines of --verbose.
func (a *app) newProgress() *progress {
	return newProgress(a, !a.quiet && !a.verbose && isTerminal(a.err))
}

func newProgress(a *app, draw bool) *progress {
	p := &progress{a: a, log: a.log, draw: draw}
	if draw { // the bar says all that a log at its usual level does
		p.log = a.logger(aboveBar{p}, slog.LevelWarn)
	}
	return p
}

// aboveBar writes lines to the terminal that the bar makes way for.
type aboveBar struct{ p *progress }

func (w aboveBar) Write(line []byte) (int, error) {
	w.p.mu.Lock()
	defer w.p.mu.Unlock()
	if w.p.bar != nil {
		_ = w.p.bar.Clear() // a bar that cannot be drawn is no failure
	}
	return w.p.a.err.Write(line)
}

var _ io.Writer = aboveBar{}

// standing is where a run stands.
type standing struct {
	phase       string
	done, total int
	best        string // time and where it is from; "" before the first
	failed      int
	left        time.Duration // 0: not known
}

// tuning shows where the tuning of a family stands.
func (p *progress) tuning(t tune.Progress) {
	s := standing{phase: string(t.Phase), done: t.Done, total: t.Total, failed: t.Failed, left: t.Left}
	if b := t.Best; b != nil {
		s.best = timeSoFar(b.TimeUS, b.Provenance)
	}
	p.show(s)
}

// exploring shows where the search of a space stands.
func (p *progress) exploring(t explore.Progress) {
	s := standing{phase: string(t.Phase), done: t.Done, total: t.Total, left: t.Left}
	if b := t.Best; b != nil {
		s.best = timeSoFar(b.Evaluation.TimeUS, b.Evaluation.Provenance)
	}
	for _, n := range t.Failures {
		s.failed += n
	}
	p.show(s)
}

// workersText says how the workers are, if there are any.
func (p *progress) workersText() string {
	if p.workers == nil {
		return ""
	}
	return queue.Summary(p.workers())
}

func timeSoFar(us float64, from bench.Provenance) string { return fmt.Sprintf("%.4g us %s", us, from) }

func (p *progress) show(s standing) {
	if p.draw {
		p.drawBar(s)
		return
	}
	now := time.Now()
	if s.phase == p.phase && now.Sub(p.last) < logEvery {
		return
	}
	p.phase, p.last = s.phase, now
	args := []any{"done", s.done, "of", s.total}
	if s.best != "" {
		args = append(args, "best", s.best)
	}
	if s.failed > 0 {
		args = append(args, "failed", s.failed)
	}
	if s.left > 0 {
		args = append(args, "left", s.left.Round(time.Second))
	}
	if text := p.workersText(); text != "" {
		args = append(args, "workers", text)
	}
	p.log.Info(s.phase, args...)
}

func (p *progress) drawBar(s standing) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if s.total == 0 {
		return
	}
	if p.bar == nil || s.phase != p.phase {
		p.finish()
		p.phase = s.phase
		p.bar = progressbar.NewOptions(s.total,
			progressbar.OptionSetWriter(p.a.err), progressbar.OptionThrottle(100*time.Millisecond),
			progressbar.OptionShowCount(), progressbar.OptionClearOnFinish(), progressbar.OptionFullWidth(), progressbar.OptionSetPredictTime(false),
			progressbar.OptionSetDescription(s.phase))
	}
	text := s.phase
	if workers := p.workersText(); workers != "" {
		text += ", workers " + workers
	}
	if s.best != "" {
		text += ", best " + s.best
	}
	if s.left > 0 {
		text += fmt.Sprintf(", %s left", s.left.Round(time.Second))
	}
	p.bar.Describe(text)
	_ = p.bar.Set(s.done) // likewise
}

// done removes the bar.
func (p *progress) done() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.finish()
}

func (p *progress) finish() {
	if p.bar != nil {
		_ = p.bar.Finish() // likewise
		p.bar = nil
	}
}
