package egress

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"slices"
)

// Address is the listener's address inside a sandbox.
const Address = "127.0.0.1:3128"

// TrustPath is the path in a sandbox of the bundle of trusted certificates, including the node's authority.
const TrustPath = "/etc/fairlead/certificates.pem"

// Environment returns the variables that make a command's programs use the proxy and trust its
// certificates: curl, git, Go, OpenSSL, Python, pip, Node.js, cargo, the AWS tools. Each connection carries
// exec, the command's id, so that events name the command.
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
	// Node.js uses the proxy from version 24 on, and only with this; git sends the user name only with
	// this.
	env = append(env, "NODE_USE_ENV_PROXY=1", "GIT_HTTP_PROXY_AUTHMETHOD=basic")
	for _, name := range []string{
		"SSL_CERT_FILE", "CURL_CA_BUNDLE", "GIT_SSL_CAINFO", "REQUESTS_CA_BUNDLE", "PIP_CERT", "AWS_CA_BUNDLE", "CARGO_HTTP_CAINFO", "NODE_EXTRA_CA_CERTS",
	} {
		env = append(env, name+"="+TrustPath)
	}
	return env
}

// machineRoots are the paths of the trusted certificates on Linux distributions.
var machineRoots = []string{"/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt", "/etc/ssl/ca-bundle.pem", "/etc/ssl/cert.pem"}

// certificateRoom is the size of the authority's part of the bundle, more than a certificate takes.
const certificateRoom = 1 << 10

func padded(cert []byte) []byte {
	return append(slices.Clone(cert), bytes.Repeat([]byte{'\n'}, certificateRoom-len(cert))...)
}

// Bundle writes the certificates that sandboxes are to trust into a directory: the machine's and the
// authority's. It returns the file.
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
	return file, os.Chmod(file, 0o644) //nolint:gosec // certificates are public
}

// show writes the authority's certificate into the bundle, in place of the previous one. It changes the
// file in place: running sandboxes see the change, and no reader sees a part of it.
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
