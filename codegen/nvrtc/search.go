package nvrtc

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
)

// ToolchainEnv names the environment variable that replaces the .toolchain
// folder beside the program's own.
const ToolchainEnv = "KGEN_TOOLCHAIN"

// SearchDirs lists the toolkit roots in the order they are searched:
// $KGEN_TOOLCHAIN or else the .toolchain folder beside the one the executable
// is in, $CUDA_HOME, $CUDA_PATH, /usr/local/cuda. Folders that do not exist
// are listed too.
func SearchDirs() []string {
	var dirs []string
	if dir := ownDir(); dir != "" {
		dirs = append(dirs, dir)
	}
	for _, name := range []string{"CUDA_HOME", "CUDA_PATH"} {
		if dir := os.Getenv(name); dir != "" {
			dirs = append(dirs, dir)
		}
	}
	return append(dirs, "/usr/local/cuda")
}

// ownDir is kgen's own toolchain folder, or "".
func ownDir() string {
	if dir := os.Getenv(ToolchainEnv); dir != "" {
		return dir
	}
	exe, err := os.Executable()
	if err != nil {
		return ""
	}
	if real, err := filepath.EvalSymlinks(exe); err == nil {
		exe = real
	}
	return filepath.Join(filepath.Dir(filepath.Dir(exe)), ".toolchain")
}

// Remedy says how to get what err, of [Find], [FindPtxas] or [FindNvdisasm],
// misses.
func Remedy(err error) string {
	if errors.Is(err, ErrNoCgo) {
		return "build kgen with cgo: CGO_ENABLED=1 and a C compiler"
	}
	const install = "install a CUDA toolkit and set CUDA_HOME"
	set, own := os.Getenv(ToolchainEnv), ownDir()
	_, missing := os.Stat(own)
	switch {
	case set != "" && missing != nil:
		return fmt.Sprintf("%s is %s, which is no folder: unset it, or set it to one with the toolkit", ToolchainEnv, set)
	case set != "":
		return fmt.Sprintf("%s is %s, which lacks it: set it to a folder with the toolkit, or %s", ToolchainEnv, set, install)
	case missing != nil:
		return fmt.Sprintf("there is no %s: run `make toolchain` in kgen's source and, if this program is elsewhere, set %s to the .toolchain it makes; or %s", own, ToolchainEnv, install)
	}
	return "run `make toolchain`, or " + install
}

// searchRoots are the caller's folders, then SearchDirs. An empty name is left
// out, for it would mean the working directory.
func searchRoots(dirs []string) []string {
	roots := slices.DeleteFunc(slices.Clone(dirs), func(dir string) bool { return dir == "" })
	return append(roots, SearchDirs()...)
}

// loaderNames are tried last, without a folder, newest first.
var loaderNames = []string{"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so.11.2", "libnvrtc.so"}

// libraryPaths lists the candidates for NVRTC, best first: the files under the
// roots, newest version first within a folder, then the names the loader may
// resolve.
func libraryPaths(roots []string) []string {
	var paths []string
	for _, root := range roots {
		for _, dir := range libraryDirs(root) {
			paths = append(paths, newestFirst(dir, "libnvrtc.so*")...)
		}
	}
	return append(paths, loaderNames...)
}

// libraryDirs are the folders of a toolkit, or of unpacked wheels, that may
// hold libraries.
func libraryDirs(root string) []string {
	dirs := []string{root, filepath.Join(root, "lib64"), filepath.Join(root, "lib")}
	arch := map[string]string{"amd64": "x86_64", "arm64": "sbsa"}[runtime.GOARCH]
	dirs = append(dirs, filepath.Join(root, "targets", arch+"-linux", "lib"))
	for _, wheel := range wheelRoots(root) {
		dirs = append(dirs, filepath.Join(wheel, "lib"))
	}
	return dirs
}

// wheelRoots are the folders that CUDA's wheels unpack to: one for all since
// CUDA 13, one a package before.
func wheelRoots(root string) []string {
	dirs := newestFirst(filepath.Join(root, "nvidia"), "cu[0-9]*")
	return append(dirs, filepath.Join(root, "nvidia", "cuda_nvrtc"), filepath.Join(root, "nvidia", "cuda_nvcc"))
}

// toolPath finds a program of the toolkit, or "".
func toolPath(roots []string, name string) string {
	for _, root := range roots {
		for _, dir := range append([]string{root}, wheelRoots(root)...) {
			for _, path := range []string{filepath.Join(dir, "bin", name), filepath.Join(dir, name)} {
				if isProgram(path) {
					return path
				}
			}
		}
	}
	for _, dir := range filepath.SplitList(os.Getenv("PATH")) {
		if path := filepath.Join(dir, name); filepath.IsAbs(path) && isProgram(path) {
			return path
		}
	}
	return ""
}

func isProgram(path string) bool {
	fi, err := os.Stat(path)
	return err == nil && fi.Mode().IsRegular() && fi.Mode()&0o111 != 0
}

// newestFirst lists the files of dir that match the pattern, by the numbers in
// their names, descending; a longer version precedes the links that shorten it.
func newestFirst(dir, pattern string) []string {
	paths, err := filepath.Glob(filepath.Join(escapeGlob(dir), pattern))
	if err != nil {
		return nil
	}
	slices.SortFunc(paths, func(a, b string) int {
		return cmp.Or(slices.Compare(numbers(b), numbers(a)), cmp.Compare(a, b))
	})
	return paths
}

func escapeGlob(dir string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`).Replace(dir)
}

func numbers(path string) []int {
	fields := strings.FieldsFunc(filepath.Base(path), func(r rune) bool { return r < '0' || r > '9' })
	ns := make([]int, len(fields))
	for i, f := range fields {
		ns[i], _ = strconv.Atoi(f) // digits alone; one too long for an int is no version
	}
	return ns
}
