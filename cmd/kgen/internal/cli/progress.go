package cli

import (
	"fmt"
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
	draw  bool
	bar   *progressbar.ProgressBar
	phase tune.Phase
	last  time.Time
}

// newProgress draws no bar where log lines would run into it.
func (a *app) newProgress() *progress {
	return &progress{a: a, draw: !a.quiet && !a.verbose && isTerminal(a.err)}
}

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
	p.a.log.Info(string(s.Phase), args...)
}

func bestSoFar(b *tune.Best) string { return fmt.Sprintf("%.0f us %s", b.TimeUS, b.Provenance) }

func (p *progress) drawBar(s tune.Progress) {
	if s.Total == 0 {
		return
	}
	if p.bar == nil || s.Phase != p.phase {
		p.done()
		p.phase = s.Phase
		p.bar = progressbar.NewOptions(s.Total,
			progressbar.OptionSetWriter(p.a.err), progressbar.OptionThrottle(100*time.Millisecond),
			progressbar.OptionShowCount(), progressbar.OptionClearOnFinish(), progressbar.OptionFullWidth(),
			progressbar.OptionSetDescription(string(s.Phase)))
	}
	if s.Best != nil {
		p.bar.Describe(fmt.Sprintf("%s, best %s", s.Phase, bestSoFar(s.Best)))
	}
	_ = p.bar.Set(s.Done) // a bar that cannot be drawn is no failure
}

// done removes the bar.
func (p *progress) done() {
	if p.bar != nil {
		_ = p.bar.Finish() // likewise
		p.bar = nil
	}
}
