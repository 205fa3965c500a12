package ptx

import (
	"maps"
	"slices"
	"strings"
)

// NewestVersion is the newest version of PTX that the table of instructions has.
func NewestVersion() Version { return versions[len(versions)-1] }

// oldestSM is the oldest target that the compilers and drivers of the newest PTX take:
// CUDA 13, where PTX 9.0 came, left out what is before Turing.
const oldestSM = 75

// LeastTarget is the oldest target that has all of a module's instructions, in
// the newest version of PTX and that its compilers take: one that later GPUs run too where there is such,
// else of a family (f), else of one architecture (a). Resolve must have been
// through the module; the target it names itself is not looked at. The error is
// that of Check.
func LeastTarget(m *Module) (Target, error) {
	version, targets := m.Version, m.Targets
	defer func() { m.Version, m.Targets = version, targets }()
	m.Version = NewestVersion()
	others := slices.DeleteFunc(slices.Clone(targets), func(name string) bool { return strings.HasPrefix(name, "sm_") })
	var err error
	for _, suffix := range []byte{0, 'f', 'a'} {
		for _, sm := range slices.Sorted(maps.Keys(targetVersions)) {
			t := Target{sm, suffix}
			if _, ok := leastVersion(t); !ok || sm < oldestSM {
				continue
			}
			m.Targets = append([]string{t.String()}, others...)
			if err = Check(m); err == nil {
				return t, nil
			}
		}
	}
	return Target{}, err
}
