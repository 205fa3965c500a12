package cli

import (
	"fmt"
	"io"
	"log/slog"
	"sync"
	"time"

	"github.com/schollz/progressbar/v3"

	"github.com/kgen-dev/kgen/tune"
)

// logEvery is how often a long phase says where it stands when no bar does.
const logEvery = 10 * time.Second

// progress shows where a tuning run stands: a bar where a person watches,
// elsewhere a line for each phase and now and then.
type progress struct {
	a     *app
	log   *slog.Logger // for the run: above the bar where there is one
	draw  bool
	phase tune.Phase
	last  time.Time

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

func (p *progress) show(s tune.Progress) {
	if p.draw {
		p.drawBar(s)
		return
	}
	now := time.Now()
	if s.Phase == p.phase && now.Sub(p.last) < logEvery {
		return
	}
	p.phase, p.last = s.Phase, now
	args := []any{"done", s.Done, "of", s.Total}
	if s.Best != nil {
		args = append(args, "best", bestSoFar(s.Best))
	}
	if s.Left > 0 {
		args = append(args, "left", s.Left.Round(time.Second))
	}
	p.log.Info(string(s.Phase), args...)
}

func bestSoFar(b *tune.Best) string { return fmt.Sprintf("%.0f us %s", b.TimeUS, b.Provenance) }

func (p *progress) drawBar(s tune.Progress) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if s.Total == 0 {
		return
	}
	if p.bar == nil || s.Phase != p.phase {
		p.finish()
		p.phase = s.Phase
		p.bar = progressbar.NewOptions(s.Total,
			progressbar.OptionSetWriter(p.a.err), progressbar.OptionThrottle(100*time.Millisecond),
			progressbar.OptionShowCount(), progressbar.OptionClearOnFinish(), progressbar.OptionFullWidth(),
			progressbar.OptionSetDescription(string(s.Phase)))
	}
	if s.Best != nil {
		p.bar.Describe(fmt.Sprintf("%s, best %s", s.Phase, bestSoFar(s.Best)))
	}
	_ = p.bar.Set(s.Done) // likewise
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
