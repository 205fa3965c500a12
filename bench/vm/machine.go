package vm

import (
	"bytes"
	"os"
	"strconv"
)

// mostMemory bounds the global memory of a virtual machine where nothing else is
// said: to a quarter of what this machine lets a process have, as there are up to three
// bits beside each byte, and whoever compares a buffer has it before, after and as wanted.
func mostMemory() int64 {
	const most = 16 << 30
	return min(most, processMemory()/4)
}

// processMemory is how many bytes this machine lets a process have, as far as it says.
func processMemory() int64 {
	least := int64(1) << 62
	for _, f := range []struct {
		name, before string
		unit         int64
	}{
		{"/proc/meminfo", "MemTotal:", 1 << 10},
		{"/proc/self/limits", "Max address space", 1},
		{"/proc/self/limits", "Max data size", 1},
		{"/sys/fs/cgroup/memory.max", "", 1},
		{"/sys/fs/cgroup/memory/memory.limit_in_bytes", "", 1},
	} {
		if n, ok := numberIn(f.name, f.before); ok && n <= (1<<62)/f.unit {
			least = min(least, n*f.unit)
		}
	}
	return least
}

// numberIn is the number that follows some text in a file of the system's; false
// where there is none, as on other systems.
func numberIn(file, before string) (int64, bool) {
	text, err := os.ReadFile(file)
	if err != nil {
		return 0, false
	}
	_, rest, ok := bytes.Cut(text, []byte(before))
	fields := bytes.Fields(rest)
	if !ok || len(fields) == 0 {
		return 0, false
	}
	n, err := strconv.ParseInt(string(fields[0]), 10, 64)
	return n, err == nil
}
