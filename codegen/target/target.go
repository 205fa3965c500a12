// Package target describes GPUs: what code must be generated for (compute
// capability, limits) and what it can reach there (rates, bandwidths, clocks).
//
// All facts are data with sources: gpus.json holds a record per GPU,
// arch.json a record per compute capability and the history of PTX versions.
// Nothing else in kgen holds a peak, a bandwidth or a limit.
package target

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"sort"
	"sync"
)

//go:embed gpus.json
var gpusJSON []byte

//go:embed arch.json
var archJSON []byte

// Source says where a fact was read.
type Source struct {
	Title  string `json:"title"`
	Where  string `json:"where"`
	Kind   string `json:"kind,omitempty"`
	Read   bool   `json:"read"` // false: recalled or quoted by others, not read
	Caveat string `json:"caveat,omitempty"`
}

// table is both files, decoded and joined. It is built once and never changes.
type table struct {
	gpus     []*GPU // in the order of the file
	byKey    map[string]*GPU
	aliases  []string // sorted
	archs    []*Arch
	releases []PTXRelease
	sources  map[string]Source
	rates    map[string]map[Math]float64 // by rate key
}

type gpuFile struct {
	Sources map[string]Source `json:"sources"`
	Rates   map[string]struct {
		FMA     map[Math]float64 `json:"fma_per_sm_clk"`
		Sources []string         `json:"sources"`
		Note    string           `json:"note"`
	} `json:"rates"`
	GPUs []json.RawMessage `json:"gpus"`
}

type archFile struct {
	Sources  map[string]Source `json:"sources"`
	Aliases  map[string]string `json:"aliases"`
	Archs    []*Arch           `json:"archs"`
	Releases []PTXRelease      `json:"ptx_releases"`
}

// load panics on a broken table: both files are part of the program.
var load = sync.OnceValue(func() *table {
	t, err := decode(gpusJSON, archJSON)
	if err != nil {
		panic(fmt.Sprintf("target: embedded tables: %v", err))
	}
	return t
})

func decode(gpus, archs []byte) (*table, error) {
	var gf gpuFile
	if err := json.Unmarshal(gpus, &gf); err != nil {
		return nil, fmt.Errorf("gpus.json: %w", err)
	}
	var af archFile
	if err := json.Unmarshal(archs, &af); err != nil {
		return nil, fmt.Errorf("arch.json: %w", err)
	}
	t := &table{byKey: map[string]*GPU{}, archs: af.Archs, releases: af.Releases, sources: map[string]Source{}, rates: map[string]map[Math]float64{}}
	for key, r := range gf.Rates {
		t.rates[key] = r.FMA
	}
	for _, m := range []map[string]Source{gf.Sources, af.Sources} {
		for k, s := range m {
			t.sources[k] = s
		}
	}
	for _, raw := range gf.GPUs {
		g := &GPU{raw: raw}
		if err := json.Unmarshal(raw, g); err != nil {
			return nil, fmt.Errorf("gpus.json: GPU %d: %w", len(t.gpus), err)
		}
		if err := g.join(t.archs, gf.Rates[g.RateKey].FMA); err != nil {
			return nil, err
		}
		t.gpus = append(t.gpus, g)
		t.byKey[normalise(g.ID)] = g
	}
	if err := t.addAliases(af.Aliases); err != nil {
		return nil, err
	}
	return t, t.findL2()
}

func (t *table) addAliases(aliases map[string]string) error {
	for name := range aliases {
		t.aliases = append(t.aliases, name)
	}
	sort.Strings(t.aliases)
	for _, name := range t.aliases {
		g, ok := t.byKey[normalise(aliases[name])]
		if !ok || g.ID != aliases[name] {
			return fmt.Errorf("arch.json: alias %q names no GPU: %q", name, aliases[name])
		}
		if old, ok := t.byKey[normalise(name)]; ok && old != g {
			return fmt.Errorf("arch.json: alias %q means both %s and %s", name, old.ID, g.ID)
		}
		t.byKey[normalise(name)] = g
	}
	return nil
}

// Sources returns the titles behind the short source names of a record.
// Treat the map as read-only.
func Sources() map[string]Source { return load().sources }
