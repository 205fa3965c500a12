package bench

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"unicode"

	"github.com/kgen-dev/kgen/bench/numcheck"
	"github.com/kgen-dev/kgen/internal/jsontext"
	"github.com/kgen-dev/kgen/internal/userfile"
)

// caseFile is a case's JSON.
type caseFile struct {
	PTX       string             `json:"ptx"`
	Tolerance numcheck.Tolerance `json:"tolerance"`
	Fault     *string            `json:"fault"`
	Note      string             `json:"note"`

	launchFile              // one launch, or
	Buffers    []bufferFile `json:"buffers"` // named buffers
	Launches   []launchFile `json:"launches"`
}

type launchFile struct {
	Kernel        string    `json:"kernel"`
	Grid          []int64   `json:"grid"`
	Block         []int64   `json:"block"`
	Cluster       []int64   `json:"cluster"`
	DynamicShared int64     `json:"dynamic_shared"`
	Args          []argFile `json:"args"`
}

// bufferFile is a buffer: from a file, or never written.
type bufferFile struct {
	Name          string `json:"name"`
	Buffer        string `json:"buffer"`
	Uninitialised *int64 `json:"uninitialised"`
	Type          string `json:"type"`
	Want          string `json:"want"`
	Align         int64  `json:"align"`
}

// argFile is one argument before its buffer's files are read.
type argFile struct {
	buffer *bufferFile
	ref    string
	offset int64
	kind   string
	bytes  []byte
	tensor *tensorMapFile
	parts  []partFile // within bytes
}

func parseCase(text []byte, dir string) (*Case, error) {
	var f caseFile
	if err := decodeStrict(text, &f); err != nil {
		return nil, err
	}
	if f.PTX == "" {
		return nil, errors.New(`no "ptx": want the PTX file's name`)
	}
	if err := f.Tolerance.Validate(); err != nil {
		return nil, err
	}
	c := &Case{PTXFile: beside(dir, f.PTX), Tolerance: f.Tolerance, Note: f.Note}
	var err error
	if f.Fault != nil {
		if c.Fault, err = ParseFaultClass(*f.Fault); err != nil {
			return nil, err
		}
	}
	if c.PTX, err = userfile.Read(c.PTXFile, maxPTXBytes); err != nil {
		return nil, err
	}
	b := caseBuilder{c: c, dir: dir, named: map[string]int{}}
	if err := b.buffers(f.Buffers); err != nil {
		return nil, err
	}
	return c, b.launches(&f)
}

// beside is a file that a case in dir names.
func beside(dir, file string) string {
	if filepath.IsAbs(file) {
		return file
	}
	return filepath.Join(dir, file)
}

// decodeStrict decodes one JSON value and refuses unknown keys and anything
// after it. Errors say the line and column.
func decodeStrict(text []byte, into any) error {
	return decodeAt(text, into, func(offset int64) string { return place(text, offset) + ": " })
}

// decodeArgument is decodeStrict for a part of the text, whose place in it is
// not known.
func decodeArgument(text []byte, into any) error {
	return decodeAt(text, into, func(int64) string { return "" })
}

func decodeAt(text []byte, into any, place func(offset int64) string) error {
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	err := d.Decode(into)
	if err == nil {
		if _, err = d.Token(); err != io.EOF {
			return fmt.Errorf("%stext after the case's end", place(d.InputOffset()))
		}
		if again := jsontext.Repeats(text, true); again != nil {
			return fmt.Errorf("%skey %q twice in one object: want it once", place(again.Second), clip(again.Key))
		}
		return nil
	}
	var syntax *json.SyntaxError
	var wrong *json.UnmarshalTypeError
	switch {
	case errors.As(err, &syntax) && !bytes.HasPrefix(bytes.TrimSpace(text), []byte("{")):
		return fmt.Errorf("%sa case is a JSON object: want {\"ptx\": ..., \"kernel\": ..., \"grid\": ..., \"block\": ..., \"args\": ...}", place(syntax.Offset-1))
	case errors.As(err, &syntax):
		return fmt.Errorf("%s%w", place(syntax.Offset-1), err)
	case errors.As(err, &wrong):
		return fmt.Errorf("%s%sfound %s: want %s", place(wrong.Offset), fieldName(wrong, into), wrong.Value, kindName(wrong.Type))
	case errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF):
		return fmt.Errorf("%sthe text ends early: want a JSON object", place(int64(len(text))))
	}
	return errors.New(strings.TrimPrefix(err.Error(), "json: ") + wantedFields(text, into))
}

// wantedFields lists the keys that an object takes if it is one of its own that
// it does not, and not one of an object in it.
func wantedFields(text []byte, into any) string {
	var given map[string]json.RawMessage
	t := reflect.TypeOf(into).Elem()
	if json.Unmarshal(text, &given) != nil || t.Kind() != reflect.Struct {
		return ""
	}
	var names []string
	for _, f := range reflect.VisibleFields(t) {
		if name, _, _ := strings.Cut(f.Tag.Get("json"), ","); name != "" && name != "-" {
			names = append(names, name)
		}
	}
	for name := range given {
		if !slices.ContainsFunc(names, func(n string) bool { return strings.EqualFold(n, name) }) {
			return ": want one of " + strings.Join(names, ", ")
		}
	}
	return ""
}

// fieldName is the path of the JSON value that an error is about, as
// "launches.grid: "; "" of the text as a whole. encoding/json names embedded
// structs on the way, which are no part of the text.
func fieldName(e *json.UnmarshalTypeError, into any) string {
	if e.Field == "" {
		return ""
	}
	path := strings.Split(e.Field, ".")
	t := reflect.TypeOf(into).Elem()
	for i := range t.NumField() {
		if f := t.Field(i); f.Anonymous && path[0] == f.Name && len(path) > 1 {
			path = path[1:]
			break
		}
	}
	return strings.Join(path, ".") + ": "
}

// kindName says what JSON a Go type is written as.
func kindName(t reflect.Type) string {
	switch t.Kind() {
	case reflect.Slice:
		switch t.Elem().Kind() {
		case reflect.Int64:
			return "a list of whole numbers"
		case reflect.Struct:
			return "a list of objects"
		}
		return "a list"
	case reflect.Struct:
		return "an object"
	case reflect.String:
		return "a string"
	case reflect.Int64:
		return "a whole number"
	}
	return "a number"
}

// place is an offset as line:column.
func place(text []byte, offset int64) string {
	before := text[:min(max(offset, 0), int64(len(text)))]
	line := bytes.Count(before, []byte("\n")) + 1
	col := len(before) - bytes.LastIndexByte(before, '\n')
	return fmt.Sprintf("%d:%d", line, col)
}

type caseBuilder struct {
	c     *Case
	dir   string
	named map[string]int // index in c.Buffers
}

func (b *caseBuilder) buffers(all []bufferFile) error {
	for i := range all {
		f := &all[i]
		if f.Name == "" {
			return fmt.Errorf("buffers[%d]: no name", i)
		}
		if !isBufferName(f.Name) {
			return fmt.Errorf("buffers[%d]: name %q: want up to %d letters, digits and any of _ - . that do not begin with a dot", i, clip(f.Name), maxBufferName)
		}
		if _, ok := b.named[f.Name]; ok {
			return fmt.Errorf("buffers[%d]: name %q twice", i, f.Name)
		}
		buf, err := b.buffer(f)
		if err != nil {
			return fmt.Errorf("buffers[%d] (%s): %w", i, f.Name, err)
		}
		buf.Arg = i
		b.named[f.Name] = len(b.c.Buffers)
		b.c.Buffers = append(b.c.Buffers, *buf)
	}
	return nil
}

// maxBufferName bounds a buffer's name, which becomes a file's.
const maxBufferName = 100

func isBufferName(s string) bool {
	for _, r := range s {
		if !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune("_-.", r) {
			return false
		}
	}
	return s[0] != '.' && len(s) <= maxBufferName
}

func (b *caseBuilder) launches(f *caseFile) error {
	if len(f.Launches) == 0 {
		if f.Launches != nil {
			return errors.New(`"launches" is empty: want at least one`)
		}
		return b.launch(&f.launchFile, true)
	}
	one := &f.launchFile
	if one.Kernel != "" || one.Grid != nil || one.Block != nil || one.Cluster != nil || one.Args != nil || one.DynamicShared != 0 {
		return errors.New(`"launches" beside a launch of its own: want one of them`)
	}
	for i := range f.Launches {
		if err := b.launch(&f.Launches[i], false); err != nil {
			return fmt.Errorf("launches[%d]: %w", i, err)
		}
	}
	return nil
}

// launch adds a launch. Only of a single one may arguments be buffers of
// their own.
func (b *caseBuilder) launch(f *launchFile, single bool) error {
	if f.Kernel == "" {
		return errors.New(`no "kernel": want the kernel's name`)
	}
	l := CaseLaunch{Kernel: f.Kernel, SharedBytes: f.DynamicShared}
	for _, e := range []struct {
		name     string
		from     []int64
		to       *[3]uint32
		optional bool
	}{{"grid", f.Grid, &l.Grid, false}, {"block", f.Block, &l.Block, false}, {"cluster", f.Cluster, &l.Cluster, true}} {
		if err := extents(e.name, e.from, e.to, e.optional); err != nil {
			return err
		}
	}
	if err := l.Validate(); err != nil {
		return err
	}
	l.Args = make([]CaseArg, len(f.Args))
	for _, names := range []bool{false, true} { // a tensor map may name a later argument
		for i := range f.Args {
			if names != (f.Args[i].tensor != nil || f.Args[i].parts != nil) {
				continue
			}
			a, err := b.arg(&f.Args[i], i, single)
			if err != nil {
				return fmt.Errorf("args[%d]: %w", i, err)
			}
			l.Args[i] = a
		}
	}
	b.c.Launches = append(b.c.Launches, l)
	return nil
}

func extents(name string, from []int64, to *[3]uint32, optional bool) error {
	if len(from) == 0 && optional {
		return nil
	}
	if len(from) == 0 {
		return fmt.Errorf("no %q: want one to three numbers", name)
	}
	if len(from) > 3 {
		return fmt.Errorf("%s %v: want one to three numbers", name, from)
	}
	*to = [3]uint32{1, 1, 1}
	for i, v := range from {
		if v < 1 || v > math.MaxInt32 {
			return fmt.Errorf("%s %v: want numbers from 1 to %d", name, from, math.MaxInt32)
		}
		to[i] = uint32(v)
	}
	return nil
}

func (b *caseBuilder) arg(f *argFile, i int, single bool) (CaseArg, error) {
	switch {
	case f.parts != nil:
		return b.parts(f)
	case f.tensor != nil:
		return b.tensorMap(f.tensor)
	case f.ref != "":
		k, ok := b.named[f.ref]
		if !ok {
			return CaseArg{}, fmt.Errorf("ref %q: no such name in \"buffers\"", f.ref)
		}
		if size := b.c.Buffers[k].Size(); f.offset < 0 || f.offset > size {
			return CaseArg{}, fmt.Errorf("offset %d in buffer %q: want 0 to %d bytes", f.offset, f.ref, size)
		}
		return CaseArg{Buffer: k, Offset: f.offset, Kind: "buffer"}, nil
	case f.buffer != nil && !single:
		return CaseArg{}, errors.New(`a buffer of its own: want {"ref": NAME} of one in "buffers"`)
	case f.buffer != nil:
		buf, err := b.buffer(f.buffer)
		if err != nil {
			return CaseArg{}, err
		}
		buf.Arg = i
		b.c.Buffers = append(b.c.Buffers, *buf)
		return CaseArg{Buffer: len(b.c.Buffers) - 1, Kind: "buffer"}, nil
	}
	return CaseArg{Buffer: -1, Bytes: f.bytes, Kind: f.kind}, nil
}

// buffer reads a buffer's files.
func (b *caseBuilder) buffer(f *bufferFile) (*CaseBuffer, error) {
	t, err := numcheck.ParseType(f.Type)
	if err != nil {
		return nil, err
	}
	buf := &CaseBuffer{Name: f.Name, Type: t, Align: f.Align}
	if f.Align < 0 || f.Align&(f.Align-1) != 0 || f.Align > 1<<20 {
		return nil, fmt.Errorf("align %d: want a power of two up to %d", f.Align, 1<<20)
	}
	switch {
	case (f.Buffer == "") == (f.Uninitialised == nil):
		return nil, errors.New(`want one of "buffer" and "uninitialised"`)
	case f.Uninitialised != nil:
		n := *f.Uninitialised
		if n < 0 || n > maxBufferBytes/int64(t.Size()) {
			return nil, fmt.Errorf("uninitialised %d: want a count of %s from 0 to %d", n, t, maxBufferBytes/int64(t.Size()))
		}
		buf.Shape = []int64{n}
	default:
		a, err := b.array(f.Buffer, t)
		if err != nil {
			return nil, err
		}
		buf.Shape, buf.Data = a.Shape, a.Data
	}
	if f.Want == "" {
		return buf, nil
	}
	w, err := b.array(f.Want, t)
	if err != nil {
		return nil, err
	}
	if int64(len(w.Data)) != buf.Size() {
		return nil, fmt.Errorf("%s: shape %v: want the buffer's shape %v", f.Want, w.Shape, buf.Shape)
	}
	buf.Shape, buf.Want = w.Shape, w.Data
	return buf, nil
}

func (b *caseBuilder) array(file string, t numcheck.Type) (*Array, error) {
	a, err := readTyped(beside(b.dir, file), t)
	if errors.Is(err, fs.ErrNotExist) {
		err = fmt.Errorf(`%w: want what numpy.save writes, or {"uninitialised": N, "type": "%s"} for one that is only written`, err, t)
	}
	return a, err
}

// readTyped reads a .npy file of elements of a type.
func readTyped(file string, t numcheck.Type) (*Array, error) {
	a, err := ReadNPYFile(file)
	if err != nil {
		return nil, err
	}
	if a.DType != t.DType() {
		return nil, fmt.Errorf("%s: elements of %s: want %s for %s", file, a.DType, t.DType(), t)
	}
	return a, nil
}

// UnmarshalJSON reads one of the forms that an argument has.
func (a *argFile) UnmarshalJSON(text []byte) error {
	var keys map[string]json.RawMessage
	if err := json.Unmarshal(text, &keys); err != nil {
		return fmt.Errorf("argument %s: want an object such as {\"i32\": 7}", clip(string(text)))
	}
	for _, form := range []string{"buffer", "uninitialised"} {
		if _, ok := keys[form]; ok {
			a.buffer = new(bufferFile)
			if err := decodeArgument(text, a.buffer); err != nil {
				return fmt.Errorf("argument %s: %w", clip(string(text)), err)
			}
			if a.buffer.Name != "" {
				return fmt.Errorf("argument %s: a name is for those in \"buffers\"", clip(string(text)))
			}
			return nil
		}
	}
	if _, ok := keys["with"]; ok {
		if err := a.readParts(text); err != nil {
			return fmt.Errorf("argument %s: %w", clip(string(text)), err)
		}
		return nil
	}
	if _, ok := keys["tensor_map"]; ok {
		a.tensor = new(tensorMapFile)
		if err := decodeStrict(text, a.tensor); err != nil {
			return fmt.Errorf("argument %s: %w", clip(string(text)), err)
		}
		return nil
	}
	if _, ok := keys["ref"]; ok {
		var r struct {
			Ref    string `json:"ref"`
			Offset int64  `json:"offset"`
		}
		err := decodeArgument(text, &r)
		if err == nil && r.Ref == "" {
			err = errors.New("ref is empty: want a buffer's name")
		}
		if err != nil {
			return fmt.Errorf("argument %s: %w", clip(string(text)), err)
		}
		a.ref, a.offset = r.Ref, r.Offset
		return nil
	}
	if len(keys) != 1 {
		return fmt.Errorf("argument %s: want one of %s", clip(string(text)), argForms)
	}
	for kind, v := range keys {
		b, err := valueBytes(kind, v)
		if a.kind, a.bytes = kind, b; err != nil {
			return fmt.Errorf("argument %s: %w", clip(string(text)), err)
		}
	}
	return nil
}

const argForms = `{"buffer": FILE, "type": T}, {"uninitialised": COUNT, "type": T}, {"ref": NAME}, {"tensor_map": NAME, ...}, {"bytes": HEX}, {"bytes": HEX, "with": [{"at": OFFSET, ...}]} or a value such as {"i32": 7} or {"f32": 0.5}`

// valueBytes is what an argument that is a value passes.
func valueBytes(kind string, v json.RawMessage) ([]byte, error) {
	if kind == "bytes" {
		return hexBytes(v)
	}
	return scalar(kind, v)
}

func hexBytes(v json.RawMessage) ([]byte, error) {
	var s string
	if err := json.Unmarshal(v, &s); err != nil {
		return nil, errors.New("bytes: want a string of hexadecimal digits")
	}
	b, err := hex.DecodeString(s)
	if err != nil {
		return nil, fmt.Errorf("bytes %q: want an even number of hexadecimal digits", clip(s))
	}
	return b, nil
}
