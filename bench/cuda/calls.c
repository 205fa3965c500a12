//go:build cuda && cgo && linux

// The driver's calls, each forwarded to the library that kgen_driver_open opened. So a
// program starts where there is no driver, and needs none to be linked.
#include <cuda.h>
#include <dlfcn.h>

static void *library;

// kgen_driver_open opens the driver's library; it returns what is wrong, or NULL.
const char *kgen_driver_open(const char *name) {
	if (library) return NULL;
	library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
	return library ? NULL : dlerror();
}

static void *find(const char *symbol) { return library ? dlsym(library, symbol) : NULL; }

#define CALL(name, symbol, params, args)                                \
	CUresult name params {                                          \
		static CUresult(*call) params;                          \
		if (!call) *(void **)&call = find(symbol);              \
		if (!call) return CUDA_ERROR_SHARED_OBJECT_SYMBOL_NOT_FOUND; \
		return call args;                                       \
	}
#include "calls.h"
