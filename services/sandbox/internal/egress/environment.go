package egress

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"slices"
)

// Address is where the listener is, inside a sandbox.
const Address = "127.0.0.1:3128"

// TrustPath is where a sandbox shows the bundle of trusted certificates, the node's
// own authority among them.
const TrustPath = "/etc/fairlead/certificates.pem"

// Environment is what makes the programs of a command use the proxy and trust its
// certificates: curl, git, Go, OpenSSL, Python, pip, Node.js, cargo, the AWS tools.
// exec, the command's id, goes along with each connection, so that events say whose
// it was.
func Environment(exec string) []string {
	at := "http://" + Address
	if exec != "" {
		at = "http://" + exec + ":exec@" + Address
	}
	var env []string
	for _, name := range []string{"http_proxy", "https_proxy", "all_proxy", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"} {
		env = append(env, name+"="+at)
	}
	for _, name := range []string{"no_proxy", "NO_PROXY"} {
		env = append(env, name+"=localhost,127.0.0.1,::1")
	}
	// Node.js heeds the proxy from version 24 on, and only so; git says who it is
	// only when it is told how.
	env = append(env, "NODE_USE_ENV_PROXY=1", "GIT_HTTP_PROXY_AUTHMETHOD=basic")
	for _, name := range []string{
		"SSL_CERT_FILE", "CURL_CA_BUNDLE", "GIT_SSL_CAINFO", "REQUESTS_CA_BUNDLE", "PIP_CERT", "AWS_CA_BUNDLE", "CARGO_HTTP_CAINFO", "NODE_EXTRA_CA_CERTS",
	} {
		env = append(env, name+"="+TrustPath)
	}
	return env
}

// machineRoots are where Linux distributions keep what they trust.
var machineRoots = []string{"/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt", "/etc/ssl/ca-bundle.pem", "/etc/ssl/cert.pem"}

// certificateRoom is the authority's part of the bundle, more than a certificate takes.
const certificateRoom = 1 << 10

func padded(cert []byte) []byte {
	return append(slices.Clone(cert), bytes.Repeat([]byte{'\n'}, certificateRoom-len(cert))...)
}

// Bundle writes what sandboxes are to trust into a directory: what the machine
// trusts, and the authority. It returns the file.
func (a *Authority) Bundle(dir string) (string, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	all := padded(a.pem)
	for _, f := range machineRoots {
		b, err := os.ReadFile(f)
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err != nil {
			return "", err
		}
		all = append(all, b...)
		break
	}
	file := filepath.Join(dir, "certificates.pem")
	if err := replace(file, all); err != nil {
		return "", err
	}
	a.bundle = file
	return file, os.Chmod(file, 0o644) //nolint:gosec // certificates are for everybody
}

// show writes the authority's certificate into the bundle, in the place of the one before. The
// file stays the same one: sandboxes that are there see it change, and no reader sees a half of it.
func (a *Authority) show(cert []byte) error {
	if a.bundle == "" {
		return nil
	}
	f, err := os.OpenFile(a.bundle, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteAt(padded(cert), 0)
	return errors.Join(err, f.Close())
}
