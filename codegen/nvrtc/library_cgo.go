//go:build cgo && (linux || darwin)

package nvrtc

/*
#cgo linux LDFLAGS: -ldl
#include <dlfcn.h>
#include <stdlib.h>

// The part of NVRTC's interface used here, declared anew so that no header of
// CUDA is needed. Results are 0 for success.
typedef struct program *program;

typedef struct {
	int (*version)(int *major, int *minor);
	int (*num_archs)(int *n);
	int (*archs)(int *archs);
	const char *(*error_string)(int result);
	int (*create)(program *p, const char *src, const char *name, int headers, const char *const *texts, const char *const *names);
	int (*destroy)(program *p);
	int (*compile)(program p, int n, const char *const *options);
	int (*log_size)(program p, size_t *n);
	int (*log)(program p, char *text);
	int (*ptx_size)(program p, size_t *n);
	int (*ptx)(program p, char *text);
	int (*cubin_size)(program p, size_t *n);
	int (*cubin)(program p, char *image);
	int (*add_name)(program p, const char *expression);
	int (*lowered_name)(program p, const char *expression, const char **name);
	int (*set_flow_callback)(program p, int (*callback)(void *, void *), void *payload);
} api;

// load fills the table; it returns the name of a required symbol that is
// missing, or NULL.
static const char *load(void *lib, api *f) {
	struct { const char *name; void *slot; int optional; } symbols[] = {
		{"nvrtcVersion", &f->version, 0},
		{"nvrtcGetNumSupportedArchs", &f->num_archs, 1},
		{"nvrtcGetSupportedArchs", &f->archs, 1},
		{"nvrtcGetErrorString", &f->error_string, 0},
		{"nvrtcCreateProgram", &f->create, 0},
		{"nvrtcDestroyProgram", &f->destroy, 0},
		{"nvrtcCompileProgram", &f->compile, 0},
		{"nvrtcGetProgramLogSize", &f->log_size, 0},
		{"nvrtcGetProgramLog", &f->log, 0},
		{"nvrtcGetPTXSize", &f->ptx_size, 0},
		{"nvrtcGetPTX", &f->ptx, 0},
		{"nvrtcGetCUBINSize", &f->cubin_size, 0},
		{"nvrtcGetCUBIN", &f->cubin, 0},
		{"nvrtcAddNameExpression", &f->add_name, 0},
		{"nvrtcGetLoweredName", &f->lowered_name, 0},
		{"nvrtcSetFlowCallback", &f->set_flow_callback, 1},
	};
	for (size_t i = 0; i < sizeof symbols / sizeof symbols[0]; i++) {
		void *sym = dlsym(lib, symbols[i].name);
		if (!sym && !symbols[i].optional) return symbols[i].name;
		*(void **)symbols[i].slot = sym;
	}
	return NULL;
}

static int call_version(api *f, int *major, int *minor) { return f->version(major, minor); }
static int call_num_archs(api *f, int *n) { return f->num_archs ? f->num_archs(n) : (*n = 0, 0); }
static int call_archs(api *f, int *archs) { return f->archs(archs); }
static const char *call_error_string(api *f, int result) { return f->error_string(result); }
static int call_create(api *f, program *p, const char *src, const char *name) { return f->create(p, src, name, 0, NULL, NULL); }
static int call_destroy(api *f, program *p) { return f->destroy(p); }
static int call_compile(api *f, program p, int n, const char **options) { return f->compile(p, n, options); }
static int call_add_name(api *f, program p, const char *expression) { return f->add_name(p, expression); }
static int call_lowered_name(api *f, program p, const char *expression, const char **name) { return f->lowered_name(p, expression, name); }

// The three outputs are read alike: a size, then that many bytes.
enum output { LOG, PTX, CUBIN };
static int call_size(api *f, enum output which, program p, size_t *n) {
	switch (which) {
	case LOG: return f->log_size(p, n);
	case PTX: return f->ptx_size(p, n);
	default: return f->cubin_size(p, n);
	}
}
static int call_read(api *f, enum output which, program p, char *to) {
	switch (which) {
	case LOG: return f->log(p, to);
	case PTX: return f->ptx(p, to);
	default: return f->cubin(p, to);
	}
}

// The callback's answer is the flag it is given: 1 cancels the compilation.
static int cancelled(void *flag, void *reserved) { (void)reserved; return __atomic_load_n((int *)flag, __ATOMIC_ACQUIRE); }
static void cancel(int *flag) { __atomic_store_n(flag, 1, __ATOMIC_RELEASE); }
static void watch(api *f, program p, int *flag) { if (f->set_flow_callback) f->set_flow_callback(p, cancelled, flag); }
*/
import "C"

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"unsafe"
)

// NVRTC's results that are told apart.
const (
	resultCompilation   = 6
	resultInvalidOption = 5
)

// library is NVRTC's table of functions. It stays loaded as long as the
// process: NVRTC keeps threads and state that do not survive an unload.
type library struct {
	path string
	api  *C.api
}

func openLibrary(path string) (*library, error) {
	// NVRTC asks the loader for its builtins by bare name, which finds them
	// only when they are loaded already or on the loader's path.
	if dir := filepath.Dir(path); dir != "." {
		for _, builtins := range newestFirst(dir, "libnvrtc-builtins.so*") {
			if _, err := dlopen(builtins); err == nil {
				break
			}
		}
	}
	handle, err := dlopen(path)
	if err != nil {
		return nil, err
	}
	keepHandlers(handle)
	api := (*C.api)(C.calloc(1, C.size_t(unsafe.Sizeof(C.api{}))))
	if missing := C.load(handle, api); missing != nil {
		C.free(unsafe.Pointer(api))
		return nil, fmt.Errorf("%s has no symbol %s: want NVRTC 11.1 or newer", path, C.GoString(missing))
	}
	return &library{path: path, api: api}, nil
}

func dlopen(path string) (unsafe.Pointer, error) {
	name := C.CString(path)
	defer C.free(unsafe.Pointer(name))
	C.dlerror()
	if handle := C.dlopen(name, C.RTLD_NOW|C.RTLD_LOCAL); handle != nil {
		return handle, nil
	}
	return nil, fmt.Errorf("loading %s: %s", path, C.GoString(C.dlerror()))
}

func (l *library) err(call string, result C.int) error {
	if result == 0 {
		return nil
	}
	return fmt.Errorf("%s: %s (%d)", call, C.GoString(C.call_error_string(l.api, result)), int(result))
}

func (l *library) version() (major, minor int, err error) {
	var a, b C.int
	err = l.err("nvrtcVersion", C.call_version(l.api, &a, &b))
	return int(a), int(b), err
}

func (l *library) archs() ([]int, error) {
	var n C.int
	if err := l.err("nvrtcGetNumSupportedArchs", C.call_num_archs(l.api, &n)); err != nil || n <= 0 {
		return nil, err
	}
	if n > maxArchs {
		return nil, fmt.Errorf("nvrtcGetNumSupportedArchs: %d architectures: want at most %d", int(n), maxArchs)
	}
	list := make([]C.int, n)
	if err := l.err("nvrtcGetSupportedArchs", C.call_archs(l.api, &list[0])); err != nil {
		return nil, err
	}
	archs := make([]int, n)
	for i, a := range list {
		archs[i] = int(a)
	}
	return archs, nil
}

func (l *library) compile(ctx context.Context, src Source, arch, kernel string, flags []string) (*Result, error) {
	text, name := C.CString(src.Text), C.CString(src.Name)
	defer C.free(unsafe.Pointer(text))
	defer C.free(unsafe.Pointer(name))
	var p C.program
	if err := l.err("nvrtcCreateProgram", C.call_create(l.api, &p, text, name)); err != nil {
		return nil, err
	}
	defer C.call_destroy(l.api, &p)

	expression := C.CString(kernel)
	defer C.free(unsafe.Pointer(expression))
	if kernel != "" {
		if err := l.err("nvrtcAddNameExpression", C.call_add_name(l.api, p, expression)); err != nil {
			return nil, err
		}
	}
	result := l.run(ctx, p, flags)
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	log, err := l.output(C.LOG, p)
	if err != nil {
		return nil, err
	}
	r := &Result{Log: cleanLog(string(log))}
	switch {
	case result == resultCompilation || result == resultInvalidOption && r.Log != "":
		return nil, &CompileError{Source: src.Name, Arch: arch, Log: r.Log, Diagnostics: Diagnose(r.Log)}
	case result != 0:
		return nil, fmt.Errorf("compiling %s for %s: %w", src.Name, arch, l.err("nvrtcCompileProgram", result))
	}
	if kernel != "" {
		var lowered *C.char
		if err := l.err("nvrtcGetLoweredName", C.call_lowered_name(l.api, p, expression, &lowered)); err != nil {
			return nil, err
		}
		r.Kernel = C.GoString(lowered)
	}
	if r.PTX, err = l.output(C.PTX, p); err != nil {
		return nil, err
	}
	r.PTX = r.PTX[:len(strings.TrimRight(string(r.PTX), "\x00"))]
	if strings.HasPrefix(arch, "sm_") {
		r.Cubin, err = l.output(C.CUBIN, p)
	}
	return r, err
}

// run compiles p until it is done or ctx is.
func (l *library) run(ctx context.Context, p C.program, flags []string) C.int {
	options := make([]*C.char, len(flags))
	for i, f := range flags {
		options[i] = C.CString(f)
		defer C.free(unsafe.Pointer(options[i]))
	}
	flag := (*C.int)(C.calloc(1, C.size_t(unsafe.Sizeof(C.int(0)))))
	defer C.free(unsafe.Pointer(flag))
	C.watch(l.api, p, flag)
	done := make(chan struct{})
	stop := context.AfterFunc(ctx, func() { C.cancel(flag); close(done) })
	result := C.call_compile(l.api, p, C.int(len(options)), unsafe.SliceData(options))
	if !stop() {
		<-done // the flag must outlive its writer
	}
	return result
}

func (l *library) output(which C.enum_output, p C.program) ([]byte, error) {
	var n C.size_t
	if err := l.err("reading NVRTC's output", C.call_size(l.api, which, p, &n)); err != nil || n == 0 {
		return nil, err
	}
	limit := C.size_t(maxImage)
	if which == C.LOG {
		limit = maxLog
	}
	if n > limit {
		return nil, fmt.Errorf("reading NVRTC's output: it states %d bytes: want at most %d", uint64(n), uint64(limit))
	}
	b := make([]byte, n)
	err := l.err("reading NVRTC's output", C.call_read(l.api, which, p, (*C.char)(unsafe.Pointer(&b[0]))))
	return b, err
}
