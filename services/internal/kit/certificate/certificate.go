// Package certificate has TLS from files, which are read again when they change.
package certificate

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"sync"
	"time"

	"google.golang.org/grpc/credentials"
)

// Config names the files.
type Config struct {
	Cert     string `key:"cert" help:"file with the certificate of the listeners and its chain, as PEM, which is read again when it changes; empty: no TLS"`
	Key      string `key:"key" help:"file with the certificate's private key, as PEM"`
	ClientCA string `key:"client-ca" help:"file with authorities, as PEM: callers of the peer listener then need a certificate of one of them"`
	CA       string `key:"ca" help:"file with authorities, as PEM, by which the certificates of other services are checked: calls to them then use TLS"`
}

// Validate reads the files, and reports every fault at once.
func (c Config) Validate() error {
	var faults []error
	if (c.Cert == "") != (c.Key == "") {
		faults = append(faults, errors.New("cert: has no use without key, nor key without cert"))
	}
	if c.ClientCA != "" && c.Cert == "" {
		faults = append(faults, errors.New("client-ca: has no use without cert"))
	}
	if len(faults) == 0 {
		_, err := c.load()
		faults = append(faults, err)
	}
	return errors.Join(faults...)
}

// loaded is the content of the files.
type loaded struct {
	pair        *tls.Certificate // nil: none
	clients, ca *x509.CertPool   // nil: none
	changed     []time.Time      // when the files were written
}

func (c Config) load() (l loaded, err error) {
	l.changed = c.times()
	if c.Cert != "" {
		pair, err := tls.LoadX509KeyPair(c.Cert, c.Key)
		if err != nil {
			return l, fmt.Errorf("cert: %w", err)
		}
		l.pair = &pair
	}
	if l.clients, err = pool("client-ca", c.ClientCA); err != nil {
		return l, err
	}
	l.ca, err = pool("ca", c.CA)
	return l, err
}

func pool(key, name string) (*x509.CertPool, error) {
	if name == "" {
		return nil, nil //nolint:nilnil // there are no authorities
	}
	text, err := os.ReadFile(name)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", key, err)
	}
	p := x509.NewCertPool()
	if !p.AppendCertsFromPEM(text) {
		return nil, fmt.Errorf("%s: %s has no certificate as PEM", key, name)
	}
	return p, nil
}

// times returns when each file was written.
func (c Config) times() (all []time.Time) {
	for _, name := range []string{c.Cert, c.Key, c.ClientCA, c.CA} {
		var at time.Time
		if info, err := os.Stat(name); err == nil {
			at = info.ModTime()
		}
		all = append(all, at)
	}
	return all
}

// Files has the content of the files. It is safe for concurrent use.
type Files struct {
	config Config

	mu     sync.Mutex
	loaded loaded
}

// Open reads the files.
func Open(c Config) (*Files, error) {
	l, err := c.load()
	if err != nil {
		return nil, err
	}
	return &Files{config: c, loaded: l}, nil
}

// Listens reports whether listeners use TLS.
func (f *Files) Listens() bool { return f != nil && f.config.Cert != "" }

// Dials reports whether calls to other services use TLS.
func (f *Files) Dials() bool { return f != nil && f.config.CA != "" }

// current returns the content of the files. Files that cannot be read now, such as a certificate whose key is not written
// yet, keep their content.
func (f *Files) current() loaded {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !slices.Equal(f.config.times(), f.loaded.changed) {
		if l, err := f.config.load(); err == nil {
			f.loaded = l
		}
	}
	return f.loaded
}

// HTTP returns the configuration of an HTTP listener.
func (f *Files) HTTP() *tls.Config {
	return &tls.Config{
		MinVersion:     tls.VersionTLS12,
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return f.current().pair, nil },
	}
}

// Credentials returns those of a gRPC listener or of calls. mutual makes a listener ask for a certificate of client-ca.
func (f *Files) Credentials(mutual bool) credentials.TransportCredentials {
	return transport{f, mutual}
}

// transport reads the files at each handshake.
type transport struct {
	files  *Files
	mutual bool
}

// ClientHandshake implements credentials.TransportCredentials.
func (t transport) ClientHandshake(ctx context.Context, authority string, conn net.Conn) (net.Conn, credentials.AuthInfo, error) {
	l := t.files.current()
	c := &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: l.ca}
	if l.pair != nil {
		c.Certificates = []tls.Certificate{*l.pair}
	}
	return credentials.NewTLS(c).ClientHandshake(ctx, authority, conn)
}

// ServerHandshake implements credentials.TransportCredentials.
func (t transport) ServerHandshake(conn net.Conn) (net.Conn, credentials.AuthInfo, error) {
	l := t.files.current()
	c := &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{*l.pair}}
	if t.mutual && l.clients != nil {
		c.ClientCAs, c.ClientAuth = l.clients, tls.RequireAndVerifyClientCert
	}
	return credentials.NewTLS(c).ServerHandshake(conn)
}

// Info implements credentials.TransportCredentials.
func (transport) Info() credentials.ProtocolInfo {
	return credentials.ProtocolInfo{SecurityProtocol: "tls"}
}

// Clone implements credentials.TransportCredentials.
func (t transport) Clone() credentials.TransportCredentials { return t }

// OverrideServerName implements credentials.TransportCredentials.
func (transport) OverrideServerName(string) error { return nil }
