package target

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"sort"
	"strings"
	"sync"
	"unicode"

	"github.com/kgen-dev/kgen/internal/jsontext"
	"github.com/kgen-dev/kgen/internal/userfile"
)

// maxFile bounds what ReadFile reads: a record has a few kilobytes.
const maxFile = 1 << 20

// ReadFile reads a GPU of the user's own: a JSON object with the keys of
// gpus.json. Needed are id, compute_capability, sm_count, clock_mhz and
// bandwidth_gbs. Rates are those of rate_key, or, if that is missing, of a GPU
// of the same compute capability; fma_per_sm_clk replaces them kind by kind.
// Peaks in peak_dense_tflops must agree with what rates and clocks give.
// Limits that are missing are those of such a GPU. The errors name file and
// line.
//
// A record under the id of a known GPU that says something else gets an id of
// its own, so that no result is taken for the known GPU's.
func ReadFile(file string) (*GPU, error) {
	data, err := userfile.Read(file, maxFile)
	if err != nil {
		return nil, err
	}
	g, err := parseGPU(data)
	if err != nil {
		return nil, fmt.Errorf("%s:%w", file, err)
	}
	return g, nil
}

// at gives an error the line of a key, or 1.
func at(data []byte, key string, format string, args ...any) error {
	line := 1
	if i := bytes.Index(data, []byte(`"`+key+`"`)); key != "" && i >= 0 {
		line = jsontext.LineAt(data, int64(i))
	}
	return &jsontext.Error{Line: line, Err: fmt.Errorf(format, args...)}
}

// parseGPU reads a record of the user's.
func parseGPU(data []byte) (*GPU, error) {
	var record map[string]json.RawMessage
	g := &GPU{}
	var own struct {
		Rates map[Math]float64 `json:"fma_per_sm_clk"`
	}
	for _, into := range []any{&record, g, &own} {
		err := json.Unmarshal(data, into)
		var cc *CCError
		switch {
		case errors.As(err, &cc):
			return nil, at(data, "compute_capability", "%w", cc)
		case err != nil:
			return nil, jsontext.Locate(data, err)
		}
	}
	if record == nil {
		return nil, at(data, "", "want an object with the keys of a GPU, such as id and sm_count")
	}
	if _, _, err := jsontext.Members(data); err != nil { // a key twice
		return nil, err
	}
	for _, key := range sortedKeys(record) {
		if !slices.Contains(recordKeys(), key) {
			return nil, at(data, key, "unknown key %q: want those of gpus.json, as kgen gpus h100 --json prints them", key)
		}
	}
	if err := g.checkOwn(data); err != nil {
		return nil, err
	}
	if err := g.complete(data, own.Rates); err != nil {
		return nil, err
	}
	g.raw = withoutAliases(record)
	if known, ok := load().byKey[normalise(g.ID)]; ok {
		if sameJSON(known.raw, g.raw) {
			return known, nil
		}
		g.ID = fmt.Sprintf("%s-%x", g.ID, sha256.Sum256(g.raw))[:len(g.ID)+9]
	}
	return g, nil
}

// Figures bound those of a GPU in gpus.json's units, and rates in GB/s: none is less or
// more, and none will be for long.
const (
	LeastFigure = 1e-3
	MostFigure  = 1e7
)

// isFigure says whether a number can be a figure of a GPU.
func isFigure(x float64) bool { return x >= LeastFigure && x <= MostFigure }

// checkOwn refuses a record that lacks what everything else is computed from.
func (g *GPU) checkOwn(data []byte) error {
	if g.ID == "" || len(g.ID) > maxName || strings.ContainsFunc(g.ID, func(r rune) bool { return !strings.ContainsRune("abcdefghijklmnopqrstuvwxyz0123456789-_.", r) }) {
		return at(data, "id", "id %q: want small letters, digits and dashes", g.ID)
	}
	if len(g.MemoryType) > maxName || strings.ContainsFunc(g.MemoryType, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) }) {
		return at(data, "memory_type", "memory_type %.40q: want letters and digits such as GDDR6X", g.MemoryType)
	}
	for _, n := range []struct {
		key    string
		value  float64
		needed bool
	}{
		{"sm_count", float64(g.SMs), true},
		{"clock_mhz", g.ClockMHz, true},
		{"bandwidth_gbs", g.BandwidthGBs, true},
		{"tensor_clock_mhz", g.TensorClockMHz, false},
		{"max_clock_mhz_device", g.MaxClockMHz, false},
		{"bandwidth_device_gbs", g.BandwidthDevice, false},
		{"memory_gb", g.MemoryGB, false},
		{"memory_gib_device", g.MemoryGiB, false},
		{"l2_mib", g.L2MiB, false},
		{"nvlink_gbs", g.NVLinkGBs, false},
		{"smem_per_sm_kib", float64(g.SharedPerSMKiB), false},
		{"smem_per_block_optin_kib", float64(g.SharedPerBlockKiB), false},
		{"registers_per_sm", float64(g.RegistersPerSM), false},
		{"max_warps_per_sm", float64(g.MaxWarpsPerSM), false},
		{"max_blocks_per_sm", float64(g.MaxBlocksPerSM), false},
	} {
		if n.needed && n.value == 0 && !bytes.Contains(data, []byte(`"`+n.key+`"`)) {
			return at(data, "", "%s is missing: want a number from %g to %g", n.key, LeastFigure, MostFigure)
		}
		if !isFigure(n.value) && (n.needed || n.value != 0) {
			return at(data, n.key, "%s is %g: want a number from %g to %g", n.key, n.value, LeastFigure, MostFigure)
		}
	}
	for _, b := range g.L2Bandwidth {
		if !isFigure(b.GBs) {
			return at(data, "l2_bandwidth", "l2_bandwidth of %g GB/s: want a number from %g to %g", b.GBs, LeastFigure, MostFigure)
		}
	}
	return nil
}

// complete joins the record with what kgen knows of its architecture.
func (g *GPU) complete(data []byte, own map[Math]float64) error {
	t := load()
	var like *GPU
	for _, k := range t.gpus {
		if k.CC == g.CC && (like == nil || k.RateKey == g.RateKey) {
			like = k
		}
	}
	if like == nil {
		return at(data, "compute_capability", "compute_capability %s: kgen knows none of it", g.CC)
	}
	if g.RateKey == "" {
		g.RateKey = like.RateKey
	}
	base, ok := t.rates[g.RateKey]
	if !ok {
		return at(data, "rate_key", "rate_key %q: want one of %s", g.RateKey, strings.Join(sortedKeys(t.rates), ", "))
	}
	rates := map[Math]float64{}
	for m, r := range base {
		rates[m] = r
	}
	for _, m := range sortedKeys(own) {
		if !slices.Contains(Maths(), m) || own[m] != 0 && !isFigure(own[m]) {
			return at(data, string(m), "fma_per_sm_clk: %s %g: want a kind of arithmetic of gpus.json and a rate", m, own[m])
		}
		if rates[m] = own[m]; own[m] == 0 {
			delete(rates, m)
		}
	}
	if g.Name == "" {
		g.Name = g.ID
	}
	if g.TensorClockMHz == 0 {
		g.TensorClockMHz = g.ClockMHz
	}
	for _, l := range []struct{ own, known *int }{
		{&g.SharedPerSMKiB, &like.SharedPerSMKiB}, {&g.SharedPerBlockKiB, &like.SharedPerBlockKiB},
		{&g.RegistersPerSM, &like.RegistersPerSM}, {&g.MaxWarpsPerSM, &like.MaxWarpsPerSM}, {&g.MaxBlocksPerSM, &like.MaxBlocksPerSM},
	} {
		if *l.own == 0 {
			*l.own = *l.known
		}
	}
	if err := g.join(t.archs, rates); err != nil {
		return at(data, "", "%w", err)
	}
	if err := g.checkPeaks(data); err != nil {
		return err
	}
	return t.giveL2(g)
}

// mostApart is how far a peak that a record states may be from the one that its rate and
// clock give: those that vendors print are rounded, and up to 5 % away.
const mostApart = 0.1

// checkPeaks refuses stated peaks that contradict those that are computed with.
func (g *GPU) checkPeaks(data []byte) error {
	for _, m := range sortedKeys(g.PublishedTFLOPS) {
		stated := g.PublishedTFLOPS[m]
		p, ok := g.Peak(m)
		switch {
		case !slices.Contains(Maths(), m):
			return at(data, "peak_dense_tflops", "peak_dense_tflops: %s %g: want a kind of arithmetic of gpus.json", m, stated)
		case !ok:
			return at(data, "peak_dense_tflops", "peak_dense_tflops: %s %g: no rate of it is known: want one in fma_per_sm_clk", m, stated)
		case !(math.Abs(stated-p.TFLOPS) <= mostApart*p.TFLOPS):
			return at(data, "peak_dense_tflops", "peak_dense_tflops: %s %g: %d SMs x %g FMA x 2 x %g MHz are %.4g: want that within %g %%, or the rate in fma_per_sm_clk",
				m, stated, g.SMs, p.Rate, p.ClockMHz, p.TFLOPS, mostApart*100)
		}
	}
	return nil
}

// recordKeys are the keys that a record may have.
var recordKeys = sync.OnceValue(func() []string {
	keys := map[string]bool{"aliases": true, "fma_per_sm_clk": true}
	for _, g := range load().gpus {
		var record map[string]json.RawMessage
		if err := json.Unmarshal(g.raw, &record); err != nil {
			panic(fmt.Sprintf("target: embedded tables: %v", err))
		}
		for k := range record {
			keys[k] = true
		}
	}
	return sortedKeys(keys)
})

func sortedKeys[K ~string, V any](m map[K]V) []K {
	keys := make([]K, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	sort.Slice(keys, func(i, j int) bool { return keys[i] < keys[j] })
	return keys
}

// withoutAliases is the record as a canonical text, less the aliases that kgen
// gpus adds.
func withoutAliases(record map[string]json.RawMessage) json.RawMessage {
	delete(record, "aliases")
	text, err := json.Marshal(record)
	if err != nil {
		panic(fmt.Sprintf("target: a record that was read cannot be written: %v", err))
	}
	return text
}

func sameJSON(known, own json.RawMessage) bool {
	var record map[string]json.RawMessage
	if err := json.Unmarshal(known, &record); err != nil {
		return false
	}
	return bytes.Equal(withoutAliases(record), own)
}
