package vm

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestDescribe: a report says what an address is in or near to, and of a stray one
// what kind of number it is, not how far the nearest buffer is.
func TestDescribe(t *testing.T) {
	d, err := New(Options{})
	require.NoError(t, err)
	m := &d.mem
	require.Equal(t, "nothing is allocated within 1024 MiB of it", m.describe(globalBase))
	a, err := m.alloc(1000, 256)
	require.NoError(t, err)
	p, err := m.alloc(8, 64)
	require.NoError(t, err)
	p.name, p.parameters = "the parameters", true
	for addr, want := range map[uint64]string{
		a.addr + 999:       "byte 999 of the buffer of 1000 bytes at 0x1000000000",
		a.addr + 1000:      "0 bytes after the end of the buffer of 1000 bytes at 0x1000000000",
		a.addr - 4:         "4 bytes before the buffer of 1000 bytes at 0x1000000000",
		p.addr + 4:         "byte 4 of the parameters (8 bytes at 0x1000002000)",
		p.addr + 8:         "0 bytes after the end of the parameters (8 bytes at 0x1000002000)",
		p.addr + 1<<20:     "1055768 bytes after the end of the buffer of 1000 bytes at 0x1000000000",
		p.addr + 1<<40:     "nothing is allocated within 1024 MiB of it",
		^uint64(0):         "nothing is allocated within 1024 MiB of it",
		0:                  "a null pointer, or a small number in place of one",
		0x408000:           "no pointer to global memory: a number of 32 bits, such as an address of shared memory that was not converted",
		sharedWindow + 0x8: "it is the generic address of byte 0x8 of shared memory",
		localWindow + 0x8:  "it is the generic address of byte 0x8 of local memory",
	} {
		require.Equal(t, want, m.describe(addr), "%#x", addr)
	}
}

// TestMachineMemory: what does not fit in this machine is refused before it is made.
func TestMachineMemory(t *testing.T) {
	d, err := New(Options{})
	require.NoError(t, err)
	require.LessOrEqual(t, d.mem.most, processMemory()/4)
	_, err = d.Alloc(d.mem.most+1, 256)
	require.ErrorContains(t, err, "bytes of global memory: want at most")
	n, ok := numberIn("/proc/meminfo", "MemTotal:")
	require.True(t, !ok || n > 1<<10)
	_, ok = numberIn("/proc/meminfo", "no such text")
	require.False(t, ok)
}
