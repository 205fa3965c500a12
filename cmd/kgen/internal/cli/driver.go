package cli

import (
	"os"
	"path/filepath"
	"regexp"
	"runtime"
)

// driverVersion is where the kernel module says which driver it is.
const driverVersion = "/proc/driver/nvidia/version"

// driverLibraries is where installers put the driver's library, by GOARCH.
var driverLibraries = map[string][]string{
	"amd64": {"/usr/lib/x86_64-linux-gnu", "/usr/lib64", "/usr/lib", "/usr/lib/wsl/lib", "/run/opengl-driver/lib"},
	"arm64": {"/usr/lib/aarch64-linux-gnu", "/usr/lib64", "/usr/lib", "/run/opengl-driver/lib"},
}

var moduleRelease = regexp.MustCompile(`Kernel Module.*?\s(\d+\.\d+(?:\.\d+)?)\s`)

// findDriver looks for an NVIDIA driver without loading it, which would wake
// the GPU. The release is "" when only the library is there.
func findDriver() (library, release string) {
	if b, err := os.ReadFile(driverVersion); err == nil {
		release = parseDriverRelease(string(b))
	}
	dirs := append(filepath.SplitList(os.Getenv("LD_LIBRARY_PATH")), driverLibraries[runtime.GOARCH]...)
	for _, dir := range dirs {
		path := filepath.Join(dir, "libcuda.so.1")
		if _, err := os.Stat(path); err == nil {
			return path, release
		}
	}
	return "", release
}

func parseDriverRelease(text string) string {
	if m := moduleRelease.FindStringSubmatch(text); m != nil {
		return m[1]
	}
	return ""
}
