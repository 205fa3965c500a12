package bench

import "fmt"

// Provenance says where a number is from.
type Provenance uint8

// The provenances.
const (
	Measured  Provenance = iota + 1 // a GPU's clock or counter
	Counted                         // the virtual machine counted it
	Predicted                       // the cost model
	Formula                         // by hand: operations and least bytes
)

var provenanceNames = [...]string{Measured: "measured", Counted: "counted", Predicted: "predicted", Formula: "formula"}

func (p Provenance) String() string {
	if p < Measured || p > Formula {
		return "unknown"
	}
	return provenanceNames[p]
}

// MarshalText gives the provenance's word.
func (p Provenance) MarshalText() ([]byte, error) {
	if p < Measured || p > Formula {
		return nil, fmt.Errorf("provenance %d: want measured, counted, predicted or formula", p)
	}
	return []byte(p.String()), nil
}

// UnmarshalText reads a provenance's word.
func (p *Provenance) UnmarshalText(text []byte) error {
	for q := Measured; q <= Formula; q++ {
		if string(text) == q.String() {
			*p = q
			return nil
		}
	}
	return fmt.Errorf("provenance %q: want measured, counted, predicted or formula", text)
}
