package ncu

import (
	"strings"

	"github.com/kgen-dev/kgen/codegen/target"
)

// gpu is the GPU's name, if the launch tells: a raw page has an attribute, the GUI a
// column, and the column Device holds a name or a number.
func (l *launch) gpu() string {
	for _, column := range []string{"device__attribute_display_name", deviceName} {
		if v := l.metrics.get(column); v != nil {
			return v.text
		}
	}
	if strings.Trim(l.device, "0123456789") == "" || absent(l.device) {
		return ""
	}
	return l.device
}

// oneGPU finds the GPU of all launches, and refuses those of two: neither a mean nor a
// roof holds for both.
func (r *Report) oneGPU(all []*launch) error {
	var named, capable *launch
	for _, l := range all {
		if name := l.gpu(); name != "" {
			if named == nil {
				named, r.Device = l, name
			}
			if !sameGPU(r.Device, name) {
				return l.apart(named, name, r.Device)
			}
		}
		if l.cc != "" {
			if capable == nil {
				capable, r.CC = l, l.cc
			}
			if l.cc != r.CC {
				return l.apart(capable, "compute capability "+l.cc, r.CC)
			}
		}
	}
	return nil
}

// apart is the error of a launch on another GPU than one before it.
func (l *launch) apart(before *launch, gpu, earlier string) error {
	return l.first.errorf("kernel %s: on %s, but %s of %s:%d on %s: want the launches of one GPU",
		short(l.kernel), gpu, short(before.kernel), before.first.file, before.first.line, earlier)
}

// sameGPU says whether two names are of one GPU.
func sameGPU(a, b string) bool {
	if a == b {
		return true
	}
	g, err := target.Lookup(a)
	if err != nil {
		return false
	}
	h, err := target.Lookup(b)
	return err == nil && g == h
}

// isVolta says whether the launches were on a chip whose tensor instructions all do the
// same, or nothing tells on which.
func (r *Report) isVolta() bool {
	cc := r.CC
	if g, err := target.Lookup(r.Device); cc == "" && err == nil {
		cc = g.CC.String()
	}
	return cc == "" || cc == "7.0"
}
