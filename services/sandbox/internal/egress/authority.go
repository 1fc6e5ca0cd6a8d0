package egress

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"sync"
	"time"
)

const (
	authorityFor = 365 * 24 * time.Hour
	renewBefore  = 30 * 24 * time.Hour // also the longest time a program may use what it has read
	leafFor      = 24 * time.Hour
	maxLeaves    = 1024 // that are kept
	clockSlack   = time.Hour
)

// Authority issues certificates for hosts whose TLS the proxy ends. It belongs to one node: its key never
// leaves the node's data directory, and only the node's sandboxes trust it. It is safe for concurrent use.
type Authority struct {
	file string // holds the certificate and the key
	now  func() time.Time
	leaf *ecdsa.PrivateKey // of all leaves, made at each start

	mu     sync.Mutex // guards what follows
	cert   *x509.Certificate
	key    *ecdsa.PrivateKey
	pem    []byte
	bundle string // the file that sandboxes see, if one was written
	leaves map[string]*tls.Certificate
}

// OpenAuthority reads a node's authority from a directory, or makes a new one if it is missing or expires
// soon. It makes the directory, readable only by its owner.
func OpenAuthority(dir string, now func() time.Time) (*Authority, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("make the directory of the egress authority: %w", err)
	}
	leaf, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("make a key: %w", err)
	}
	a := &Authority{file: filepath.Join(dir, "authority.pem"), now: now, leaf: leaf, leaves: map[string]*tls.Certificate{}}
	both, err := os.ReadFile(a.file)
	if err == nil && a.read(both) == nil && !a.endsSoon() {
		return a, nil
	}
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("read the egress authority: %w", err)
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("make a key: %w", err)
	}
	return a, a.issue(key, nil)
}

func (a *Authority) endsSoon() bool { return !a.now().Add(renewBefore).Before(a.cert.NotAfter) }

// replace writes a file atomically.
func replace(file string, content []byte) error {
	if err := os.WriteFile(file+".new", content, 0o600); err != nil { //nolint:gosec // in the operator's directory
		return err
	}
	return os.Rename(file+".new", file)
}

// read parses the certificate and the key from one file.
func (a *Authority) read(both []byte) error {
	certPart, rest := pem.Decode(both)
	keyPart, _ := pem.Decode(rest)
	if certPart == nil || keyPart == nil {
		return errors.New("a part is missing")
	}
	cert, err := x509.ParseCertificate(certPart.Bytes)
	if err != nil {
		return err
	}
	key, err := x509.ParseECPrivateKey(keyPart.Bytes)
	if err != nil {
		return err
	}
	if !key.PublicKey.Equal(cert.PublicKey) {
		return errors.New("the key belongs to another certificate")
	}
	a.cert, a.key, a.pem = cert, key, pem.EncodeToMemory(certPart)
	return nil
}

// issue makes the authority's certificate and stores it, under the given subject or a new one.
func (a *Authority) issue(key *ecdsa.PrivateKey, subject []byte) error {
	serial, err := serialNumber()
	if err != nil {
		return err
	}
	now := a.now()
	template := &x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: fmt.Sprintf("Fairlead egress %x", serial.Bytes()[:4])}, RawSubject: subject,
		NotBefore: now.Add(-clockSlack), NotAfter: now.Add(authorityFor), IsCA: true, BasicConstraintsValid: true, MaxPathLenZero: true,
		KeyUsage: x509.KeyUsageCertSign, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		return fmt.Errorf("make the egress authority: %w", err)
	}
	secret, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return fmt.Errorf("make the egress authority: %w", err)
	}
	both := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	if err := a.show(both); err != nil {
		return fmt.Errorf("show the egress authority: %w", err)
	}
	both = append(both, pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: secret})...)
	if err := replace(a.file, both); err != nil {
		return fmt.Errorf("store the egress authority: %w", err)
	}
	return a.read(both)
}

// keep renews the certificate in time for a new sandbox. An error is reported when a certificate is
// requested.
func (a *Authority) keep() {
	a.mu.Lock()
	defer a.mu.Unlock()
	_ = a.renew()
}

// renew reissues the certificate when it expires soon. Its key and subject stay, so clients that trust the
// old certificate also trust leaves of the new one until the old one expires. If renewal fails, the old
// certificate serves until it expires. mu is held.
func (a *Authority) renew() error {
	if !a.endsSoon() {
		return nil
	}
	err := a.issue(a.key, a.cert.RawSubject)
	if err != nil && a.now().Before(a.cert.NotAfter) {
		return nil
	}
	clear(a.leaves)
	return err
}

func serialNumber() (*big.Int, error) {
	b := make([]byte, 16)
	_, err := rand.Read(b)
	b[0] = b[0]&0x7f | 0x40 // positive, and of full length
	return new(big.Int).SetBytes(b), err
}

// PEM returns the authority's certificate, which sandboxes are to trust.
func (a *Authority) PEM() []byte {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.pem
}

// certificate returns a certificate for a host, made at its first use and renewed before it expires.
func (a *Authority) certificate(host string) (*tls.Certificate, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if err := a.renew(); err != nil {
		return nil, err
	}
	now := a.now()
	if c := a.leaves[host]; c != nil && now.Add(leafFor/2).Before(c.Leaf.NotAfter) {
		return c, nil
	}
	c, err := a.mint(host, now)
	if err != nil {
		return nil, fmt.Errorf("make a certificate for %s: %w", host, err)
	}
	if len(a.leaves) >= maxLeaves {
		clear(a.leaves)
	}
	a.leaves[host] = c
	return c, nil
}

func (a *Authority) mint(host string, now time.Time) (*tls.Certificate, error) {
	serial, err := serialNumber()
	if err != nil {
		return nil, err
	}
	template := &x509.Certificate{
		SerialNumber: serial, NotBefore: now.Add(-clockSlack), NotAfter: now.Add(leafFor),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	if ip := net.ParseIP(host); ip != nil {
		template.IPAddresses = []net.IP{ip}
	} else {
		template.DNSNames = []string{host}
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, &a.leaf.PublicKey, a.key)
	if err != nil {
		return nil, err
	}
	leaf, err := x509.ParseCertificate(der)
	return &tls.Certificate{Certificate: [][]byte{der, a.cert.Raw}, PrivateKey: a.leaf, Leaf: leaf}, err
}
