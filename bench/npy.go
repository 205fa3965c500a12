package bench

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/bits"
	"strconv"
	"strings"

	"github.com/kgen-dev/kgen/codegen/atomicfile"
	"github.com/kgen-dev/kgen/internal/userfile"
)

// MaxNPYBytes is the largest .npy file that is read: 4 GiB.
const MaxNPYBytes = 1 << 32

// Array is what a .npy file holds: elements in C order, little-endian.
type Array struct {
	DType string // NumPy's name without byte order: "f4", "i8", "u1"
	Shape []int64
	Data  []byte
}

// Count is the number of elements.
func (a *Array) Count() int64 {
	n := int64(1)
	for _, d := range a.Shape {
		n *= d
	}
	return n
}

// Format versions 1 to 3 differ in the header's length field and encoding:
// numpy.lib.format.
const npyMagic = "\x93NUMPY"

const (
	maxNPYHeader = 1 << 16
	maxNPYDims   = 32 // NumPy's own limit
)

// ReadNPYFile reads a .npy file.
func ReadNPYFile(name string) (*Array, error) {
	data, err := userfile.Read(name, MaxNPYBytes)
	if err != nil {
		return nil, err
	}
	a, err := DecodeNPY(data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return a, nil
}

// DecodeNPY reads a .npy file's bytes. The array's data is a part of file.
func DecodeNPY(file []byte) (*Array, error) {
	header, data, err := splitNPY(file)
	if err != nil {
		return nil, err
	}
	h, err := parseNPYHeader(header)
	if err != nil {
		return nil, fmt.Errorf(".npy header %q: %w", clip(header), err)
	}
	dtype, size, err := npyDType(h.descr)
	if err != nil {
		return nil, err
	}
	if h.fortran && len(h.shape) > 1 {
		return nil, errors.New("array in Fortran order: want C order (numpy.ascontiguousarray)")
	}
	need := uint64(size)
	for _, d := range h.shape {
		hi, lo := bits.Mul64(need, uint64(d))
		if hi != 0 || lo > MaxNPYBytes {
			return nil, fmt.Errorf("shape %v of %d-byte elements: want at most %d bytes", h.shape, size, int64(MaxNPYBytes))
		}
		need = lo
	}
	if uint64(len(data)) != need {
		return nil, fmt.Errorf("%d bytes of data: shape %v of %s wants %d", len(data), h.shape, h.descr, need)
	}
	return &Array{DType: dtype, Shape: h.shape, Data: data}, nil
}

func clip(s string) string {
	if len(s) > 80 {
		return s[:80] + "..."
	}
	return s
}

// splitNPY cuts a file into its header's text and its data.
func splitNPY(file []byte) (header string, data []byte, err error) {
	if len(file) < 10 || string(file[:6]) != npyMagic {
		return "", nil, errors.New("no .npy file: want one written by numpy.save")
	}
	var start, length int
	switch version := file[6]; version {
	case 1:
		start, length = 10, int(binary.LittleEndian.Uint16(file[8:]))
	case 2, 3:
		if len(file) < 12 {
			return "", nil, errors.New(".npy file ends in its header")
		}
		start = 12
		if n := binary.LittleEndian.Uint32(file[8:]); n <= maxNPYHeader {
			length = int(n)
		} else {
			return "", nil, fmt.Errorf(".npy header of %d bytes: want at most %d", n, maxNPYHeader)
		}
	default:
		return "", nil, fmt.Errorf(".npy version %d: want 1, 2 or 3", version)
	}
	if len(file)-start < length {
		return "", nil, errors.New(".npy file ends in its header")
	}
	return string(file[start : start+length]), file[start+length:], nil
}

// npyDType splits a description such as "<f4" and says how long an element is.
func npyDType(descr string) (dtype string, size int, err error) {
	order, dtype := descr[:min(1, len(descr))], descr[min(1, len(descr)):]
	switch dtype {
	case "b1":
		dtype, size = "u1", 1
	case "i1", "u1":
		size = 1
	case "f2", "i2", "u2":
		size = 2
	case "f4", "i4", "u4":
		size = 4
	case "f8", "i8", "u8":
		size = 8
	default:
		return "", 0, fmt.Errorf("element type %q: want a float, signed or unsigned number of 1 to 8 bytes", clip(descr))
	}
	if order != "<" && !(size == 1 && (order == "|" || order == "=")) {
		return "", 0, fmt.Errorf("element type %q: want little-endian (\"<%s\")", clip(descr), dtype)
	}
	return dtype, size, nil
}

type npyHeader struct {
	descr   string
	fortran bool
	shape   []int64
}

// parseNPYHeader reads the Python literal
// {'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }.
func parseNPYHeader(text string) (h npyHeader, err error) {
	p := npyParser{rest: text}
	p.want("{")
	seen := map[string]bool{}
	for p.err == nil && !p.accept("}") {
		key := p.str()
		p.want(":")
		if seen[key] {
			p.failf("key %q twice", key)
		}
		seen[key] = true
		switch key {
		case "descr":
			h.descr = p.str()
		case "fortran_order":
			h.fortran = p.boolean()
		case "shape":
			h.shape = p.tuple()
		default:
			p.failf("key %q: want descr, fortran_order and shape", clip(key))
		}
		if !p.accept(",") {
			p.want("}")
			break
		}
	}
	if p.err == nil && strings.TrimSpace(p.rest) != "" {
		p.failf("text after the header's end")
	}
	for _, key := range []string{"descr", "fortran_order", "shape"} {
		if !seen[key] {
			p.failf("no %s", key)
		}
	}
	return h, p.err
}

// npyParser reads the few Python literals that a header has.
type npyParser struct {
	rest string
	err  error
}

func (p *npyParser) failf(format string, args ...any) {
	if p.err == nil {
		p.err = fmt.Errorf(format, args...)
	}
}

func (p *npyParser) accept(s string) bool {
	p.rest = strings.TrimLeft(p.rest, " \t\n\r")
	rest, ok := strings.CutPrefix(p.rest, s)
	if ok && p.err == nil {
		p.rest = rest
	}
	return ok && p.err == nil
}

func (p *npyParser) want(s string) {
	if !p.accept(s) {
		p.failf("found %q: want %q", clip(p.rest), s)
	}
}

func (p *npyParser) str() string {
	for _, quote := range []string{"'", `"`} {
		if p.accept(quote) {
			s, rest, ok := strings.Cut(p.rest, quote)
			if !ok {
				p.failf("text without its end")
			}
			p.rest = rest
			return s
		}
	}
	p.failf("found %q: want text in quotes", clip(p.rest))
	return ""
}

func (p *npyParser) boolean() bool {
	if p.accept("True") {
		return true
	}
	p.want("False")
	return false
}

func (p *npyParser) tuple() []int64 {
	shape := []int64{}
	p.want("(")
	for p.err == nil && !p.accept(")") {
		p.rest = strings.TrimLeft(p.rest, " ")
		n := len(p.rest) - len(strings.TrimLeft(p.rest, "0123456789"))
		v, err := strconv.ParseInt(p.rest[:n], 10, 63)
		if err != nil {
			p.failf("extent %q: want a whole number", clip(p.rest))
			break
		}
		p.rest = strings.TrimPrefix(p.rest[n:], "L") // Python 2 wrote 3L
		if shape = append(shape, v); len(shape) > maxNPYDims {
			p.failf("more than %d dimensions", maxNPYDims)
		}
		if !p.accept(",") {
			p.want(")")
			break
		}
	}
	return shape
}

// EncodeNPY writes an array as a .npy file of version 1.
func EncodeNPY(w io.Writer, a *Array) error {
	order := "<"
	if strings.HasSuffix(a.DType, "1") {
		order = "|"
	}
	var shape strings.Builder
	for i, d := range a.Shape {
		if i > 0 {
			shape.WriteString(", ")
		}
		fmt.Fprint(&shape, d)
	}
	if len(a.Shape) == 1 {
		shape.WriteByte(',')
	}
	header := fmt.Sprintf("{'descr': '%s%s', 'fortran_order': False, 'shape': (%s), }", order, a.DType, shape.String())
	// NumPy pads so that the data begins at a multiple of 64 bytes.
	pad := 64 - (10+len(header)+1)%64
	header += strings.Repeat(" ", pad%64) + "\n"
	var b bytes.Buffer
	b.WriteString(npyMagic + "\x01\x00")
	b.Write(binary.LittleEndian.AppendUint16(nil, uint16(len(header))))
	b.WriteString(header)
	if _, err := w.Write(b.Bytes()); err != nil {
		return err
	}
	_, err := w.Write(a.Data)
	return err
}

// NPYFile is a .npy file to write.
func NPYFile(name string, a *Array) atomicfile.File {
	return atomicfile.File{Path: name, Write: func(w io.Writer) error { return EncodeNPY(w, a) }}
}

// WriteNPYFile writes an array to a .npy file, whole or not at all.
func WriteNPYFile(name string, a *Array) error { return atomicfile.Write(NPYFile(name, a)) }
