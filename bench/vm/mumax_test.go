package vm_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kgen-dev/kgen/bench/vm"
)

// The kernels of mumax/3, a simulator of magnets, stand in its Go files as PTX
// that nvcc made. They are under the GPL: tests read them from the module
// cache, and nothing of them is in this repository or in what is built of it.
// What they compute is written down here anew, from its formulas.

// mumaxFolder is the folder of mumax/3's wrappers. Without the module the test
// is skipped, unless KGEN_REQUIRE_MUMAX is set.
func mumaxFolder(t *testing.T) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Dir}}", "github.com/mumax/3")
	cmd.Env = append(os.Environ(), "GOPROXY=off")
	dir, err := cmd.Output()
	if folder := strings.TrimSpace(string(dir)); err == nil && folder != "" {
		return filepath.Join(folder, "cuda")
	}
	const why = "github.com/mumax/3 is not in the module cache: go mod download github.com/mumax/3 fetches it"
	if os.Getenv("KGEN_REQUIRE_MUMAX") != "" {
		t.Fatal(why)
	}
	t.Skip(why)
	return ""
}

// mumaxPTX is the PTX of each wrapper for the newest compute capability, by
// the wrapper's name.
func mumaxPTX(t *testing.T) map[string][]byte {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(mumaxFolder(t), "*_wrapper.go"))
	require.NoError(t, err)
	all := map[string][]byte{}
	for _, file := range files {
		f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
		require.NoError(t, err)
		newest := 0
		ast.Inspect(f, func(n ast.Node) bool {
			v, ok := n.(*ast.ValueSpec)
			if !ok || len(v.Names) != 1 || len(v.Values) != 1 {
				return true
			}
			name, cc, ok := strings.Cut(v.Names[0].Name, "_ptx_")
			lit, isText := v.Values[0].(*ast.BasicLit)
			if c, err := strconv.Atoi(cc); ok && isText && err == nil && c > newest {
				text, err := strconv.Unquote(lit.Value)
				require.NoError(t, err)
				newest = c
				all[name] = []byte(text)
			}
			return true
		})
		require.NotZero(t, newest, "%s: no PTX", file)
	}
	return all
}

func TestMumaxLoads(t *testing.T) {
	all := mumaxPTX(t)
	require.GreaterOrEqual(t, len(all), 64)
	dev, err := vm.New(vm.Options{})
	require.NoError(t, err)
	defer dev.Close()
	for name, text := range all {
		m, err := dev.Load(t.Context(), name+".ptx", text)
		require.NoError(t, err, name)
		require.Len(t, m.Kernels, 1)
		require.NoError(t, dev.Unload(m))
	}
}

// TestMumax runs kernels on sizes that fill no block and compares them with
// what they stand for.
func TestMumax(t *testing.T) {
	all := mumaxPTX(t)
	require.GreaterOrEqual(t, len(mumaxCases), 20)
	for name, run := range mumaxCases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.Contains(t, all, name)
			for _, opt := range timings {
				run(newRunner(t, opt, name+".ptx", all[name]))
			}
		})
	}
}

// cells is the size of a mesh.
type cells struct{ x, y, z int }

func (c cells) n() int { return c.x * c.y * c.z }

func (c cells) at(x, y, z int) int { return (z*c.y+y)*c.x + x }

func (c cells) of(i int) (x, y, z int) { return i % c.x, i / c.x % c.y, i / (c.x * c.y) }

// grid covers the mesh with blocks.
func (c cells) grid() dim { return dim{groups(c.x, 8), groups(c.y, 4), uint32(c.z)} }

var cellBlock = dim{8, 4, 1}

// neighbours are the cells before and after i along each axis: itself at an
// edge, or that at the other edge where the mesh is periodic (bit 0 to 2 of
// pbc).
func (c cells) neighbours(i int, pbc uint8) [3][2]int {
	at, size := [3]int{}, [3]int{c.x, c.y, c.z}
	at[0], at[1], at[2] = c.of(i)
	var all [3][2]int
	for axis := range 3 {
		for side, step := range []int{-1, 1} {
			to := at
			to[axis] += step
			if pbc>>axis&1 == 1 {
				to[axis] = (to[axis] + size[axis]) % size[axis]
			} else {
				to[axis] = min(max(to[axis], 0), size[axis]-1)
			}
			all[axis][side] = c.at(to[0], to[1], to[2])
		}
	}
	return all
}

// field is three arrays, one a component.
type field [3]array[float32]

func (x *runner) field(n int) (field, [][3]float32) {
	values := make([][3]float32, n)
	var f field
	for c := range f {
		component := x.floats(n)
		for i := range values {
			values[i][c] = component[i]
		}
		f[c] = in(x, component)
	}
	return f, values
}

func exactVec(v [3]float32) vec { return vec{exact(v[0]), exact(v[1]), exact(v[2])} }

func (f field) require(t *testing.T, name string, want func(i int) vec) {
	t.Helper()
	for c := range f {
		requireRounded(t, name+"."+"xyz"[c:c+1], f[c].get(), func(i int) rounded { return want(i)[c] })
	}
}

// pair is the place of a pair of regions in a table of half a square.
func pair(a, b uint8) int {
	i, j := max(int(a), int(b)), min(int(a), int(b))
	return i*(i+1)/2 + j
}
