//go:build cgo && linux

package nvrtc

/*
#define _GNU_SOURCE
#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

// A handler that is not installed.
static void (*keep_signal(int number, void (*handler)(int)))(int) {
	(void)number;
	(void)handler;
	return SIG_DFL;
}

// Where the library is loaded and what its dynamic section points at.
typedef struct {
	uintptr_t base;
	const ElfW(Sym) *symbols;
	const char *names;
} image;

// redirect makes a table's relocations of signal lead to keep_signal.
static void redirect(const image *m, const ElfW(Rela) *table, size_t bytes) {
	for (size_t i = 0; i < bytes / sizeof *table; i++) {
		size_t symbol = sizeof(void *) == 8 ? ELF64_R_SYM(table[i].r_info) : ELF32_R_SYM(table[i].r_info);
		if (!symbol || strcmp(m->names + m->symbols[symbol].st_name, "signal")) continue;
		uintptr_t slot = m->base + table[i].r_offset, page = sysconf(_SC_PAGESIZE);
		// Bound at once, the slot may be read-only by now.
		if (mprotect((void *)(slot & -page), page, PROT_READ | PROT_WRITE)) continue;
		__atomic_store_n((void **)slot, (void *)keep_signal, __ATOMIC_RELEASE);
	}
}

// keep_handlers keeps a loaded library from installing signal handlers by
// signal.
static void keep_handlers(void *lib) {
	struct link_map *loaded;
	if (dlinfo(lib, RTLD_DI_LINKMAP, &loaded)) return;
	image m = {loaded->l_addr, NULL, NULL};
	const ElfW(Rela) *calls = NULL, *data = NULL;
	size_t calls_bytes = 0, data_bytes = 0;
	int with_addends = 0;
	for (const ElfW(Dyn) *d = loaded->l_ld; d->d_tag != DT_NULL; d++) {
		switch (d->d_tag) {
		case DT_SYMTAB: m.symbols = (const void *)d->d_un.d_ptr; break;
		case DT_STRTAB: m.names = (const void *)d->d_un.d_ptr; break;
		case DT_JMPREL: calls = (const void *)d->d_un.d_ptr; break;
		case DT_PLTRELSZ: calls_bytes = d->d_un.d_val; break;
		case DT_PLTREL: with_addends = d->d_un.d_val == DT_RELA; break;
		case DT_RELA: data = (const void *)d->d_un.d_ptr; break;
		case DT_RELASZ: data_bytes = d->d_un.d_val; break;
		}
	}
	// Other C libraries than glibc leave these as offsets in the file.
	if (!m.symbols || !m.names || (uintptr_t)m.symbols < m.base || (uintptr_t)m.names < m.base) return;
	if (calls && with_addends) redirect(&m, calls, calls_bytes);
	if (data) redirect(&m, data, data_bytes);
}
*/
import "C"

import "unsafe"

// keepHandlers keeps a library from installing signal handlers. While NVRTC
// compiles it has its own for SIGINT and SIGTERM, which end the process, and
// afterwards it puts the earlier ones back without the flags that Go's need.
func keepHandlers(library unsafe.Pointer) { C.keep_handlers(library) }
