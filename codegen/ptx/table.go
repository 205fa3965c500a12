package ptx

import (
	"sort"
	"strings"
)

// splitName finds the table's longest name that an instruction's words begin
// with. It returns the name and how many of the dotted words belong to it.
func splitName(first string, words []string) (name string, used int) {
	for _, n := range longNames[first] {
		if rest, ok := cutName(n, words); ok {
			return n, rest
		}
	}
	return first, 0
}

func cutName(name string, words []string) (used int, ok bool) {
	_, rest, _ := strings.Cut(name, ".")
	for rest != "" {
		var w string
		w, rest, _ = strings.Cut(rest, ".")
		if used == len(words) || words[used] != w {
			return 0, false
		}
		used++
	}
	return used, true
}

// longNames lists the table's names of more than one word by their first word,
// longest first.
var longNames = func() map[string][]string {
	m := map[string][]string{}
	for _, n := range dottedNames {
		first, _, _ := strings.Cut(n, ".")
		m[first] = append(m[first], n)
	}
	for _, all := range m {
		sort.Slice(all, func(i, j int) bool { return len(all[i]) > len(all[j]) })
	}
	return m
}()

// dottedNames are the instructions whose name has several words. What follows
// the name is modifiers.
var dottedNames = []string{
	"bar.warp.sync", "barrier.cluster", "brx.idx",
	"cp.async", "cp.async.commit_group", "cp.async.wait_group", "cp.async.wait_all", "cp.async.mbarrier.arrive",
	"cp.async.bulk", "cp.async.bulk.tensor", "cp.async.bulk.prefetch", "cp.async.bulk.prefetch.tensor",
	"cp.async.bulk.commit_group", "cp.async.bulk.wait_group",
	"cp.reduce.async.bulk", "cp.reduce.async.bulk.tensor",
	"cvt.pack", "fence.proxy", "fence.mbarrier_init", "membar.proxy",
	"mbarrier.init", "mbarrier.inval", "mbarrier.expect_tx", "mbarrier.complete_tx", "mbarrier.arrive",
	"mbarrier.arrive_drop", "mbarrier.test_wait", "mbarrier.try_wait", "mbarrier.pending_count",
	"multimem.ld_reduce", "multimem.st", "multimem.red", "multimem.cp.async.bulk", "multimem.cp.reduce.async.bulk",
	"red.async", "st.async", "st.bulk", "tensormap.replace", "tensormap.cp_fenceproxy",
	"wmma.load", "wmma.store", "wmma.mma",
	"wgmma.fence", "wgmma.mma_async", "wgmma.commit_group", "wgmma.wait_group",
	"tcgen05.alloc", "tcgen05.dealloc", "tcgen05.relinquish_alloc_permit", "tcgen05.ld", "tcgen05.st",
	"tcgen05.wait::ld", "tcgen05.wait::st", "tcgen05.cp", "tcgen05.shift", "tcgen05.mma", "tcgen05.commit",
	"tcgen05.fence::before_thread_sync", "tcgen05.fence::after_thread_sync",
	"clusterlaunchcontrol.try_cancel", "clusterlaunchcontrol.query_cancel",
}
