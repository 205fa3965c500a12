package queue

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/kgen-dev/kgen/internal/userfile"
)

// Access is how the ends of a connection prove who they are; the zero value not at all.
type Access struct {
	Token string
	// Files of PEM. A server shows Cert, and asks for a certificate that CA signed if that
	// is there. A client shows Cert to a server that asks, and trusts what CA signed.
	Cert, Key, CA string
}

// maxCA bounds a file of certificates.
const maxCA = 16 << 20

// accessError is a mistake of whoever wants to connect, in their own words.
type accessError struct{ error }

func (accessError) Is(target error) bool { return target == ErrAccess }

func (e accessError) Unwrap() error { return e.error }

func refused(format string, args ...any) error { return accessError{fmt.Errorf(format, args...)} }

// open tells whether anybody gets in.
func (a *Access) open() bool { return a.Token == "" && a.CA == "" }

// tls is the configuration of either end; nil where there is none.
func (a *Access) tls() (*tls.Config, error) {
	if a.Cert == "" && a.Key == "" && a.CA == "" {
		return nil, nil
	}
	c := &tls.Config{MinVersion: tls.VersionTLS13}
	if a.Cert != "" || a.Key != "" {
		pair, err := tls.LoadX509KeyPair(a.Cert, a.Key)
		if err != nil {
			return nil, refused("certificate %q with key %q: %w", a.Cert, a.Key, err)
		}
		c.Certificates = []tls.Certificate{pair}
	}
	if a.CA != "" {
		text, err := userfile.Read(a.CA, maxCA)
		if err != nil {
			return nil, refused("certificates of those to trust: %w", err)
		}
		pool := x509.NewCertPool()
		if !pool.AppendCertsFromPEM(text) {
			return nil, refused("%s: no certificate in PEM", a.CA)
		}
		c.RootCAs, c.ClientCAs = pool, pool
	}
	return c, nil
}

// checkURL refuses what is no address of a server.
func checkURL(text string) error {
	for one := range strings.SplitSeq(text, ",") {
		u, err := url.Parse(strings.TrimSpace(one))
		if err != nil || (u.Scheme != "nats" && u.Scheme != "tls") || u.Hostname() == "" {
			return refused("address %q: want nats://HOST:PORT or tls://HOST:PORT", redacted(one))
		}
		if port, err := strconv.Atoi(cmp.Or(u.Port(), "4222")); err != nil || port < 1 || port > 65535 {
			return refused("address %q: want a port from 1 to 65535", redacted(one))
		}
	}
	return nil
}

// redacted is an address without the secrets in it, which may hold an @ too.
func redacted(text string) string {
	at := strings.LastIndexByte(text, '@')
	if at < 0 {
		return clip(text, 200)
	}
	return "..." + clip(text[at:], 200)
}

// Conn is a connection to a server.
type Conn = nats.Conn

// Connect connects to a server. Errors wrap ErrAccess or ErrUnreachable. When the
// connection breaks later, it is made again, for as long as that takes.
func Connect(addr string, a Access) (*Conn, error) {
	if err := checkURL(addr); err != nil {
		return nil, err
	}
	config, err := a.tls()
	if err != nil {
		return nil, err
	}
	opts := lasting(a.Token)
	if config != nil {
		opts = append(opts, nats.Secure(config))
	}
	c, err := nats.Connect(addr, opts...)
	if err != nil {
		return nil, explain(addr, err)
	}
	return c, nil
}

// lasting are the options of every connection.
func lasting(token string) []nats.Option {
	opts := []nats.Option{nats.Name("kgen"), nats.MaxReconnects(-1), nats.ReconnectWait(retryWait), nats.Timeout(answerWait),
		nats.PingInterval(10 * time.Second), nats.ErrorHandler(func(*nats.Conn, *nats.Subscription, error) {})}
	if token != "" {
		opts = append(opts, nats.Token(token))
	}
	return opts
}

// explain says why a server did not let us in.
func explain(addr string, err error) error {
	addr = redacted(addr)
	var unknown x509.UnknownAuthorityError
	var name x509.HostnameError
	var invalid x509.CertificateInvalidError
	var alert tls.AlertError
	var lookup *net.DNSError
	switch {
	case errors.As(err, &lookup) && lookup.IsNotFound:
		return refused("%s: there is no host called %q", addr, clip(lookup.Name, 100))
	case errors.Is(err, nats.ErrAuthorization), errors.Is(err, nats.ErrAuthExpired):
		return refused("%s refuses the token: want the one that it was started with", addr)
	case errors.Is(err, nats.ErrSecureConnRequired):
		return refused("%s takes TLS alone: want the certificate of those to trust", addr)
	case errors.Is(err, nats.ErrSecureConnWanted):
		return refused("%s has no TLS", addr)
	case errors.As(err, &unknown), errors.As(err, &name), errors.As(err, &invalid), errors.As(err, &alert):
		return refused("%s: %w", addr, err)
	case errors.Is(err, nats.ErrTLS), strings.Contains(err.Error(), "tls: "): // as the other end said
		return refused("%s: %w", addr, err)
	}
	return fmt.Errorf("%w: %s: %w", ErrUnreachable, addr, err)
}

// ConnectPatiently is Connect, and waits for a server that is not there yet: for so long,
// or where that is 0 until ctx ends.
func ConnectPatiently(ctx context.Context, addr string, a Access, long time.Duration, log *slog.Logger) (*Conn, error) {
	if long > 0 {
		late := fmt.Errorf("%w within %v: %s", ErrUnreachable, long, redacted(addr))
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, long, late)
		defer cancel()
	}
	for said := false; ; said = true {
		c, err := connectWhile(ctx, addr, a)
		if ctx.Err() != nil || !errors.Is(err, ErrUnreachable) {
			return c, err
		}
		if !said {
			log.Info("waiting for the server", "address", redacted(addr), "error", err)
		}
		select {
		case <-time.After(retryWait):
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// connectWhile is Connect, which itself nothing interrupts, until ctx ends.
func connectWhile(ctx context.Context, addr string, a Access) (*Conn, error) {
	type answer struct {
		conn *Conn
		err  error
	}
	answered := make(chan answer)
	go func() {
		c, err := Connect(addr, a)
		select {
		case answered <- answer{c, err}:
		case <-ctx.Done():
			if c != nil {
				c.Close()
			}
		}
	}()
	select {
	case r := <-answered:
		return r.conn, r.err
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}
