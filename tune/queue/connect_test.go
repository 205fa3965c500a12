package queue_test

import (
	"context"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kgen-dev/kgen/tune/queue"
)

// An address at which there can be no server is refused at once.
func TestImpossibleAddress(t *testing.T) {
	for _, url := range []string{"nats://127.0.0.1:0", "nats://127.0.0.1:65536", "nats://:4222", "http://127.0.0.1:1", "127.0.0.1:1", "", "nats://127.0.0.1:1,nats://127.0.0.1:x"} {
		_, err := queue.ConnectPatiently(t.Context(), url, queue.Access{}, 0, quiet())
		require.ErrorIs(t, err, queue.ErrAccess, url)
		require.ErrorContains(t, err, "want ", url)
	}
}

// No part of a password comes into an error, not even of one that holds an @.
func TestErrorsKeepSecrets(t *testing.T) {
	for _, url := range []string{"http://me:se@cret@host", "nats://se@cret@127.0.0.1:65536", "nats://127.0.0.1:1,http://cret@127.0.0.1"} {
		_, err := queue.Connect(url, queue.Access{})
		require.ErrorIs(t, err, queue.ErrAccess, url)
		require.NotContains(t, err.Error(), "cret")
	}
	_, err := queue.Connect("nats://me:se@cret@127.0.0.1:1", queue.Access{})
	require.ErrorIs(t, err, queue.ErrUnreachable)
	require.NotContains(t, err.Error(), "cret")
}

// silent is the address of a server that takes connections and says nothing.
func silent(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { l.Close() })
	return l.Addr().String()
}

// Whoever waits for a server does so for as long as it was told to, and leaves when it is
// told to, whether nobody answers or somebody who says nothing.
func TestPatienceEnds(t *testing.T) {
	for _, url := range []string{"nats://127.0.0.1:1", "nats://" + silent(t)} {
		_, err := queue.ConnectPatiently(t.Context(), url, queue.Access{}, 50*time.Millisecond, quiet())
		require.ErrorIs(t, err, queue.ErrUnreachable)
		require.NotErrorIs(t, err, queue.ErrAccess)
		require.ErrorContains(t, err, "no server answers within 50ms: "+url)

		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(50*time.Millisecond, cancel)
		_, err = queue.ConnectPatiently(ctx, url, queue.Access{}, 0, quiet())
		require.ErrorIs(t, err, context.Canceled)
	}
}
