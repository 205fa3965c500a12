package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"io/fs"
	"os"

	"github.com/kgen-dev/kgen/bench/vm/mutate"
)

// record keeps judgements in a file as they come, a line of JSON each, so that a run
// that was stopped goes on from there, and runs of parts add up to one report. Whoever
// changes the virtual machine removes the file.
type record struct {
	file  *os.File
	known map[string]mutate.Judgement
}

type recorded struct {
	Mutant string `json:"mutant"`
	mutate.Judgement
}

// openRecord reads what a file holds and appends to it; without a name nothing is kept.
func openRecord(name string) (*record, error) {
	r := &record{known: map[string]mutate.Judgement{}}
	if name == "" {
		return r, nil
	}
	data, err := os.ReadFile(name)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	whole := data[:bytes.LastIndexByte(data, '\n')+1]
	lines := bufio.NewScanner(bytes.NewReader(whole))
	for n := 1; lines.Scan(); n++ {
		var line recorded
		if err := json.Unmarshal(lines.Bytes(), &line); err != nil {
			return nil, fmt.Errorf("%s:%d: want a recorded judgement: %w", name, n, err)
		}
		r.known[line.Mutant] = line.Judgement
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	r.file, err = os.OpenFile(name, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		return nil, err
	}
	return r, r.file.Truncate(int64(len(whole)))
}

// key is what a mutant is known by: its program, its text and the timings it ran under.
func key(program string, timings int, m *mutate.Mutant) string {
	h := fnv.New128a()
	h.Write([]byte(m.PTX))
	return fmt.Sprintf("%s/%d/%x", program, timings, h.Sum(nil))
}

func (r *record) add(key string, j mutate.Judgement) error {
	if r.file == nil {
		return nil
	}
	line, err := json.Marshal(recorded{key, j})
	if err != nil {
		return err
	}
	_, err = r.file.Write(append(line, '\n'))
	return err
}

func (r *record) close() error {
	if r.file == nil {
		return nil
	}
	return r.file.Close()
}
