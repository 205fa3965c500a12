package measured

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
)

// The headings of the tables. Attention of one new token is decoding.
const (
	gemmHeading      = "type,m,n,k,latency_ms"
	attentionHeading = "type,kv_type,batch,new_tokens,past_tokens,heads,kv_heads,head_dim,window,latency_ms"
)

// mostRows bounds what a table is read for.
const mostRows = 1 << 20

// IsTable says whether a text, packed by gzip or not, begins as the tables do.
func IsTable(data []byte) bool {
	r, err := unpacked(bytes.NewReader(data))
	if err != nil {
		return false
	}
	line, err := bufio.NewReader(io.LimitReader(r, 1<<10)).ReadString('\n')
	return err == nil && slices.Contains([]string{gemmHeading, attentionHeading}, strings.TrimRight(line, "\r\n"))
}

// Read reads a table in the form of the embedded ones, packed by gzip or not, but for
// rows that name no problem. The name is for errors, which hold the line, and for the
// samples' framework.
func Read(in io.Reader, name string) ([]Sample, error) {
	r, err := unpacked(in)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	lines := bufio.NewScanner(r)
	ended := true // the last line, by a newline
	lines.Split(func(data []byte, atEOF bool) (int, []byte, error) {
		n, line, err := bufio.ScanLines(data, atEOF)
		if n > 0 {
			ended = data[n-1] == '\n'
		}
		return n, line, err
	})
	var out []Sample
	var op Op
	n := 0
	for lines.Scan() {
		n++
		line := bytes.TrimSuffix(lines.Bytes(), []byte("\r"))
		switch {
		case n == 1 && string(line) == gemmHeading:
			op = GEMM
			continue
		case n == 1 && string(line) == attentionHeading:
			op = Prefill
			continue
		case n == 1:
			return nil, fmt.Errorf("%s:1: heading %q: want %s or %s", name, line, gemmHeading, attentionHeading)
		case n > mostRows:
			return nil, fmt.Errorf("%s:%d: more than %d rows", name, n, mostRows)
		}
		s := Sample{Op: op, Framework: name}
		if err := s.parse(line); err != nil {
			return nil, fmt.Errorf("%s:%d: %w", name, n, err)
		}
		if op == Prefill && s.NewTokens == 1 {
			s.Op = Decode
		}
		if s.sensible() {
			out = append(out, s)
		}
	}
	if err := lines.Err(); err != nil {
		if errors.Is(err, bufio.ErrTooLong) {
			err = fmt.Errorf("a line of more than %d KiB: want a row of the table", bufio.MaxScanTokenSize>>10)
		}
		return nil, fmt.Errorf("%s:%d: %w", name, n+1, err)
	}
	if !ended {
		return nil, fmt.Errorf("%s:%d: no newline ends the last line: is the file cut off?", name, n)
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("%s: %w", name, errors.New("no row names a problem"))
	}
	return out, nil
}

// unpacked reads through gzip where a text is packed by it.
func unpacked(in io.Reader) (io.Reader, error) {
	r := bufio.NewReader(in)
	if magic, err := r.Peek(2); err != nil || magic[0] != 0x1f || magic[1] != 0x8b {
		return r, nil //nolint:nilerr // too short to be packed
	}
	return gzip.NewReader(r)
}
