// Package cubin reads what a compiled kernel needs of the hardware from the
// ELF file that ptxas or NVRTC writes.
//
// The container's section types, attribute numbers and flag bits are not
// published; they are as `cuobjdump -elf` of CUDA 13 names them, and a test
// compares what is read with what ptxas -v says for every architecture.
package cubin

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
)

// ErrFormat is wrapped by the errors of [Parse].
var ErrFormat = errors.New("not a cubin")

const (
	machineCUDA = elf.Machine(190) // EM_CUDA
	entryPoint  = 0x10             // STO_CUDA_ENTRY: the function is a kernel

	// Of the ELF64 header.
	headerBytes = 64
	versionAt   = 0x14
	flagsAt     = 0x30

	newABI = 8 // of CUDA 13

	// From sm_90 on the section of a kernel's shared memory counts the first
	// KiB, which the system keeps for itself and ptxas -v leaves out.
	reservedShared   = 1024
	reservedSharedCC = 90
)

// File is a parsed cubin.
type File struct {
	CC      int // compute capability times ten: 80, 90, 120
	Kernels []Kernel
}

// Kernel is what one entry point needs. Sizes are in bytes.
type Kernel struct {
	Name      string
	Registers int // a thread, at launch
	Barriers  int // named barriers, numbers 0 to Barriers-1
	// SharedBytes is static shared memory a block; dynamic shared memory is
	// an argument of the launch.
	SharedBytes int
	// StackBytes is local memory a thread, called functions included.
	StackBytes int
	// SpillStoreBytes and SpillLoadBytes add up the instructions that move
	// spilled registers, as ptxas -v does. SpillsKnown is false for a kernel
	// with local memory by ptxas before CUDA 12.9, which did not mark them.
	SpillsKnown     bool
	SpillStoreBytes int
	SpillLoadBytes  int
	// LocalStores and LocalLoads count instructions, spills among them.
	LocalStores int
	LocalLoads  int
	// Units counts the instructions of tensor cores and asynchronous copies, the most
	// frequent first: HMMA, HGMMA, LDGSTS, UTMALDG and their like.
	Units     []OpCount
	CodeBytes int
	// MaxThreads is the largest block that .maxntid (__launch_bounds__) or
	// .reqntid allows, by dimension; zero where neither is stated.
	MaxThreads [3]int
	ParamBytes int     // all parameters with the padding between them
	Params     []Param // in order
}

// Param is one parameter's place in the block of parameters.
type Param struct{ Offset, Size int }

// Kernel finds a kernel by name, or is nil.
func (f *File) Kernel(name string) *Kernel {
	if i := slices.IndexFunc(f.Kernels, func(k Kernel) bool { return k.Name == name }); i >= 0 {
		return &f.Kernels[i]
	}
	return nil
}

// Parse reads a cubin. The kernels are in the order of the file's sections.
func Parse(image []byte) (*File, error) {
	r, err := open(image)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrFormat, err)
	}
	f := &File{CC: r.cc}
	for i, s := range r.elf.Sections {
		name, isText := strings.CutPrefix(s.Name, ".text.")
		sym, isKernel := r.entries[elf.SectionIndex(i)]
		if !isText || !isKernel {
			continue
		}
		k, err := r.kernel(name, s, sym)
		if err != nil {
			return nil, fmt.Errorf("%w: kernel %s: %w", ErrFormat, name, err)
		}
		f.Kernels = append(f.Kernels, k)
	}
	return f, nil
}

// reader is a cubin being parsed.
type reader struct {
	image   []byte
	elf     *elf.File
	cc      int
	named   map[string]*elf.Section
	entries map[elf.SectionIndex]uint32 // section of a kernel's code -> its symbol's number
	global  map[uint32]resources        // by symbol's number
}

// resources are what the attributes of the whole file say about a function.
type resources struct{ registers, stack int }

func open(image []byte) (*reader, error) {
	if len(image) < headerBytes {
		return nil, fmt.Errorf("%d bytes: want an ELF header's %d at least", len(image), headerBytes)
	}
	// Before CUDA 13 the file's version is the toolkit's, such as 124 for 12.4.
	image = bytes.Clone(image)
	binary.LittleEndian.PutUint32(image[versionAt:], uint32(elf.EV_CURRENT))
	f, err := elf.NewFile(bytes.NewReader(image))
	if err != nil {
		return nil, err
	}
	if f.Machine != machineCUDA || f.Class != elf.ELFCLASS64 || f.ByteOrder.String() != "LittleEndian" {
		return nil, fmt.Errorf("%v for %v: want 64-bit little-endian ELF for machine %d", f.Class, f.Machine, machineCUDA)
	}
	r := &reader{image: image, elf: f, cc: computeCapability(image, f), named: map[string]*elf.Section{}}
	if err := r.checkSections(); err != nil {
		return nil, err
	}
	symbols, err := f.Symbols()
	if err != nil && !errors.Is(err, elf.ErrNoSymbols) {
		return nil, err
	}
	r.entries = map[elf.SectionIndex]uint32{}
	for i, s := range symbols {
		if elf.ST_TYPE(s.Info) == elf.STT_FUNC && s.Other&entryPoint != 0 {
			r.entries[s.Section] = uint32(i) + 1 // Symbols leaves out number 0
		}
	}
	return r, r.readGlobal()
}

// computeCapability decodes the file's flags, whose layout changed with
// the ABI. debug/elf does not keep the flags.
func computeCapability(image []byte, f *elf.File) int {
	flags := binary.LittleEndian.Uint32(image[flagsAt:])
	if f.ABIVersion >= newABI {
		return int(flags >> 8 & 0xff)
	}
	return int(flags & 0xff)
}

// checkSections bounds the work that a hostile file can ask for: the sections
// lie in the file, and together they are no larger than it.
func (r *reader) checkSections() error {
	var total uint64
	for _, s := range r.elf.Sections {
		if s.Flags&elf.SHF_COMPRESSED != 0 {
			return fmt.Errorf("section %s is compressed", s.Name)
		}
		if s.Size > math.MaxInt32 {
			return fmt.Errorf("section %s has %d bytes", s.Name, s.Size)
		}
		r.named[s.Name] = s
		if s.Type == elf.SHT_NOBITS || s.Type == elf.SHT_NULL {
			continue
		}
		if s.Offset > uint64(len(r.image)) || s.Size > uint64(len(r.image))-s.Offset {
			return fmt.Errorf("section %s ends at byte %d of %d", s.Name, s.Offset+s.Size, len(r.image))
		}
		if total += s.Size; total > uint64(len(r.image)) {
			return fmt.Errorf("section %s overlaps others", s.Name)
		}
	}
	return nil
}

// data is a section's contents; nil where there are none.
func (r *reader) data(s *elf.Section) []byte {
	if s == nil || s.Type == elf.SHT_NOBITS || s.Type == elf.SHT_NULL {
		return nil
	}
	return r.image[s.Offset : s.Offset+s.Size]
}

func (r *reader) kernel(name string, text *elf.Section, symbol uint32) (Kernel, error) {
	g := r.global[symbol]
	k := Kernel{Name: name, Registers: g.registers, StackBytes: g.stack, CodeBytes: int(text.Size)}
	if s := r.named[".nv.shared."+name]; s != nil {
		k.SharedBytes = int(s.Size)
		if r.cc >= reservedSharedCC && k.SharedBytes >= reservedShared {
			k.SharedBytes -= reservedShared
		}
	}
	k.Barriers = int(text.Flags >> 20 & 0x7f) // since CUDA 12.9 an attribute
	code := r.data(text)
	k.LocalStores, k.LocalLoads = countLocal(code)
	k.Units = countUnits(code)
	k.SpillsKnown = r.elf.ABIVersion >= newABI || k.LocalStores+k.LocalLoads == 0
	return k, k.readAttributes(r.data(r.named[".nv.info."+name]), code)
}
