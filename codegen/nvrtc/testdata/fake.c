// A stand-in for an old NVRTC: version 11.2, which knows sm_35 to sm_80, has no
// flow callback and gives the size 0 for a cubin. Sizes are what the build says.
#include <string.h>
#include <unistd.h>

struct program { int unused; };
static struct program only;

int nvrtcVersion(int *major, int *minor) { *major = 11; *minor = 2; return 0; }
#ifdef MANY_ARCHS
int nvrtcGetNumSupportedArchs(int *n) { *n = 1 << 30; return 0; }
#else
int nvrtcGetNumSupportedArchs(int *n) { *n = 3; return 0; }
#endif
int nvrtcGetSupportedArchs(int *archs) { archs[0] = 80; archs[1] = 35; archs[2] = 70; return 0; }
const char *nvrtcGetErrorString(int result) { return result == 11 ? "NVRTC_ERROR_INTERNAL_ERROR" : "NVRTC_ERROR"; }
int nvrtcCreateProgram(void **p, const char *src, const char *name, int n, const char *const *a, const char *const *b) {
	*p = strstr(src, "no program") ? 0 : &only;
	return *p ? 0 : 1;
}
int nvrtcAddNameExpression(void *p, const char *expression) { return 0; }
int nvrtcGetLoweredName(void *p, const char *expression, const char **name) { *name = expression; return 0; }
int nvrtcDestroyProgram(void **p) { *p = 0; return 0; }
int nvrtcCompileProgram(void *p, int n, const char *const *options) {
	for (int i = 0; i < n; i++)
		if (strcmp(options[i], "--crash") == 0) return 11;
		else if (strcmp(options[i], "--hang") == 0) pause();
	return 0;
}
#ifndef LOG_SIZE
#define LOG_SIZE 1
#endif
#ifndef PTX_SIZE
#define PTX_SIZE 5
#endif
int nvrtcGetProgramLogSize(void *p, size_t *n) { *n = LOG_SIZE; return 0; }
int nvrtcGetProgramLog(void *p, char *log) { *log = 0; return 0; }
int nvrtcGetPTXSize(void *p, size_t *n) { *n = PTX_SIZE; return 0; }
int nvrtcGetPTX(void *p, char *ptx) { memcpy(ptx, "fake", 5); return 0; }
#ifndef WITHOUT_CUBIN
int nvrtcGetCUBINSize(void *p, size_t *n) { *n = 0; return 0; }
int nvrtcGetCUBIN(void *p, char *image) { return 11; }
#endif
