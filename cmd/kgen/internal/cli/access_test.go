package cli

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// What is recorded of a command holds no secret, in whatever form it was given.
func TestCommandLine(t *testing.T) {
	for given, want := range map[string]string{
		"kgen tune gemm --gpu h100":            "kgen tune gemm --gpu h100",
		"kgen tune --token=secret gemm":        "kgen tune --token=... gemm",
		"kgen tune --token secret gemm":        "kgen tune --token ... gemm",
		"kgen tune --token":                    "kgen tune --token",
		"kgen tune --token-file t gemm":        "kgen tune --token-file t gemm",
		"kgen worker nats://secret@host:4222":  "kgen worker nats://...@host:4222",
		"kgen worker nats://me:se@cret@host/x": "kgen worker nats://...@host/x",
		"kgen tune --workers=tls://secret@h":   "kgen tune --workers=tls://...@h",
		"kgen worker nats://secret/@host":      "kgen worker nats://...@host",
		"kgen worker nats://host:4222":         "kgen worker nats://host:4222",
		"kgen check a@b://c":                   "kgen check a@b://c",
	} {
		require.Equal(t, want, commandLine(strings.Fields(given)), given)
	}
}
