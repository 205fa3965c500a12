package bench

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
)

// CasePart is an address or a tensor map within an argument that is a struct.
type CasePart struct {
	At  int64 // bytes from the argument's start
	Arg CaseArg
}

// partFile is a part before its buffer is found.
type partFile struct {
	at  int64
	arg argFile
}

// readParts reads {"bytes": HEX, "with": [{"at": OFFSET, ...}, ...]}.
func (a *argFile) readParts(text []byte) error {
	var f struct {
		Bytes json.RawMessage              `json:"bytes"`
		With  []map[string]json.RawMessage `json:"with"`
	}
	err := decodeArgument(text, &f)
	if err != nil {
		return err
	}
	if f.Bytes == nil || len(f.With) == 0 {
		return errors.New(`want {"bytes": HEX, "with": [{"at": OFFSET, "ref": NAME}, ...]}`)
	}
	if a.bytes, err = hexBytes(f.Bytes); err != nil {
		return err
	}
	a.kind = "a struct"
	for i, keys := range f.With {
		p, err := readPart(keys)
		if err != nil {
			return fmt.Errorf("with[%d]: %w", i, err)
		}
		a.parts = append(a.parts, *p)
	}
	return nil
}

// readPart reads {"at": OFFSET} beside the keys of an argument.
func readPart(keys map[string]json.RawMessage) (*partFile, error) {
	p := new(partFile)
	at, ok := keys["at"]
	if !ok || json.Unmarshal(at, &p.at) != nil {
		return nil, errors.New(`want "at", a whole number of bytes`)
	}
	delete(keys, "at")
	text, err := json.Marshal(keys)
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(text, &p.arg); err != nil {
		return nil, err
	}
	if p.arg.ref == "" && p.arg.tensor == nil {
		return nil, errors.New("want a ref or a tensor_map; values stand in bytes")
	}
	return p, nil
}

// parts finds the buffers of an argument's parts.
func (b *caseBuilder) parts(f *argFile) (CaseArg, error) {
	a := CaseArg{Buffer: -1, Bytes: f.bytes, Kind: f.kind}
	for i := range f.parts {
		p := &f.parts[i]
		arg, err := b.arg(&p.arg, i, false)
		if err != nil {
			return CaseArg{}, fmt.Errorf("with[%d]: %w", i, err)
		}
		if size := arg.size(); p.at < 0 || p.at > int64(len(a.Bytes))-size {
			return CaseArg{}, fmt.Errorf("with[%d]: %s of %d bytes at %d: want it within the %d bytes", i, arg.Kind, size, p.at, len(a.Bytes))
		}
		if err := a.placed(p.at, &arg); err != nil {
			return CaseArg{}, fmt.Errorf("with[%d]: %w", i, err)
		}
		a.Parts = append(a.Parts, CasePart{p.at, arg})
	}
	return a, nil
}

// placed refuses a part that no struct of C has there: across another, or not aligned.
func (a *CaseArg) placed(at int64, arg *CaseArg) error {
	size, align := arg.size(), int64(addressSize)
	if arg.Map != nil {
		align = tensorMapAlign
	}
	if at%align != 0 {
		return fmt.Errorf("%s at %d: want a multiple of %d", arg.Kind, at, align)
	}
	for i := range a.Parts {
		p := &a.Parts[i]
		if other := p.Arg.size(); at < p.At+other && p.At < at+size {
			return fmt.Errorf("%s of %d bytes at %d: with[%d] has the %d bytes at %d: want parts beside each other", arg.Kind, size, at, i, other, p.At)
		}
	}
	return nil
}

// tensorMapAlign is the alignment of a CUtensorMap, in bytes (cuda.h).
const tensorMapAlign = 64

// size is how many bytes an argument passes.
func (a *CaseArg) size() int64 {
	switch {
	case a.Map != nil:
		return tensorMapSize
	case a.Buffer < 0:
		return int64(len(a.Bytes))
	}
	return addressSize
}

const addressSize = 8

// bytes is what an argument passes, its buffers being allocated.
func (r *caseRun) bytes(a *CaseArg) (Arg, error) {
	if a.Buffer < 0 {
		if a.Parts == nil {
			return a.Bytes, nil
		}
		all := bytes.Clone(a.Bytes)
		for i := range a.Parts {
			p := &a.Parts[i]
			b, err := r.bytes(&p.Arg)
			if err != nil {
				return nil, err
			}
			copy(all[p.At:], b)
		}
		return all, nil
	}
	at := r.buffers[a.Buffer].Address + uint64(a.Offset)
	if a.Map == nil {
		return U64(at), nil
	}
	m := *a.Map
	m.Address = at
	return r.dev.TensorMap(&m)
}
