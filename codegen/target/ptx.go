package target

import (
	"encoding/json"
	"fmt"
)

// PTXVersion is the number after .version in a PTX module.
type PTXVersion struct{ Major, Minor int }

// ParsePTXVersion reads "8.0".
func ParsePTXVersion(s string) (PTXVersion, error) {
	v, err := parseDotted(s)
	if err != nil {
		return PTXVersion{}, fmt.Errorf("PTX version %q: want major.minor, like 8.0", s)
	}
	return PTXVersion(v), nil
}

func (v PTXVersion) String() string { return fmt.Sprintf("%d.%d", v.Major, v.Minor) }

// Less reports whether v is older than w.
func (v PTXVersion) Less(w PTXVersion) bool {
	return v.Major < w.Major || v.Major == w.Major && v.Minor < w.Minor
}

// MarshalJSON writes "8.0".
func (v PTXVersion) MarshalJSON() ([]byte, error) { return json.Marshal(v.String()) }

// UnmarshalJSON reads "8.0".
func (v *PTXVersion) UnmarshalJSON(b []byte) error {
	var s string
	if err := json.Unmarshal(b, &s); err != nil {
		return err
	}
	w, err := ParsePTXVersion(s)
	*v = w
	return err
}

// PTXRelease says with what a PTX version first came.
// Source: PTX ISA, release notes, PTX release history.
type PTXRelease struct {
	PTX    PTXVersion `json:"ptx"`
	CUDA   string     `json:"cuda"`
	Driver int        `json:"driver"` // least driver branch that loads it: 580 for r580
}

// PTXReleases returns the history from 6.0 on, oldest first.
func PTXReleases() []PTXRelease {
	return append([]PTXRelease(nil), load().releases...)
}

// LeastDriver returns the least driver branch that loads a PTX version.
// A version older than the table needs no more than the table's oldest.
func LeastDriver(v PTXVersion) (int, error) {
	releases := load().releases
	for _, r := range releases {
		if !r.PTX.Less(v) {
			return r.Driver, nil
		}
	}
	newest := releases[len(releases)-1]
	return 0, fmt.Errorf("PTX version %s: want at most %s, the newest known (CUDA %s)", v, newest.PTX, newest.CUDA)
}

// LeastPTX returns the first PTX version that knows a target ("sm_90a").
func LeastPTX(arch string) (PTXVersion, error) {
	for _, a := range load().archs {
		switch arch {
		case a.Target:
			return a.TargetPTX, nil
		case a.Specific:
			if arch != "" {
				return a.SpecificPTX, nil
			}
		}
	}
	return PTXVersion{}, fmt.Errorf("target %q: want one of %v", arch, Archs())
}

// Archs returns the targets that GPUs in the table have, oldest first.
func Archs() []string {
	var out []string
	for _, a := range load().archs {
		out = append(out, a.Target)
		if a.Specific != "" {
			out = append(out, a.Specific)
		}
	}
	return out
}
