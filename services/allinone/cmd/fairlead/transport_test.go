package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"

	"github.com/fairlead/fairlead/services/allinone/internal/host"
	"github.com/fairlead/fairlead/services/internal/kit/certificate"
	"github.com/fairlead/fairlead/services/internal/kit/config"
)

// certificates writes an authority and certificates of it: ca.pem, server.pem and client.pem with server.key and
// client.key, both.pem with a client's certificate and its key, and stranger.pem of another authority.
func certificates(t *testing.T) (dir string) {
	t.Helper()
	dir = t.TempDir()
	issue := func(name string, parent *x509.Certificate, by *ecdsa.PrivateKey, hosts ...string) (*x509.Certificate, *ecdsa.PrivateKey) {
		key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		if err != nil {
			t.Fatal(err)
		}
		c := &x509.Certificate{
			SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: name}, DNSNames: hosts,
			NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageAny},
		}
		if len(hosts) > 0 && hosts[0] == "127.0.0.1" {
			c.DNSNames, c.IPAddresses = nil, []net.IP{net.IPv4(127, 0, 0, 1)}
		}
		if parent == nil {
			c.IsCA, c.BasicConstraintsValid, c.KeyUsage = true, true, x509.KeyUsageCertSign
			parent, by = c, key
		}
		der, err := x509.CreateCertificate(rand.Reader, c, parent, key.Public(), by)
		if err == nil {
			c, err = x509.ParseCertificate(der)
		}
		if err != nil {
			t.Fatal(err)
		}
		private, err := x509.MarshalECPrivateKey(key)
		if err != nil {
			t.Fatal(err)
		}
		cert, secret := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: private})
		for file, text := range map[string][]byte{name + ".pem": cert, name + ".key": secret, name + "-both.pem": append(append([]byte{}, secret...), cert...)} {
			if err := os.WriteFile(filepath.Join(dir, file), text, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		return c, key
	}
	ca, by := issue("ca", nil, nil)
	issue("server", ca, by, "127.0.0.1")
	issue("elsewhere", ca, by, "other.example")
	issue("client", ca, by, "client.example")
	other, their := issue("stranger-ca", nil, nil)
	issue("stranger", other, their, "stranger.example")
	return dir
}

// secured serves a door by the options that the programs have for TLS.
func secured(t *testing.T, d *door, dir, name string, mutual bool) string {
	t.Helper()
	at := func(file string) string { return filepath.Join(dir, file) }
	files, err := certificate.Open(certificate.Config{Cert: at(name + ".pem"), Key: at(name + ".key"), ClientCA: at("ca.pem")})
	if err != nil {
		t.Fatal(err)
	}
	return d.open(t, grpc.Creds(files.Credentials(mutual)))
}

func TestCommandsSpeakTLS(t *testing.T) {
	t.Parallel()
	dir := certificates(t)
	at := func(file string) string { return filepath.Join(dir, file) }
	d := &door{users: map[string]string{"fl_ann": "ann"}}
	plain, oneWay, mutual, elsewhere := d.open(t), secured(t, d, dir, "server", false), secured(t, d, dir, "server", true), secured(t, d, dir, "elsewhere", false)
	rest := httptest.NewUnstartedServer(http.NotFoundHandler())
	rest.EnableHTTP2 = true
	rest.StartTLS()
	defer rest.Close()
	for name, c := range map[string]struct {
		server string
		args   []string
		code   int
		want   string
	}{
		"a server with TLS":                        {"https://" + oneWay, []string{"--ca", at("ca.pem")}, 0, "ann"},
		"an address with a slash":                  {"https://" + oneWay + "/", []string{"--ca", at("ca.pem")}, 0, "ann"},
		"the files alone":                          {oneWay, []string{"--ca", at("ca.pem")}, 0, "ann"},
		"a certificate of the client":              {"https://" + mutual, []string{"--ca", at("ca.pem"), "--cert", at("client.pem"), "--cert-key", at("client.key")}, 0, "ann"},
		"its key in the same file":                 {"https://" + mutual, []string{"--ca", at("ca.pem"), "--cert", at("client-both.pem")}, 0, "ann"},
		"no certificate where one is asked for":    {"https://" + mutual, []string{"--ca", at("ca.pem")}, 1, "--cert"},
		"a certificate of a stranger":              {"https://" + mutual, []string{"--ca", at("ca.pem"), "--cert", at("stranger.pem"), "--cert-key", at("stranger.key")}, 1, "--cert"},
		"an authority that is not known":           {"https://" + oneWay, nil, 1, "--ca"},
		"another authority":                        {"https://" + oneWay, []string{"--ca", at("stranger-ca.pem")}, 1, "SSL_CERT_FILE"},
		"a certificate for another name":           {"https://" + elsewhere, []string{"--ca", at("ca.pem")}, 1, "is not valid for this connection"},
		"without https":                            {oneWay, nil, 1, "speaks TLS: write https://" + oneWay},
		"https to a server without TLS":            {"https://" + plain, []string{"--ca", at("ca.pem")}, 1, "does not speak TLS"},
		"the REST address":                         {"https://" + rest.Listener.Addr().String(), []string{"--ca", restCA(t, rest)}, 1, "REST address"},
		"no server":                                {"https://127.0.0.1:1", []string{"--ca", at("ca.pem")}, 1, "cannot be reached"},
		"a file that does not exist":               {"https://" + oneWay, []string{"--ca", at("none.pem")}, 1, "--ca"},
		"a file without certificates":              {"https://" + oneWay, []string{"--ca", at("client.key")}, 1, "has no certificate"},
		"a key without its certificate":            {"https://" + oneWay, []string{"--cert-key", at("client.key")}, 2, "--cert"},
		"an address with a path":                   {"https://" + oneWay + "/v1", nil, 2, "https://HOST:PORT"},
		"an address of REST":                       {"http://" + plain, nil, 2, "https://HOST:PORT"},
		"an address with a user":                   {"https://ann@" + oneWay, nil, 2, "https://HOST:PORT"},
		"an address without a host":                {"https://", nil, 2, "https://HOST:PORT"},
		"an address without a host, with its port": {"https://:443", nil, 2, "https://HOST:PORT"},
	} {
		t.Run(name, func(t *testing.T) {
			env := map[string]string{"XDG_CONFIG_HOME": t.TempDir(), "FAIRLEAD_API_KEY": "fl_ann"}
			out, errs, code := fairlead(t.Context(), "", env, append([]string{"whoami", "--server", c.server}, c.args...)...)
			if code != c.code || !strings.Contains(out+errs, c.want) {
				t.Errorf("%d %s%s", code, out, errs)
			}
			if c.code == 1 && c.want != "cannot be reached" && strings.Contains(errs, "fairlead serve") {
				t.Errorf("it says to start a server, which runs: %s", errs)
			}
		})
	}
}

// restCA writes the certificate of a test's HTTP server.
func restCA(t *testing.T, s *httptest.Server) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw}), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// What a login has been told of TLS holds for the commands after it.
func TestALoginKeepsHowAServerIsReached(t *testing.T) {
	t.Parallel()
	dir := certificates(t)
	at := func(file string) string { return filepath.Join(dir, file) }
	d := &door{users: map[string]string{"fl_ann": "ann"}}
	server := secured(t, d, dir, "server", true)
	env := map[string]string{"XDG_CONFIG_HOME": t.TempDir()}
	command := func(in, want string, args ...string) {
		t.Helper()
		if out, errs, code := fairlead(t.Context(), in, env, args...); code != 0 || !strings.Contains(out, want) {
			t.Errorf("%v: %d %s%s", args, code, out, errs)
		}
	}
	command("fl_ann\n", "Logged in", "login", "--key", "--server", "https://"+server, "--ca", at("ca.pem"), "--cert", at("client.pem"), "--cert-key", at("client.key"))
	command("", "ann", "whoami", "--server", "https://"+server)
	command("", "ann", "whoami", "--server", server)
	command("", "", "sessions", "list", "--server", server, "--cert", at("client-both.pem"))
	command("", "is deleted", "logout", "--server", "https://"+server)
	if _, errs, code := fairlead(t.Context(), "", env, "whoami", "--server", server); code != 1 || !strings.Contains(errs, "speaks TLS") {
		t.Errorf("after the logout: %d %s", code, errs)
	}
}

// A variable of a client does not keep a server from starting.
func TestAServerIgnoresTheVariablesOfClients(t *testing.T) {
	for _, name := range []string{"FAIRLEAD_SERVER", "FAIRLEAD_API_KEY", "FAIRLEAD_CA", "FAIRLEAD_CERT", "FAIRLEAD_CERT_KEY", "FAIRLEAD_BASE_URL", "FAIRLEAD_TARGET"} {
		t.Run(name, func(t *testing.T) {
			t.Setenv(name, "x")
			conf := host.Defaults(t.TempDir())
			if err := config.Load(&conf, loadOptions(nil, io.Discard)); err != nil {
				t.Error(err)
			}
		})
	}
}

// A command that another one advises to run reaches the same server.
func TestAdviceNamesTheServerAndItsAuthority(t *testing.T) {
	t.Parallel()
	dir := certificates(t)
	ca := filepath.Join(dir, "ca.pem")
	d := &door{users: map[string]string{"fl_ann": "ann"}}
	server := "https://" + secured(t, d, dir, "server", false)
	for name, c := range map[string]struct {
		args []string
		want string
	}{
		"a login without the authority":      {[]string{"login", "--key"}, "name its file with --ca"},
		"a first key without the authority":  {[]string{"admin", "init"}, "name its file with --ca"},
		"a first key of a closed server":     {[]string{"admin", "init", "--ca", ca}, "`fairlead login --server " + server + " --ca " + ca + "`"},
		"a command without a credential":     {[]string{"whoami", "--ca", ca}, "`fairlead login --server " + server + " --ca " + ca + "`"},
		"a command on a server without keys": {[]string{"keys", "create", "--ca", ca}, "`fairlead admin init --server " + server + " --ca " + ca + "`"},
	} {
		t.Run(name, func(t *testing.T) {
			env := map[string]string{"XDG_CONFIG_HOME": t.TempDir()}
			if _, errs, code := fairlead(t.Context(), "fl_ann\n", env, append(c.args, "--server", server)...); code != 1 || !strings.Contains(errs, c.want) {
				t.Errorf("%d %s", code, errs)
			}
		})
	}
}
