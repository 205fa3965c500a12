package replay

import (
	"bufio"
	"bytes"
	"compress/flate"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"github.com/kgen-dev/kgen/internal/jsontext"
	"github.com/kgen-dev/kgen/internal/userfile"
)

// Bounds of what a file may hold once it is unpacked. Published spaces pack 10 to 30 times;
// gzip can pack 1000 times, and what does is none.
const (
	maxBytes  = 1 << 30
	maxPacked = 100      // times
	slack     = 16 << 20 // bytes that a file of any size may hold
)

// ReadFile reads a space from a Kernel Tuner cache, T4 results, KTT's own results, a Run or
// a compact CSV, each of which may be packed by gzip. A file that ends within a record is
// legal: the record is left out. Errors wrap ErrFormat where the file is at fault.
func ReadFile(ctx context.Context, file string) (*Space, error) {
	f, err := userfile.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return readNamed(ctx, file, f)
}

// ReadBytes reads a space from what a file of that name holds; see ReadFile.
func ReadBytes(ctx context.Context, file string, data []byte) (*Space, error) {
	return readNamed(ctx, file, bytes.NewReader(data))
}

func readNamed(ctx context.Context, file string, r io.Reader) (*Space, error) {
	s, packed, err := read(ctx, r)
	switch {
	case errors.Is(err, ErrFormat) && !packed && strings.HasSuffix(strings.ToLower(file), ".gz"):
		return nil, fmt.Errorf("%s: its name ends in .gz, but gzip did not pack it; read as it stands: %w", filepath.Base(file), err)
	case err != nil:
		return nil, fmt.Errorf("%s: %w", filepath.Base(file), err)
	}
	return s, nil
}

// Read reads a space; see ReadFile.
func Read(ctx context.Context, r io.Reader) (*Space, error) {
	s, _, err := read(ctx, r)
	return s, err
}

// read also tells whether gzip packed what it read.
func read(ctx context.Context, r io.Reader) (s *Space, packed bool, err error) {
	data, packed, cut, err := unpack(&interruptible{ctx, r})
	if err != nil {
		return nil, packed, err
	}
	if s, err = parse(ctx, data); err != nil {
		return nil, packed, err
	}
	if cut && s.Cut == "" {
		s.Cut = CutEnd
	}
	return s, packed, s.finish()
}

// interruptible is a reader that ends with its context.
type interruptible struct {
	ctx context.Context
	r   io.Reader
}

func (i *interruptible) Read(p []byte) (int, error) {
	if i.ctx.Err() != nil {
		return 0, context.Cause(i.ctx)
	}
	return i.r.Read(p)
}

func parse(ctx context.Context, data []byte) (*Space, error) {
	text := bytes.TrimLeft(bytes.TrimPrefix(data, []byte("\xef\xbb\xbf")), " \t\r\n")
	switch {
	case len(text) == 0:
		return nil, fmt.Errorf("%w: it is empty", ErrFormat)
	case text[0] == '{':
		return readJSON(ctx, plainNumbers(bytes.TrimRight(text, " \t\r\n")))
	case text[0] == '[' || json.Valid(text):
		return nil, fmt.Errorf("%w: it holds JSON that is %s: want an object with %s", ErrFormat, jsonKind(text), membersWanted)
	case bytes.IndexByte(text[:min(len(text), 512)], 0) >= 0:
		return nil, fmt.Errorf("%w: it is binary: want JSON or CSV, packed by gzip or not", ErrFormat)
	}
	return readCSV(ctx, text)
}

// membersWanted names what tells the JSON formats apart.
const membersWanted = `a member "cache" (Kernel Tuner), "results" (T4), "Results" (KTT) or "trace" (kgen tune --replay)`

// jsonKind names what a JSON value that is no object is.
func jsonKind(text []byte) string {
	switch text[0] {
	case '[':
		return "a list"
	case '"':
		return "a string"
	case 't', 'f':
		return "a truth value"
	case 'n':
		return "null"
	}
	return "a number"
}

// unpack reads everything, through gzip if it is packed. cut says that the packed data
// ends early.
func unpack(r io.Reader) (data []byte, packed, cut bool, err error) {
	from := &counter{r: r}
	b := bufio.NewReader(from)
	var plain io.Reader = b
	if magic, _ := b.Peek(2); bytes.Equal(magic, []byte{0x1f, 0x8b}) {
		packed = true
		z, err := gzip.NewReader(b)
		switch {
		case ended(err):
			return nil, packed, false, fmt.Errorf("%w: %w", ErrFormat, errEmptied)
		case err != nil:
			return nil, packed, false, fmt.Errorf("%w: packed by gzip, but: %w", ErrFormat, err)
		}
		plain = &sparing{r: z, from: from}
	}
	data, err = io.ReadAll(io.LimitReader(plain, maxBytes+1))
	switch {
	case errors.Is(err, io.ErrUnexpectedEOF) && len(data) == 0:
		return nil, packed, false, fmt.Errorf("%w: %w", ErrFormat, errEmptied)
	case errors.Is(err, io.ErrUnexpectedEOF):
		return data, packed, true, nil
	case errors.Is(err, gzip.ErrChecksum), errors.Is(err, gzip.ErrHeader), errors.As(err, new(flate.CorruptInputError)):
		return nil, packed, false, fmt.Errorf("%w: packed by gzip, but: %w", ErrFormat, err)
	case err != nil:
		return nil, packed, false, err
	case len(data) > maxBytes:
		return nil, packed, false, fmt.Errorf("%w: more than %d bytes unpacked", ErrFormat, maxBytes)
	}
	return data, packed, false, nil
}

var (
	errEmptied = errors.New("packed by gzip, but it ends before anything that was packed")
	errBomb    = fmt.Errorf("%w: packed more than %d times: no published space is", ErrFormat, maxPacked)
)

// counter counts what is read.
type counter struct {
	r io.Reader
	n int64
}

func (c *counter) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	c.n += int64(n)
	return n, err
}

// sparing ends with errBomb where little that is packed becomes very much.
type sparing struct {
	r    io.Reader
	from *counter
	n    int64
}

func (s *sparing) Read(p []byte) (int, error) {
	n, err := s.r.Read(p)
	if s.n += int64(n); s.n > slack+maxPacked*s.from.n {
		return 0, errBomb
	}
	return n, err
}

// plainNumbers replaces Python's NaN and Infinity, which are no JSON, by null.
func plainNumbers(text []byte) []byte {
	if !bytes.Contains(text, []byte("NaN")) && !bytes.Contains(text, []byte("Infinity")) {
		return text
	}
	var out []byte
	for quoted := false; len(text) > 0; {
		switch c := text[0]; {
		case quoted && c == '\\' && len(text) > 1:
			out, text = append(out, text[:2]...), text[2:]
			continue
		case c == '"':
			quoted = !quoted
		case !quoted:
			if n := notANumber(text); n > 0 {
				out, text = append(out, "null"...), text[n:]
				continue
			}
		}
		out, text = append(out, text[0]), text[1:]
	}
	return out
}

func notANumber(text []byte) int {
	for _, w := range []string{"NaN", "Infinity", "-Infinity"} {
		if bytes.HasPrefix(text, []byte(w)) {
			return len(w)
		}
	}
	return 0
}

// shape is what tells the JSON formats apart: the name of the member with the records,
// whether it is an object, and how a record is read.
type shape struct {
	member string
	object bool
	record func(*reader, json.RawMessage) (Entry, error)
	origin origin
}

var shapes = []shape{
	{"cache", true, (*reader).kernelTuner, origin{"", "device_name", "kernel_name", "problem_size", "time_provenance", "kgen"}},
	{"results", false, (*reader).t4, origin{"metadata", "gpu", "kernel", "problem", "provenance", "kgen"}},
	{"Results", false, (*reader).ktt, origin{}},
	{"trace", false, (*reader).try, origin{"", "gpu", "kernel", "", "", ""}},
}

// reader reads one JSON file.
type reader struct {
	space     Space
	head      map[string]json.RawMessage // the members beside the records
	names     map[string]int             // of parameters
	objective string                     // of the search that wrote the records; "" where the file does not say
}

func readJSON(ctx context.Context, text []byte) (*Space, error) {
	d := json.NewDecoder(bytes.NewReader(text))
	r := &reader{head: map[string]json.RawMessage{}}
	if _, err := d.Token(); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrFormat, err)
	}
	for d.More() {
		key, err := d.Token()
		if err != nil {
			return nil, position(text, d, err)
		}
		name, _ := key.(string)
		for _, s := range shapes {
			if s.member == name {
				space, err := r.records(ctx, text, d, s)
				if err == nil {
					r.trailing(d)
					err = r.identify(s.origin)
				}
				if err == nil && r.objective != "" && r.objective != "time" && space.Optimum() == nil && len(space.Entries) > 0 {
					err = fmt.Errorf("%w: its objective is %.40q, and no configuration has a time", ErrFormat, r.objective)
				}
				return space, err
			}
		}
		var member json.RawMessage
		if err := d.Decode(&member); err != nil {
			return nil, position(text, d, err)
		}
		if _, again := r.head[name]; again {
			return nil, fmt.Errorf("%w: line %d: %.60s is there twice: want it once", ErrFormat, lineAt(text, d), name)
		}
		r.head[name] = member
	}
	return nil, fmt.Errorf("%w: want %s", ErrFormat, membersWanted)
}

// records reads the records until the file ends, or they do.
func (r *reader) records(ctx context.Context, text []byte, d *json.Decoder, s shape) (*Space, error) {
	want := json.Delim('[')
	if s.object {
		want = '{'
	}
	if t, err := d.Token(); err != nil || t != want {
		if ended(err) {
			r.space.Cut = CutEnd
			return &r.space, nil
		}
		return nil, fmt.Errorf("%w: %s: want it to begin with %s", ErrFormat, s.member, want)
	}
	for n := 1; d.More(); n++ {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		if s.object {
			if _, err := d.Token(); err != nil {
				return r.stop(text, d, err)
			}
		}
		var raw json.RawMessage
		if err := d.Decode(&raw); err != nil {
			return r.stop(text, d, err)
		}
		e, err := s.record(r, raw)
		if again := jsontext.Repeats(raw, false); err == nil && again != nil {
			err = fmt.Errorf("%.60s is there twice: want it once", again.Key)
		}
		if err != nil {
			return nil, fmt.Errorf("%w: line %d: record %d of %s: %w", ErrFormat, lineAt(text, d), n, s.member, jsontext.Plain(err))
		}
		r.space.Entries = append(r.space.Entries, e)
	}
	if _, err := d.Token(); err != nil {
		return r.stop(text, d, err)
	}
	return &r.space, nil
}

// stop ends the records where the file does, or reports what is wrong with it.
func (r *reader) stop(text []byte, d *json.Decoder, err error) (*Space, error) {
	if !ended(err) {
		return nil, position(text, d, err)
	}
	r.space.Cut = CutRecord
	if rest := text[min(int(d.InputOffset()), len(text)):]; len(bytes.Trim(rest, ", \t\r\n")) == 0 {
		r.space.Cut = CutEnd
	}
	return &r.space, nil
}

func ended(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
}

func position(text []byte, d *json.Decoder, err error) error {
	if ended(err) {
		return fmt.Errorf("%w: it ends before the first record", ErrFormat)
	}
	return fmt.Errorf("%w: line %d: %w", ErrFormat, lineAt(text, d), err)
}

func lineAt(text []byte, d *json.Decoder) int {
	return 1 + bytes.Count(text[:min(int(d.InputOffset()), len(text))], []byte{'\n'})
}

// declare sets the parameters' names, once.
func (r *reader) declare(names []string) error {
	r.names = map[string]int{}
	for i, n := range names {
		if _, again := r.names[n]; again {
			return fmt.Errorf("parameter %q is named twice", n)
		}
		r.names[n] = i
	}
	r.space.Names = names
	return nil
}

// values orders a record's values.
func (r *reader) values(get func(name string) (json.RawMessage, bool)) ([]Value, error) {
	out := make([]Value, len(r.space.Names))
	for i, name := range r.space.Names {
		raw, ok := get(name)
		if !ok {
			return nil, fmt.Errorf("no value for %s", name)
		}
		v, err := scalar(raw)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		out[i] = v
	}
	return out, nil
}

func scalar(raw json.RawMessage) (Value, error) {
	text := strings.TrimSpace(string(raw))
	switch {
	case text == "":
		return Value{}, errors.New("want a value")
	case text[0] == '{' || text[0] == '[': // as rare as it is legal
		var plain bytes.Buffer
		if err := json.Compact(&plain, raw); err != nil {
			return Value{}, err
		}
		return Value{Text: plain.String()}, nil
	case text[0] == '"':
		var s string
		if err := json.Unmarshal(raw, &s); err != nil {
			return Value{}, err
		}
		return word(s), nil
	}
	if v, ok := number(text); ok {
		return v, nil
	}
	return Value{Text: text}, nil
}
