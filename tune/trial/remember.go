package trial

import (
	"encoding/json"
	"fmt"

	"github.com/kgen-dev/kgen/bench"
	"github.com/kgen-dev/kgen/codegen/cache"
)

// mostRemembered bounds what of a reference is kept for the next process.
const mostRemembered = 256 << 20

// referenceKey names what a reference computes.
func (k *Kernel) referenceKey(c *compiled, l *bench.CaseLaunch) cache.Key {
	return cache.KeyOf("kgen reference 2", string(c.cubin), fmt.Sprint(*l), fmt.Sprint(k.Spec.Arguments, k.Spec.Sizes, k.Seed), k.Device.Name())
}

// left is what a reference left in a buffer.
type left struct {
	Bytes []byte
	Unset []bool // elements that it did not write; nil if none
}

// remembered fills in what the buffers must hold from the cache.
func (k *Kernel) remembered(key cache.Key, data []bench.CaseBuffer) bool {
	text, ok := k.Cache.Get(key)
	var kept []left
	if !ok || json.Unmarshal(text, &kept) != nil || len(kept) != len(data) {
		return false
	}
	for i := range kept {
		b := &data[i]
		if n := len(kept[i].Unset); int64(len(kept[i].Bytes)) != b.Size() || n != 0 && int64(n*b.Type.Size()) != b.Size() {
			return false
		}
	}
	for i := range kept {
		data[i].Want, data[i].Unset = kept[i].Bytes, kept[i].Unset
	}
	return true
}

// remember keeps what the buffers must hold; that it cannot costs time alone.
func (k *Kernel) remember(key cache.Key, data []bench.CaseBuffer) {
	var kept []left
	total := 0
	for i := range data {
		kept = append(kept, left{data[i].Want, data[i].Unset})
		total += len(data[i].Want) + 6*len(data[i].Unset) // "false,"
	}
	if total > mostRemembered {
		return
	}
	if text, err := json.Marshal(kept); err == nil {
		_ = k.Cache.Put(key, text)
	}
}
