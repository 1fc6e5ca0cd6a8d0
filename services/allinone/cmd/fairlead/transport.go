package main

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

	"github.com/fairlead/fairlead/services/internal/kit/apierr"
	"github.com/fairlead/fairlead/services/internal/kit/program"
)

// tlsFlags say how a command reaches a server that speaks TLS.
type tlsFlags struct {
	CA      string `name:"ca" placeholder:"FILE" env:"FAIRLEAD_CA" help:"Authorities for the server's certificate, as PEM; the system's without it (SSL_CERT_FILE)."`
	Cert    string `name:"cert" placeholder:"FILE" env:"FAIRLEAD_CERT" help:"Certificate for a server or proxy that asks for one, as PEM."`
	CertKey string `name:"cert-key" placeholder:"FILE" env:"FAIRLEAD_CERT_KEY" help:"Its private key, where --cert does not have it."`
}

// clientVariables are the variables of the client's commands and of the client libraries. A server ignores them.
var clientVariables = []string{"FAIRLEAD_SERVER", apiKeyVariable, "FAIRLEAD_CA", "FAIRLEAD_CERT", "FAIRLEAD_CERT_KEY", "FAIRLEAD_BASE_URL", "FAIRLEAD_TARGET"}

// serverTLS is how the command line speaks TLS with one server, as it keeps it. The paths are absolute.
type serverTLS struct {
	CA      string `json:"ca,omitempty"`
	Cert    string `json:"cert,omitempty"`
	CertKey string `json:"certKey,omitempty"`
}

// endpoint is the address of a server, and how to reach it.
type endpoint struct {
	given   string     // as a person has written it
	address string     // host and port
	tls     *serverTLS // nil: without TLS
	pinned  string     // file of the only certificate that counts; empty: any that is valid
}

// endpoint reads the address of a server, and takes what a login has kept where nothing is said.
func (f tlsFlags) endpoint(server string, known *serverTLS) (endpoint, error) {
	e := endpoint{given: server}
	rest, secure := strings.CutPrefix(server, "https://")
	e.address = strings.TrimSuffix(rest, "/")
	host, _, err := net.SplitHostPort(e.address)
	if bare := strings.Trim(e.address, "[]"); err != nil && secure && bare != "" && !strings.Contains(bare, "]") {
		e.address, host, err = net.JoinHostPort(bare, "443"), bare, nil
	}
	if err != nil || strings.ContainsAny(e.address, "/@?#") || secure && host == "" {
		return e, usage("--server %q is not an address of the form HOST:PORT, such as 127.0.0.1:9090, or https://HOST:PORT where it speaks TLS; it is the server's gRPC address", server)
	}
	if !secure && known == nil && f == (tlsFlags{}) {
		return e, nil
	}
	e.tls = &serverTLS{}
	if known != nil {
		*e.tls = *known
	}
	if f.Cert != "" {
		e.tls.Cert, e.tls.CertKey = "", ""
	}
	for kept, given := range map[*string]string{&e.tls.CA: f.CA, &e.tls.Cert: f.Cert, &e.tls.CertKey: f.CertKey} {
		if given == "" {
			continue
		}
		if *kept, err = filepath.Abs(given); err != nil {
			return e, err
		}
	}
	if e.tls.CertKey != "" && e.tls.Cert == "" {
		return e, usage("--cert-key has no use without --cert")
	}
	return e, nil
}

// key is the name of the server in the file of credentials.
func (e endpoint) key() string { return e.address }

// flags returns the flags by which another command reaches the server.
func (e endpoint) flags() string {
	text := []string{"--server", e.given}
	if e.tls == nil {
		return strings.Join(text, " ")
	}
	for _, f := range []struct{ name, file string }{{"--ca", e.tls.CA}, {"--cert", e.tls.Cert}, {"--cert-key", e.tls.CertKey}} {
		if f.file != "" {
			text = append(text, f.name, f.file)
		}
	}
	return strings.Join(text, " ")
}

// options are those of a connection.
func (e endpoint) options() ([]grpc.DialOption, error) {
	if e.tls == nil {
		return nil, nil
	}
	c, err := e.tls.config()
	if err == nil && e.pinned != "" {
		err = pin(c, e.pinned)
	}
	if err != nil {
		return nil, err
	}
	return []grpc.DialOption{grpc.WithTransportCredentials(grpccredentials.NewTLS(c))}, nil
}

func (t serverTLS) config() (*tls.Config, error) {
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

// explain says what to do about a server that cannot be reached.
func (e endpoint) explain(ctx context.Context, err error) error {
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
		return fmt.Errorf("%s is the server's REST address; --server takes the gRPC address, which the server prints at its start", e.given)
	case apierr.Code(err) != codes.Unavailable:
		return err
	case has("first record does not look like a TLS handshake"):
		return fmt.Errorf("the server at %s does not speak TLS: leave out https:// and the files of TLS (or run `fairlead logout --server %s`, if a login has kept them)", e.given, e.address)
	case has("signed by unknown authority", "certificate is not trusted"):
		return fmt.Errorf("the TLS certificate of the server at %s is of an authority that is not known here: name its file with --ca, or set SSL_CERT_FILE: %w", e.given, err)
	case has("failed to verify certificate", "x509:"):
		return fmt.Errorf("the TLS certificate of the server at %s is not valid for this connection: %w", e.given, err)
	}
	switch speaks, asks := handshake(ctx, e.address); {
	case speaks && e.tls == nil:
		return fmt.Errorf("the server at %s speaks TLS: write https://%s, with --ca FILE if its authority is not known here", e.given, e.address)
	case asks:
		return fmt.Errorf("the server at %s asks for a certificate in the TLS handshake: name one that it accepts with --cert and --cert-key: %w", e.given, err)
	}
	return fmt.Errorf("the server at %s cannot be reached; start it with `fairlead serve`, or leave --server out: %w", e.given, err)
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
