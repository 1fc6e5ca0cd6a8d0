// Package endpoint is how a client reaches a server: its address, TLS, and the credential that a person has for it.
package endpoint

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	grpccredentials "google.golang.org/grpc/credentials"

	"github.com/fairlead/fairlead/services/allinone/internal/terminal"
	"github.com/fairlead/fairlead/services/internal/kit/apierr"
	"github.com/fairlead/fairlead/services/internal/kit/program"
)

// TLSFlags say how a command reaches a server that speaks TLS.
type TLSFlags struct {
	CA      string `name:"ca" placeholder:"FILE" env:"FAIRLEAD_CA" help:"Authorities for the server's certificate, as PEM; the system's without it (SSL_CERT_FILE)."`
	Cert    string `name:"cert" placeholder:"FILE" env:"FAIRLEAD_CERT" help:"Certificate for a server or proxy that asks for one, as PEM."`
	CertKey string `name:"cert-key" placeholder:"FILE" env:"FAIRLEAD_CERT_KEY" help:"Its private key, where --cert does not have it."`
}

// Variables are the variables of the client's commands and of the client libraries. A server ignores them.
var Variables = []string{"FAIRLEAD_SERVER", KeyVariable, "FAIRLEAD_CA", "FAIRLEAD_CERT", "FAIRLEAD_CERT_KEY", "FAIRLEAD_BASE_URL", "FAIRLEAD_TARGET"}

// TLS is how the command line speaks TLS with one server, as it keeps it. The paths are absolute.
type TLS struct {
	CA      string `json:"ca,omitempty"`
	Cert    string `json:"cert,omitempty"`
	CertKey string `json:"certKey,omitempty"`
}

// Endpoint is the address of a server, and how to reach it.
type Endpoint struct {
	Given   string // as a person has written it
	Address string // host and port
	TLS     *TLS   // nil: without TLS
	Pinned  string // file of the only certificate that counts; empty: any that is valid
}

// Endpoint reads the address of a server, and takes what a login has kept where nothing is said.
func (f TLSFlags) Endpoint(server string, known *TLS) (Endpoint, error) {
	e := Endpoint{Given: server}
	rest, secure := strings.CutPrefix(server, "https://")
	e.Address = strings.TrimSuffix(rest, "/")
	host, _, err := net.SplitHostPort(e.Address)
	if bare := strings.Trim(e.Address, "[]"); err != nil && secure && bare != "" && !strings.Contains(bare, "]") {
		e.Address, host, err = net.JoinHostPort(bare, "443"), bare, nil
	}
	if err != nil || strings.ContainsAny(e.Address, "/@?#") || secure && host == "" {
		return e, terminal.Usage("--server %q is not an address of the form HOST:PORT, such as 127.0.0.1:9090, or https://HOST:PORT where it speaks TLS; it is the server's gRPC address", server)
	}
	if !secure && known == nil && f == (TLSFlags{}) {
		return e, nil
	}
	e.TLS = &TLS{}
	if known != nil {
		*e.TLS = *known
	}
	if f.Cert != "" {
		e.TLS.Cert, e.TLS.CertKey = "", ""
	}
	for kept, given := range map[*string]string{&e.TLS.CA: f.CA, &e.TLS.Cert: f.Cert, &e.TLS.CertKey: f.CertKey} {
		if given == "" {
			continue
		}
		if *kept, err = filepath.Abs(given); err != nil {
			return e, err
		}
	}
	if e.TLS.CertKey != "" && e.TLS.Cert == "" {
		return e, terminal.Usage("--cert-key has no use without --cert")
	}
	return e, nil
}

// Key is the name of the server in the file of credentials.
func (e Endpoint) Key() string { return e.Address }

// Flags returns the flags by which another command reaches the server.
func (e Endpoint) Flags() string {
	text := []string{"--server", e.Given}
	if e.TLS == nil {
		return strings.Join(text, " ")
	}
	for _, f := range []struct{ name, file string }{{"--ca", e.TLS.CA}, {"--cert", e.TLS.Cert}, {"--cert-key", e.TLS.CertKey}} {
		if f.file != "" {
			text = append(text, f.name, f.file)
		}
	}
	return strings.Join(text, " ")
}

// Options are those of a connection.
func (e Endpoint) Options() ([]grpc.DialOption, error) {
	if e.TLS == nil {
		return nil, nil
	}
	c, err := e.TLS.config()
	if err == nil && e.Pinned != "" {
		err = pin(c, e.Pinned)
	}
	if err != nil {
		return nil, err
	}
	return []grpc.DialOption{grpc.WithTransportCredentials(grpccredentials.NewTLS(c))}, nil
}

func (t TLS) config() (*tls.Config, error) {
	c := &tls.Config{MinVersion: tls.VersionTLS12}
	if t.CA != "" {
		text, err := os.ReadFile(t.CA)
		if err != nil {
			return nil, fmt.Errorf("--ca: %w", err)
		}
		c.RootCAs = x509.NewCertPool()
		if !c.RootCAs.AppendCertsFromPEM(text) {
			return nil, fmt.Errorf("--ca: %s has no certificate as PEM", t.CA)
		}
	}
	if t.Cert != "" {
		pair, err := tls.LoadX509KeyPair(t.Cert, cmp.Or(t.CertKey, t.Cert))
		if err != nil {
			return nil, fmt.Errorf("--cert: %w", err)
		}
		c.Certificates = []tls.Certificate{pair}
	}
	return c, nil
}

// pin accepts the certificate in a file alone, whatever name it is for.
func pin(c *tls.Config, file string) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return fmt.Errorf("the server's certificate: %w", err)
	}
	block, _ := pem.Decode(text)
	if block == nil {
		return fmt.Errorf("the server's certificate: %s is no PEM", file)
	}
	c.InsecureSkipVerify = true // the certificate is compared below
	c.VerifyConnection = func(s tls.ConnectionState) error {
		if len(s.PeerCertificates) > 0 && bytes.Equal(block.Bytes, s.PeerCertificates[0].Raw) {
			return nil
		}
		return fmt.Errorf("the server's certificate is not the one in %s", file)
	}
	return nil
}

// Explain says what to do about a server that cannot be reached.
func (e Endpoint) Explain(ctx context.Context, err error) error {
	var exit *program.ExitError
	if err == nil || errors.As(err, &exit) && exit.Err == nil || apierr.Reason(err) != "" {
		return err
	}
	text := err.Error()
	has := func(words ...string) bool {
		for _, s := range words {
			if strings.Contains(text, s) {
				return true
			}
		}
		return false
	}
	switch {
	case has("looked like an HTTP/1.1 header", "unexpected HTTP status code received from server", "missing selected ALPN property"):
		return fmt.Errorf("%s is the server's REST address; --server takes the gRPC address, which the server prints at its start", e.Given)
	case apierr.Code(err) != codes.Unavailable:
		return err
	case has("first record does not look like a TLS handshake"):
		return fmt.Errorf("the server at %s does not speak TLS: leave out https:// and the files of TLS (or run `fairlead logout --server %s`, if a login has kept them)", e.Given, e.Address)
	case has("signed by unknown authority", "certificate is not trusted"):
		return fmt.Errorf("the TLS certificate of the server at %s is of an authority that is not known here: name its file with --ca, or set SSL_CERT_FILE: %w", e.Given, err)
	case has("failed to verify certificate", "x509:"):
		return fmt.Errorf("the TLS certificate of the server at %s is not valid for this connection: %w", e.Given, err)
	}
	switch speaks, asks := handshake(ctx, e.Address); {
	case speaks && e.TLS == nil:
		return fmt.Errorf("the server at %s speaks TLS: write https://%s, with --ca FILE if its authority is not known here", e.Given, e.Address)
	case asks:
		return fmt.Errorf("the server at %s asks for a certificate in the TLS handshake: name one that it accepts with --cert and --cert-key: %w", e.Given, err)
	}
	return fmt.Errorf("the server at %s cannot be reached; start it with `fairlead serve`, or leave --server out: %w", e.Given, err)
}

// handshakeTime bounds the question how a server speaks TLS.
const handshakeTime = 3 * time.Second

// handshake reports whether a server speaks TLS, and whether it asks for a certificate. Nothing is sent to it.
func handshake(ctx context.Context, address string) (speaks, asks bool) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), handshakeTime)
	defer cancel()
	d := tls.Dialer{Config: &tls.Config{
		InsecureSkipVerify: true, //nolint:gosec // the connection is closed at once
		GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
			asks = true
			return &tls.Certificate{}, nil
		},
	}}
	conn, err := d.DialContext(ctx, "tcp", address)
	if err != nil {
		return asks, asks // a server may end a handshake without a certificate
	}
	_ = conn.Close()
	return true, asks
}
