package queue

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
)

// Server is a server of this process's own.
type Server struct {
	ns     *server.Server
	dir    string
	token  string
	host   string
	secure bool
	unlock func()
}

// mostPayload is what one message on a server of our own may have; another's usually
// takes a megabyte.
const mostPayload = 16 << 20

// startWait is how long a server may take to be there.
const startWait = 30 * time.Second

// ServerOptions are a server's.
type ServerOptions struct {
	Addr   string // HOST:PORT, or :PORT for every address of the machine; port 0 is any
	Dir    string // its own folder, made if need be; Close removes it
	Access Access
	Log    *slog.Logger
}

// Check refuses what Serve does, and starts nothing: an address that is none or in use, and
// one that others can reach without a token or a CA.
func (o *ServerOptions) Check() error {
	host, port, _, err := o.read()
	if err != nil {
		return err
	}
	return canListen(host, port)
}

// read takes the options apart.
func (o *ServerOptions) read() (host string, port int, config *tls.Config, err error) {
	if host, port, err = splitAddr(o.Addr); err != nil {
		return "", 0, nil, err
	}
	if o.Access.open() && !isLoopback(host) {
		return "", 0, nil, refused("%s can be reached by others, and whoever reaches it has code run: want a token, or a CA that signs the workers' certificates", o.Addr)
	}
	if config, err = o.Access.tls(); err != nil {
		return "", 0, nil, err
	}
	if config != nil && len(config.Certificates) == 0 {
		return "", 0, nil, refused("a server with TLS: want a certificate and its key")
	}
	return host, port, config, nil
}

// canListen says why nobody can listen at an address, which the server itself does not.
func canListen(host string, port int) error {
	l, err := net.Listen("tcp", net.JoinHostPort(host, strconv.Itoa(max(0, port))))
	if err != nil {
		return refused("%w", err)
	}
	return l.Close()
}

// Serve starts a server. What a killed process left in the folder is there again. Without
// a token or a CA it listens on this machine's own address alone.
func Serve(o ServerOptions) (*Server, error) {
	host, port, config, err := o.read()
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(o.Dir, 0o700); err != nil {
		return nil, err
	}
	unlock, err := Lock(o.Dir + ".lock")
	if err != nil {
		return nil, fmt.Errorf("folder of the queue %s: %w", o.Dir, err)
	}
	sweep(filepath.Dir(o.Dir))
	opts := &server.Options{
		ServerName: "kgen", Host: host, Port: port, Authorization: o.Access.Token, MaxPayload: mostPayload,
		JetStream: true, StoreDir: o.Dir, NoLog: true, NoSigs: true, DisableJetStreamBanner: true,
	}
	if config != nil {
		secure(opts, config)
	}
	s := &Server{dir: o.Dir, token: o.Access.Token, host: host, secure: config != nil, unlock: unlock}
	if err := s.start(opts, o.Log); err != nil {
		unlock()
		return nil, err
	}
	return s, nil
}

func (s *Server) start(opts *server.Options, log *slog.Logger) error {
	err := canListen(opts.Host, opts.Port)
	if err != nil {
		return err
	}
	if s.ns, err = server.NewServer(opts); err != nil {
		return err
	}
	words := &serverLog{log: log}
	s.ns.SetLogger(words, false, false)
	s.ns.Start()
	if !s.ns.ReadyForConnections(startWait) {
		s.stop()
		return fmt.Errorf("the server did not start: %v", words.last.Load())
	}
	return nil
}

func (s *Server) stop() {
	s.ns.Shutdown()
	s.ns.WaitForShutdown()
}

// Connect is a connection of this process to its own server.
func (s *Server) Connect() (*nats.Conn, error) {
	return nats.Connect("", append(lasting(s.token), nats.InProcessServer(s.ns))...)
}

// URL is where workers find the server.
func (s *Server) URL() string {
	scheme := "nats"
	if s.secure {
		scheme = "tls"
	}
	host := s.host
	if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
		if name, err := os.Hostname(); err == nil {
			host = name
		}
	}
	_, port, err := net.SplitHostPort(s.ns.Addr().String())
	if err != nil {
		return ""
	}
	return scheme + "://" + net.JoinHostPort(host, port)
}

// Close ends the server and removes its folder.
func (s *Server) Close() error {
	s.stop()
	defer s.unlock()
	return errors.Join(os.RemoveAll(s.dir), os.Remove(s.dir+".lock"))
}

func splitAddr(addr string) (host string, port int, err error) {
	host, text, err := net.SplitHostPort(addr)
	if err == nil {
		port, err = strconv.Atoi(text)
	}
	if err != nil || port < 0 || port > 65535 {
		return "", 0, refused("address %q: want HOST:PORT, or :PORT for every address of this machine", addr)
	}
	if host == "" {
		host = "0.0.0.0"
	}
	if port == 0 {
		port = server.RANDOM_PORT
	}
	return host, port, nil
}

func isLoopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// sweep removes the folders of servers that were killed and never came back.
func sweep(dir string) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return // whoever needs the folder says so
	}
	for _, e := range entries {
		name, ok := strings.CutSuffix(e.Name(), ".lock")
		info, err := e.Info()
		if !ok || err != nil || time.Since(info.ModTime()) < keptFor {
			continue
		}
		path := filepath.Join(dir, name)
		if unlock, err := Lock(path + ".lock"); err == nil {
			_ = os.RemoveAll(path) // it is tried again
			if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
				_ = os.Remove(path + ".lock")
			}
			unlock()
		}
	}
}

// serverLog passes on what the server has to say of trouble.
type serverLog struct {
	log  *slog.Logger
	last atomic.Value // string
}

func (l *serverLog) trouble(format string, v []any) {
	text := fmt.Sprintf(format, v...)
	l.last.Store(text)
	if strings.Contains(text, "authentication error") {
		l.log.Warn("a worker without the right token was refused", "server", text)
		return
	}
	l.log.Debug("server", "message", text)
}

func (l *serverLog) Errorf(format string, v ...any) { l.trouble(format, v) }
func (l *serverLog) Fatalf(format string, v ...any) { l.trouble(format, v) }
func (l *serverLog) Warnf(format string, v ...any)  { l.trouble(format, v) }

func (*serverLog) Noticef(string, ...any) {}
func (*serverLog) Debugf(string, ...any)  {}
func (*serverLog) Tracef(string, ...any)  {}

// secure has a server take TLS alone, and of clients a certificate if it can judge one.
func secure(o *server.Options, c *tls.Config) {
	if c.ClientCAs != nil {
		c.ClientAuth = tls.RequireAndVerifyClientCert
		o.TLSVerify = true
	}
	o.TLS, o.TLSConfig, o.TLSTimeout = true, c, answerWait.Seconds()
}
