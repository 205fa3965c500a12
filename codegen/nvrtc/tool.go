package nvrtc

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"time"
)

// findTool looks for a program in dirs, the [SearchDirs] and PATH.
func findTool(name string, dirs []string) (string, error) {
	roots := searchRoots(dirs)
	if path := toolPath(roots, name); path != "" {
		return path, nil
	}
	return "", fmt.Errorf("%s %w: not in %s or on PATH", name, ErrUnavailable, strings.Join(roots, ", "))
}

// output is what a tool left behind, also when it failed.
type output struct{ stdout, stderr string }

func (o output) log() string { return cleanLog(o.stdout + o.stderr) }

// ErrDeadline is wrapped by the error of a tool that took too long and was killed.
var ErrDeadline = errors.New("no answer in time")

// How long a tool may take. Compilers need seconds, minutes at the worst.
const (
	toolDeadline    = 15 * time.Minute
	versionDeadline = time.Minute
)

// maxOutput bounds what is kept of what a tool prints: far more than the SASS of
// any kernel.
const maxOutput = 1 << 26

// runTool runs a program to its end, or kills it and its children with ctx, whose
// error it then returns, or after a time. A non-zero exit is an *exec.ExitError.
func runTool(ctx context.Context, deadline time.Duration, path string, args ...string) (output, error) {
	limited, cancel := context.WithTimeout(ctx, deadline)
	defer cancel()
	var stdout, stderr boundedBuffer
	cmd := exec.CommandContext(limited, path, args...)
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	cmd.WaitDelay = time.Second // for a child of a killed tool that keeps its pipes open
	killWithChildren(cmd)
	err := cmd.Run()
	switch {
	case ctx.Err() != nil:
		err = ctx.Err()
	case limited.Err() != nil:
		err = fmt.Errorf("%s: %w: killed after %s", path, ErrDeadline, deadline)
	case stdout.over || stderr.over:
		err = fmt.Errorf("%s: it printed more than %d bytes", path, maxOutput)
	}
	return output{stdout.String(), stderr.String()}, err
}

// boundedBuffer keeps maxOutput bytes and drops the rest.
type boundedBuffer struct {
	kept bytes.Buffer
	over bool
}

func (b *boundedBuffer) String() string { return b.kept.String() }

func (b *boundedBuffer) Write(p []byte) (int, error) {
	room := maxOutput - b.kept.Len()
	b.over = b.over || len(p) > room
	b.kept.Write(p[:min(len(p), room)])
	return len(p), nil
}

var release = regexp.MustCompile(`release [0-9.]+, V([0-9.]+)`)

// toolVersion asks a program of the toolkit for its version, such as 13.0.88.
func toolVersion(ctx context.Context, path string) (string, error) {
	out, err := runTool(ctx, versionDeadline, path, "--version")
	if err != nil {
		return "", fmt.Errorf("%s --version: %w", path, err)
	}
	m := release.FindStringSubmatch(out.stdout)
	if m == nil {
		return "", fmt.Errorf("%s --version: no release in %.100q", path, out.stdout)
	}
	return m[1], nil
}

// withScratch hands fn a folder of its own that holds the input under name.
func withScratch(name string, input []byte, fn func(dir, path string) error) error {
	dir, err := os.MkdirTemp("", "kgen-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, name)
	if err := os.WriteFile(path, input, 0o600); err != nil {
		return err
	}
	return fn(dir, path)
}
