package queue_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kgen-dev/kgen/bench"
	"github.com/kgen-dev/kgen/tune/queue"
)

// authority signs certificates and writes them as files.
type authority struct {
	dir  string
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	CA   string
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	a := &authority{dir: t.TempDir()}
	a.CA, _ = a.make(t, "ca")
	return a
}

// make makes a certificate: the authority's own, or one for this machine.
func (a *authority) make(t *testing.T, name string) (cert, key string) {
	t.Helper()
	k, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	c := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: name},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign, BasicConstraintsValid: true, IsCA: a.cert == nil,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	if a.cert == nil {
		a.cert, a.key = c, k
	}
	der, err := x509.CreateCertificate(rand.Reader, c, a.cert, &k.PublicKey, a.key)
	require.NoError(t, err)
	secret, err := x509.MarshalECPrivateKey(k)
	require.NoError(t, err)
	cert, key = filepath.Join(a.dir, name+".pem"), filepath.Join(a.dir, name+".key")
	require.NoError(t, os.WriteFile(cert, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600))
	require.NoError(t, os.WriteFile(key, pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: secret}), 0o600))
	return cert, key
}

// Both ends show certificates: without one, with another's, or with the wrong CA nobody
// gets in.
func TestTLS(t *testing.T) {
	ours, theirs := newAuthority(t), newAuthority(t)
	a := queue.Access{CA: ours.CA}
	a.Cert, a.Key = ours.make(t, "server")
	s := serve(t, filepath.Join(t.TempDir(), "queue"), "127.0.0.1:0", a)
	c, err := s.Connect()
	require.NoError(t, err)
	defer func() {
		c.Close()
		require.NoError(t, s.Close())
	}()
	require.True(t, strings.HasPrefix(s.URL(), "tls://"), s.URL())
	b, err := queue.Open(t.Context(), c, options(identity))
	require.NoError(t, err)
	defer b.Close()

	worker := queue.Access{CA: ours.CA}
	worker.Cert, worker.Key = ours.make(t, "worker")
	stop, _ := workAs(t, s.URL(), "w", identity, 1, &trier{}, worker)
	defer stop()
	tuneAll(t, b, 3, bench.Predicted)

	foreign := queue.Access{CA: ours.CA}
	foreign.Cert, foreign.Key = theirs.make(t, "foreign")
	for name, bad := range map[string]queue.Access{
		"none": {CA: ours.CA}, "another's": foreign, "wrong CA": {CA: theirs.CA, Cert: worker.Cert, Key: worker.Key},
		"no TLS": {}, "no file": {CA: "none.pem"}, "no key": {Cert: worker.Cert, Key: worker.Cert},
	} {
		_, err := queue.Connect(s.URL(), bad)
		require.ErrorIs(t, err, queue.ErrAccess, name)
	}

	_, err = queue.Serve(queue.ServerOptions{Addr: "127.0.0.1:0", Dir: filepath.Join(t.TempDir(), "q"), Access: queue.Access{CA: ours.CA}, Log: quiet()})
	require.ErrorContains(t, err, "want a certificate and its key")
}
