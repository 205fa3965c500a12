package bench

import (
	"fmt"
	"strconv"
	"strings"
)

// NewCase is the text of a case to fill in: one launch of a kernel, and for each
// parameter an argument of a form that fits. What a 64-bit parameter is, PTX does
// not say: it is taken for a pointer.
func NewCase(k *Kernel, ptxFile string) string {
	args := make([]string, len(k.Params))
	for i, p := range k.Params {
		args[i] = "  " + argumentToFill(&p, i)
	}
	list := ""
	if len(args) > 0 {
		list = "\n" + strings.Join(args, ",\n") + "\n "
	}
	cluster := ""
	if k.ReqCluster != [3]uint32{} && !k.BlocksAreClusters {
		cluster = fmt.Sprintf(" \"cluster\": %s,\n", extentText(k.ReqCluster))
	}
	return fmt.Sprintf(`{
 "ptx": %s,
 "kernel": %s,
 "grid": [1],
 "block": %s,
%s "dynamic_shared": 0,
 "args": [%s],
 "tolerance": {"absolute": 0, "relative": 0},
 "fault": null,
 "note": "To fill in: grid, block, values, the files (numpy.save) and types of buffers, and \"want\" for those to compare. A buffer that is only written: {\"uninitialised\": 100, \"type\": \"f32\"}; a 64-bit number that is no buffer: {\"u64\": 0}."
}
`, strconv.Quote(ptxFile), strconv.Quote(k.Name), extentText(blockToFill(k)), cluster, list)
}

func argumentToFill(p *Param, i int) string {
	bytes := fmt.Sprintf(`{"bytes": "%s"}`, strings.Repeat("00", int(p.Size)))
	if bits, err := strconv.Atoi(p.Type[min(1, len(p.Type)):]); err != nil || int64(bits) != 8*p.Size {
		return bytes // an array or structure
	}
	switch p.Type {
	case "u64", "s64", "b64":
		return fmt.Sprintf(`{"buffer": "arg%d.npy", "type": "f32"}`, i)
	case "f32", "f64", "u32", "u16", "u8":
		return fmt.Sprintf(`{"%s": 0}`, p.Type)
	case "s32", "s16", "s8":
		return fmt.Sprintf(`{"i%s": 0}`, p.Type[1:])
	case "b32":
		return `{"u32": 0}`
	}
	return bytes
}

// blockToFill is the block that a kernel requires, or else one that it takes.
func blockToFill(k *Kernel) [3]uint32 {
	if k.ReqThreads != [3]uint32{} {
		return k.ReqThreads
	}
	if n := k.MaxThreads; n != [3]uint32{} {
		return [3]uint32{min(n[0]*max(n[1], 1)*max(n[2], 1), 128), 1, 1}
	}
	return [3]uint32{128, 1, 1}
}

// extentText is extents as JSON, without ones at the end.
func extentText(e [3]uint32) string {
	words := []string{}
	for _, n := range e {
		words = append(words, strconv.Itoa(int(max(n, 1))))
	}
	for len(words) > 1 && words[len(words)-1] == "1" {
		words = words[:len(words)-1]
	}
	return "[" + strings.Join(words, ", ") + "]"
}
