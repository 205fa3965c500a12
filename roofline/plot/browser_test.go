package plot

import (
	"bytes"
	"context"
	"encoding/json"
	"html"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// probe does with a page what a person does, and leaves what it saw in the document.
const probe = `<script>
addEventListener("load", () => {
  const seen = {}, svg = document.querySelector("#drawing svg"), hover = document.getElementById("hover"), filter = document.getElementById("filter");
  const rows = () => [...document.querySelectorAll("tbody tr")].map(r => r.cells[0].textContent);
  const paper = () => getComputedStyle(document.body).backgroundColor;
  seen.rows = rows();
  const at = document.querySelector("MARKER").getBoundingClientRect();
  svg.dispatchEvent(new MouseEvent("mousemove", {clientX: at.left + at.width / 2, clientY: at.top + at.height / 2}));
  seen.hover = hover.hidden ? "" : hover.textContent;
  svg.dispatchEvent(new MouseEvent("mouseleave"));
  seen.left = hover.hidden;
  const heads = [...document.querySelectorAll("th")];
  heads[0].click();
  seen.up = rows();
  heads[0].click();
  seen.down = rows();
  filter.value = "FILTER";
  filter.dispatchEvent(new Event("input"));
  seen.filtered = rows();
  seen.count = document.getElementById("count").textContent;
  seen.dimmed = svg.classList.contains("filtered");
  seen.light = paper();
  document.getElementById("theme").click();
  seen.dark = paper();
  seen.network = performance.getEntriesByType("resource").map(e => e.name);
  const out = document.createElement("pre");
  out.id = "seen";
  out.textContent = JSON.stringify(seen);
  document.body.append(out);
});
</script>`

// seenPage is what the probe saw.
type seenPage struct {
	Rows, Up, Down, Filtered  []string
	Hover, Count, Light, Dark string
	Left, Dimmed              bool
	Network                   []string
}

// open shows a scene's page in a headless Chromium and returns what the probe saw.
func open(t *testing.T, scene *Scene, marker, filter string) *seenPage {
	t.Helper()
	chromium, err := exec.LookPath("chromium")
	if err != nil {
		t.Skip("no chromium on this machine")
	}
	page, err := scene.Encode("page.html")
	require.NoError(t, err)
	script := bytes.ReplaceAll(bytes.ReplaceAll([]byte(probe), []byte("MARKER"), []byte(marker)), []byte("FILTER"), []byte(filter))
	file := filepath.Join(t.TempDir(), "page.html")
	require.NoError(t, os.WriteFile(file, bytes.Replace(page, []byte("</body>"), append(script, "</body>"...), 1), 0o644))
	ctx, stop := context.WithTimeout(t.Context(), 2*time.Minute)
	defer stop()
	dom, err := exec.CommandContext(ctx, chromium, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--user-data-dir="+t.TempDir(),
		"--host-resolver-rules=MAP * ~NOTFOUND", "--window-size=1000,900", "--dump-dom", "file://"+file).Output()
	require.NoError(t, err)
	found := regexp.MustCompile(`(?s)<pre id="seen">(.*?)</pre>`).FindSubmatch(dom)
	require.NotNil(t, found, "the page's script failed: nothing was seen")
	var seen seenPage
	require.NoError(t, json.Unmarshal([]byte(html.UnescapeString(string(found[1]))), &seen))
	return &seen
}

func TestPageInBrowser(t *testing.T) {
	s := profiled(t)
	for _, c := range []struct {
		view           View
		marker, hover  string
		first, last    string
		rows, filtered int
	}{
		{RateView, "#data circle", "gemm (measured): 263 TFLOP/s, 979 FLOP/byte at HBM", "bias", "gemm", 4, 3},
		{FloorView, "#bars polyline", "gemm (time): 520 us", "bias", "transpose<float, 32>", 17, 7},
	} {
		scene, err := s.Draw(c.view)
		require.NoError(t, err)
		seen := open(t, scene, c.marker, "GEMM")
		require.Len(t, seen.Rows, c.rows, c.view)
		require.Equal(t, c.hover, seen.Hover, c.view)
		require.True(t, seen.Left, "the words stay when the pointer leaves")
		require.Equal(t, c.first, seen.Up[0], c.view)
		require.Equal(t, c.last, seen.Down[0], c.view)
		require.Len(t, seen.Filtered, c.filtered, c.view)
		require.True(t, seen.Dimmed)
		require.Contains(t, seen.Count, " points")
		require.NotEqual(t, seen.Light, seen.Dark)
		require.Empty(t, seen.Network)
	}
}

// TestCloudsInBrowser: the page's script draws clouds, also where nothing but clouds is
// drawn, and finds their points.
func TestCloudsInBrowser(t *testing.T) {
	scene, err := crowd(2*cloudFrom, func(i int, d *Dot) {
		if d.Doubt = "too fast"; i%3 == 0 {
			d.Doubt = ""
		}
	}).Scene()
	require.NoError(t, err)
	seen := open(t, scene, "#data path", "fast")
	require.Contains(t, seen.Hover, "TFLOP/s")
	require.Equal(t, "1333 of 2000 points, the first 500 in the table", seen.Count)
}
