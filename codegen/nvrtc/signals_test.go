//go:build linux

package nvrtc_test

import (
	"os"
	"os/signal"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kgen-dev/kgen/codegen/nvrtc"
	"github.com/kgen-dev/kgen/codegen/nvrtc/nvrtctest"
)

// TestCompileLeavesSignalsAlone: signals that come at every moment of a
// compilation, and after it, reach this program's handlers and not NVRTC's, which
// end the process.
func TestCompileLeavesSignalsAlone(t *testing.T) {
	c := nvrtctest.Compiler(t)
	heard := make(chan os.Signal, 1)
	signal.Notify(heard, os.Interrupt, syscall.SIGTERM)
	defer signal.Stop(heard)

	send := func(s syscall.Signal) {
		require.NoError(t, syscall.Kill(os.Getpid(), s))
		require.Equal(t, os.Signal(s), <-heard)
	}
	done := make(chan error)
	go func() {
		_, err := c.Compile(t.Context(), nvrtc.Source{Name: "reverse.cu", Text: reverse}, nvrtc.Options{Arch: "sm_80"})
		done <- err
	}()
	for {
		send(syscall.SIGINT)
		send(syscall.SIGTERM)
		select {
		case err := <-done:
			require.NoError(t, err)
			send(syscall.SIGINT)
			return
		case <-time.After(100 * time.Microsecond):
		}
	}
}
