//go:build cgo

package nvrtc

import "unsafe"

// keepHandlers does nothing: there is no NVRTC for this system.
func keepHandlers(unsafe.Pointer) {}
