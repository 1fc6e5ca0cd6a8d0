package rpc_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"

	"github.com/fairlead/fairlead/services/internal/kit/apierr"
	"github.com/fairlead/fairlead/services/internal/kit/certificate"
	"github.com/fairlead/fairlead/services/internal/kit/principal"
	"github.com/fairlead/fairlead/services/internal/kit/rpc"
)

// authority issues certificates for loopback addresses.
type authority struct {
	t    *testing.T
	dir  string
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	a := &authority{t: t, dir: t.TempDir()}
	a.cert, a.key = a.issue("ca.pem", &x509.Certificate{IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign}, nil, nil)
	return a
}

// issue writes a certificate to a file, and returns it with its key.
func (a *authority) issue(name string, c, parent *x509.Certificate, by *ecdsa.PrivateKey) (*x509.Certificate, *ecdsa.PrivateKey) {
	a.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		a.t.Fatal(err)
	}
	c.SerialNumber, _ = rand.Int(rand.Reader, big.NewInt(1<<60))
	c.Subject, c.NotBefore, c.NotAfter = pkix.Name{CommonName: name}, time.Now().Add(-time.Hour), time.Now().Add(time.Hour)
	if parent == nil {
		parent, by = c, key
	}
	der, err := x509.CreateCertificate(rand.Reader, c, parent, key.Public(), by)
	if err != nil {
		a.t.Fatal(err)
	}
	if c, err = x509.ParseCertificate(der); err != nil {
		a.t.Fatal(err)
	}
	a.write(name, "CERTIFICATE", der)
	return c, key
}

func (a *authority) write(name, kind string, der []byte) {
	a.t.Helper()
	if err := os.WriteFile(filepath.Join(a.dir, name), pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600); err != nil {
		a.t.Fatal(err)
	}
}

// renew writes a new certificate of the service, and returns its serial number.
func (a *authority) renew() string {
	a.t.Helper()
	cert, key := a.issue("cert.pem", &x509.Certificate{
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}, a.cert, a.key)
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		a.t.Fatal(err)
	}
	a.write("key.pem", "EC PRIVATE KEY", der)
	later := time.Now().Add(time.Duration(cert.SerialNumber.Int64()%1000+1) * time.Second) // file systems with coarse times
	for _, name := range []string{"cert.pem", "key.pem"} {
		if err := os.Chtimes(filepath.Join(a.dir, name), later, later); err != nil {
			a.t.Fatal(err)
		}
	}
	return cert.SerialNumber.String()
}

func (a *authority) config() certificate.Config {
	at := func(name string) string { return filepath.Join(a.dir, name) }
	return certificate.Config{Cert: at("cert.pem"), Key: at("key.pem"), ClientCA: at("ca.pem"), CA: at("ca.pem")}
}

func (a *authority) pool() *x509.CertPool {
	p := x509.NewCertPool()
	p.AddCert(a.cert)
	return p
}

func TestListenersUseTLS(t *testing.T) {
	a := newAuthority(t)
	first := a.renew()
	c := everywhere()
	c.TLS = a.config()
	r := serve(t, c, web{&part{name: "a", events: &diary{}, handler: http.NotFoundHandler()}})
	serial := func() string {
		t.Helper()
		conn, err := tls.Dial("tcp", r.at["http"], &tls.Config{RootCAs: a.pool()})
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = conn.Close() }()
		return conn.ConnectionState().PeerCertificates[0].SerialNumber.String()
	}
	peer := func(c certificate.Config) error {
		t.Helper()
		files, err := certificate.Open(c)
		if err != nil {
			t.Fatal(err)
		}
		cc, err := rpc.Dial(r.at["peer"], rpc.WithKeys(keys), rpc.WithFallback(principal.Default()), rpc.WithTLS(files))
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = cc.Close() }()
		_, err = take(t.Context(), cc, newNote("x"), grpc.WaitForReady(false))
		return err
	}
	if serial() != first {
		t.Error("the listener has another certificate")
	}
	if err := peer(a.config()); err != nil {
		t.Errorf("a peer with a certificate: %v", err)
	}
	nameless, stranger := a.config(), newAuthority(t)
	nameless.Cert, nameless.Key, nameless.ClientCA = "", "", ""
	stranger.renew()
	foreign := stranger.config()
	foreign.CA = a.config().CA
	for name, c := range map[string]certificate.Config{"without a certificate": nameless, "with one of another authority": foreign, "without TLS": {}, "that trusts another authority": stranger.config()} {
		if err := peer(c); apierr.Code(err) != codes.Unavailable {
			t.Errorf("a peer %s: %v", name, err)
		}
	}
	if _, err := take(t.Context(), r.local.Conn, newNote("x")); apierr.Reason(err) != apierr.ReasonInternalTokenMissing {
		t.Errorf("in memory there is no TLS: %v", err)
	}
	if code, _ := r.get(t, "ops", "/healthz"); code != http.StatusOK {
		t.Errorf("a probe without TLS: %d", code)
	}
	if second := a.renew(); serial() != second {
		t.Error("the listener keeps the old certificate")
	}
	if err := peer(a.config()); err != nil {
		t.Errorf("a peer after the renewal: %v", err)
	}
	if err := os.Remove(a.config().Key); err != nil {
		t.Fatal(err)
	}
	serial() // it keeps what it has
}

func TestFaultsOfCertificates(t *testing.T) {
	a := newAuthority(t)
	a.renew()
	good := a.config()
	for name, c := range map[string]certificate.Config{
		"a certificate without a key": {Cert: good.Cert},
		"a key without a certificate": {Key: good.Key},
		"no such file":                {Cert: good.Cert, Key: "/nonesuch"},
		"the key of another":          {Cert: good.CA, Key: good.Key},
		"authorities in no file":      {CA: "/nonesuch"},
		"authorities that are none":   {CA: good.Key},
		"authorities of no client":    {ClientCA: good.CA},
	} {
		if err := c.Validate(); err == nil {
			t.Errorf("%s is accepted", name)
		}
	}
	if err := (certificate.Config{}).Validate(); err != nil {
		t.Errorf("no TLS: %v", err)
	}
}
