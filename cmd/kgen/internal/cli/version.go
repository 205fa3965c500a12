package cli

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"runtime"
	"runtime/debug"
	"strings"

	"github.com/spf13/cobra"
)

// buildInfo is what the go command stamped into the program.
type buildInfo struct {
	Version  string `json:"version"`
	Revision string `json:"revision,omitempty"`
	Time     string `json:"time,omitempty"`
	Modified bool   `json:"modified"`
	Go       string `json:"go"`
	Platform string `json:"platform"`
	Cgo      bool   `json:"cgo"`
	Licence  string `json:"licence"`
}

// copyleft is the module that puts a program it is built into under the GPL.
const copyleft = "github.com/mumax/3"

func readBuildInfo() buildInfo {
	b := buildInfo{
		Version: develVersion, Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH, Licence: "Apache-2.0",
	}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return b
	}
	if v := info.Main.Version; v != "" && v != "(devel)" {
		b.Version = v
	}
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			b.Revision = s.Value
		case "vcs.time":
			b.Time = s.Value
		case "vcs.modified":
			b.Modified = s.Value == "true"
		case "CGO_ENABLED":
			b.Cgo = s.Value == "1"
		}
	}
	for _, d := range info.Deps {
		if strings.HasPrefix(d.Path, copyleft) {
			b.Licence = "GPL-3.0 as a whole, for it holds " + d.Path
		}
	}
	return b
}

// develVersion is that of a program that was built from files, not as a version of the module.
const develVersion = "devel"

// buildDigest identifies this program's code by its file; "" if that cannot be read.
func buildDigest() string {
	name, err := os.Executable()
	if err != nil {
		return ""
	}
	f, err := os.Open(name)
	if err != nil {
		return ""
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return ""
	}
	return hex.EncodeToString(h.Sum(nil))
}

func (a *app) versionCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "version",
		Short: "Print kgen's version and licence",
		Args:  positional(),
		RunE: func(*cobra.Command, []string) error {
			b := readBuildInfo()
			if a.json {
				return a.printJSON(b)
			}
			fmt.Fprintf(a.out, "kgen %s %s %s\nlicence: %s\n", b.Version, b.Go, b.Platform, b.Licence)
			return nil
		},
	}
	a.jsonFlag(c)
	return c
}
