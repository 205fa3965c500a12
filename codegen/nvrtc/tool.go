package nvrtc

import (
	"bytes"
	"context"
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

// runTool runs a program to its end or kills it with ctx, whose error it then
// returns. A non-zero exit is an *exec.ExitError.
func runTool(ctx context.Context, path string, args ...string) (output, error) {
	var stdout, stderr bytes.Buffer
	cmd := exec.CommandContext(ctx, path, args...)
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	cmd.WaitDelay = time.Second // for a child of a killed tool that keeps its pipes open
	err := cmd.Run()
	if ctx.Err() != nil {
		err = ctx.Err()
	}
	return output{stdout.String(), stderr.String()}, err
}

var release = regexp.MustCompile(`release [0-9.]+, V([0-9.]+)`)

// toolVersion asks a program of the toolkit for its version, such as 13.0.88.
func toolVersion(ctx context.Context, path string) (string, error) {
	out, err := runTool(ctx, path, "--version")
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
