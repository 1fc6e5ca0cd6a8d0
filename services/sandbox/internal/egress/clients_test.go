package egress

import (
	"bytes"
	"crypto/tls"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// Real programs, told of the proxy by the environment alone, read a page behind TLS
// that is ended here, with a credential that they never see.
func TestProgramsTrustTheNodeByTheirEnvironment(t *testing.T) {
	for _, x := range []struct {
		name    string
		program string
		args    []string
	}{
		{"curl", "curl", []string{"-sS", "--fail", "{url}"}},
		{"curl, plain HTTP that goes out by TLS", "curl", []string{"-sS", "--fail", "{plain}"}},
		{"git", "git", []string{"ls-remote", "{url}/repo"}},
		{"Python", "python3", []string{"-c", "import sys,urllib.request; print(urllib.request.urlopen(sys.argv[1]).read().decode())", "{url}"}},
		{"Node.js", "node", []string{"-e", nodeScript, "{host}"}},
		{"openssl", "openssl", []string{"s_client", "-verify_return_error", "-brief", "-proxy", "{proxy}", "-proxy_user", "x", "-proxy_pass", "pass:x", "-connect", "{host}", "-servername", "key.example.com"}},
	} {
		t.Run(x.name, func(t *testing.T) {
			if _, err := exec.LookPath(x.program); err != nil {
				if os.Getenv("CI") != "" {
					t.Fatalf("%s is not on this machine: install it", x.program)
				}
				t.Skipf("%s is not on this machine", x.program)
			}
			runClient(t, x.program, x.args)
		})
	}
}

// nodeScript does by hand what Node.js does by itself from version 24 on.
const nodeScript = `
const proxy = new URL(process.env.HTTPS_PROXY), host = process.argv[1];
require("http").request({host: proxy.hostname, port: proxy.port, method: "CONNECT", path: host,
  headers: {"Proxy-Authorization": "Basic " + btoa(proxy.username + ":" + proxy.password)}}).on("connect", (_, socket) => {
    const inside = require("tls").connect({socket, servername: "key.example.com"});
    inside.write("GET / HTTP/1.1\r\nHost: " + host + "\r\nConnection: close\r\n\r\n");
    inside.pipe(process.stdout);
  }).end();`

func runClient(t *testing.T, program string, args []string) {
	t.Helper()
	with, _, _ := withSecrets(t)
	w := newWorld(t, func(a, b int) []Rule {
		return append(credentialRules(a, b), Rule{Name: "up", Host: "key.example.com", Ports: []int{b}, TLS: Upgrade, Credential: "key"})
	}, with)
	w.other = func(rw http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/info/refs") {
			rw.Header().Set("Content-Type", "application/x-git-upload-pack-advertisement")
			ref := "95d09f2b10159347eece71399a7e2e907ea3df4f refs/heads/the-page\x00 agent=x\n"
			fmt.Fprintf(rw, "001e# service=git-upload-pack\n0000%04x%s0000", len(ref)+4, ref)
			return
		}
		fmt.Fprintf(rw, "the-page %d", len(r.Header.Get("X-Api-Key")))
	}
	dir := t.TempDir()
	bundle, err := w.authority.Bundle(dir)
	if err != nil {
		t.Fatal(err)
	}
	host := fmt.Sprintf("key.example.com:%d", port(w.secure))
	for i := range args {
		args[i] = strings.NewReplacer("{url}", "https://"+host, "{plain}", "http://"+host, "{host}", host, "{proxy}", w.addr).Replace(args[i])
	}
	c := exec.CommandContext(t.Context(), program, args...)
	c.Dir = dir
	c.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + dir, "GIT_CONFIG_NOSYSTEM=1", "GIT_TERMINAL_PROMPT=0"}
	for _, kv := range Environment("call-1") {
		kv = strings.ReplaceAll(kv, Address, w.addr)
		c.Env = append(c.Env, strings.ReplaceAll(kv, TrustPath, bundle))
	}
	var out bytes.Buffer
	c.Stdout, c.Stderr = &out, &out
	if err := c.Run(); err != nil {
		t.Fatalf("%v: %s", err, out.String())
	}
	if program == "openssl" {
		if !strings.Contains(out.String(), "Verification: OK") {
			t.Errorf("said %s", out.String())
		}
		return
	}
	if !strings.Contains(out.String(), "the-page") || strings.Contains(out.String(), secret) {
		t.Errorf("said %s", out.String())
	}
	if e := w.event(); e.Exec != "call-1" || e.Credential != "key" {
		t.Errorf("event %+v", e)
	}
	for _, r := range w.seen() {
		if r.Header.Get("X-Api-Key") != secret {
			t.Errorf("%s came out without the credential", r.URL)
		}
	}
}

func TestAnAuthorityIsKeptAndRenewed(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "egress")
	clock := fixed()
	first, err := OpenAuthority(dir, clock.now)
	if err != nil {
		t.Fatal(err)
	}
	again, err := OpenAuthority(dir, clock.now)
	if err != nil || !bytes.Equal(first.PEM(), again.PEM()) {
		t.Errorf("opened again it is another one (%v)", err)
	}
	st, err := os.Stat(filepath.Join(dir, "authority.pem"))
	if err != nil || st.Mode().Perm() != 0o600 {
		t.Errorf("the key's file: %v, %v", st, err)
	}
	leaf := func(a *Authority) *tls.Certificate {
		c, err := a.certificate("a.example.com")
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	one := leaf(again)
	if leaf(again) != one {
		t.Error("a certificate is made twice")
	}
	clock.pass(leafFor * 2 / 3)
	if leaf(again) == one {
		t.Error("a certificate that ends soon is used")
	}
	clock.pass(authorityFor - renewBefore)
	renewed, err := OpenAuthority(dir, clock.now)
	if err != nil || bytes.Equal(first.PEM(), renewed.PEM()) {
		t.Errorf("it is not renewed (%v)", err)
	}
	if err := os.WriteFile(filepath.Join(dir, "authority.pem"), []byte("half"), 0o600); err != nil {
		t.Fatal(err)
	}
	if mended, err := OpenAuthority(dir, clock.now); err != nil || len(mended.PEM()) == 0 {
		t.Errorf("a broken file: %v", err)
	}
}
