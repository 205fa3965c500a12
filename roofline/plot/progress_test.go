package plot_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kgen-dev/kgen/bench"
	"github.com/kgen-dev/kgen/roofline/plot"
)

// The line only falls, failures have no height, and everything lies in the frame.
func TestProgress(t *testing.T) {
	p := plot.Progress{Title: "scale & more", Subtitle: "six tried", US: []float64{8, 0, 9, 4, 5, 2}, From: bench.Predicted}
	s, err := p.Scene()
	require.NoError(t, err)
	dots, line := 0, []plot.Point(nil)
	for _, g := range s.Groups {
		for _, e := range g.Elements {
			if m := e.Marker; m != nil {
				dots++
				require.True(t, m.At.X > s.Frame[0].X && m.At.X < s.Frame[1].X && m.At.Y > s.Frame[0].Y && m.At.Y < s.Frame[1].Y)
			}
			if g.Name == "best" {
				line = e.Line.Points
			}
		}
	}
	require.Equal(t, 6, dots)
	for i := range line[1:] {
		require.GreaterOrEqual(t, line[i+1].X, line[i].X)
		require.GreaterOrEqual(t, line[i+1].Y, line[i].Y) // downwards
	}
	evaluation, us := s.Read(line[len(line)-1])
	require.InDelta(t, 6, evaluation, 1e-9)
	require.InDelta(t, 2, us, 1e-9)
	var b bytes.Buffer
	require.NoError(t, s.WriteSVG(&b))
	require.True(t, strings.Contains(b.String(), "scale &amp; more") && !strings.Contains(b.String(), "NaN"))
	_, err = (&plot.Progress{US: []float64{0}}).Scene()
	require.ErrorContains(t, err, "not one has a time")
}
