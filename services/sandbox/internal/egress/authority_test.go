package egress

import (
	"crypto/x509"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// A node may run for longer than its authority's certificate is good. Sandboxes see the file of
// what they trust as it was opened when they were made, and programs in them may have read it.
func TestAnAuthorityIsRenewedWhileItRuns(t *testing.T) {
	dir, clock := t.TempDir(), fixed()
	a, err := OpenAuthority(dir, clock.now)
	if err != nil {
		t.Fatal(err)
	}
	file, err := a.Bundle(dir)
	if err != nil {
		t.Fatal(err)
	}
	shown, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = shown.Close() }()
	trust := func() *x509.CertPool {
		b, err := io.ReadAll(io.NewSectionReader(shown, 0, 10<<20))
		pool := x509.NewCertPool()
		if err != nil || !pool.AppendCertsFromPEM(b) {
			t.Fatalf("the bundle: %v", err)
		}
		return pool
	}
	old := trust()
	check := func(when string, pool *x509.CertPool) {
		t.Helper()
		c, err := a.certificate("a.example.com")
		if err != nil {
			t.Fatalf("%s: %v", when, err)
		}
		if _, err := c.Leaf.Verify(x509.VerifyOptions{DNSName: "a.example.com", Roots: pool, CurrentTime: clock.at}); err != nil {
			t.Errorf("%s: %v", when, err)
		}
	}
	check("at first", old)
	clock.pass(authorityFor - renewBefore + time.Hour)
	check("renewed, for who has read the bundle before", old)
	check("renewed, for who reads it now", trust())
	clock.pass(renewBefore)
	check("when the first would have ended", trust())
	again, err := OpenAuthority(dir, clock.now)
	if err != nil || string(again.PEM()) != string(a.PEM()) {
		t.Errorf("opened again it is another one (%v)", err)
	}
	for range 3 { // no request came in the meantime
		clock.pass(authorityFor + renewBefore)
		a.keep()
		check("years later", trust())
	}
}

// What cannot be stored is no reason to refuse what still works.
func TestAnAuthorityThatCannotBeRenewedIsUsedToItsEnd(t *testing.T) {
	dir, clock := filepath.Join(t.TempDir(), "egress"), fixed()
	a, err := OpenAuthority(dir, clock.now)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	clock.pass(authorityFor - renewBefore/2)
	if _, err := a.certificate("a.example.com"); err != nil {
		t.Errorf("before its end: %v", err)
	}
	clock.pass(renewBefore)
	if _, err := a.certificate("a.example.com"); err == nil {
		t.Error("a certificate of an authority that has ended")
	}
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := a.certificate("a.example.com"); err != nil {
		t.Errorf("once it can be stored: %v", err)
	}
}
