// Package gittest provides a Git server for tests: real Git, behind HTTPS and a password.
package gittest

import (
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"net/http"
	"net/http/cgi" //nolint:gosec // the fault that it warns of was in Go before 1.6.3
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// User and Secret are the user name and the password of a forge.
const (
	User   = "x-access-token"
	Secret = "ghp-s3cret-never-inside"
)

// Basic is the credential as sent in a request.
var Basic = base64.StdEncoding.EncodeToString([]byte(User + ":" + Secret))

// Forge is a Git server on the host, over HTTPS, that requires the credential.
type Forge struct {
	t *testing.T
	// Dir holds the repositories; URL is the server's, without a path; PEM is the file of its certificate.
	Dir, URL, PEM string
	Port          int

	mu     sync.Mutex
	asked  []string                                          // method, path and user of each request
	before func(w http.ResponseWriter, r *http.Request) bool // answers a request itself if it returns true
}

// New starts a forge without repositories that runs until the test ends.
func New(t *testing.T) *Forge {
	t.Helper()
	if _, err := exec.LookPath("git"); err != nil {
		if os.Getenv("CI") != "" {
			t.Fatal("git is not on this machine: install it")
		}
		t.Skip("git is not on this machine")
	}
	path, err := exec.CommandContext(t.Context(), "git", "--exec-path").Output()
	if err != nil {
		t.Fatal(err)
	}
	f := &Forge{t: t, Dir: t.TempDir()}
	backend := &cgi.Handler{
		Path: filepath.Join(strings.TrimSpace(string(path)), "git-http-backend"),
		Env: []string{"GIT_PROJECT_ROOT=" + f.Dir, "GIT_HTTP_EXPORT_ALL=1", "REMOTE_USER=" + User, "HOME=" + f.Dir,
			"GIT_CONFIG_COUNT=3", "GIT_CONFIG_KEY_0=safe.directory", "GIT_CONFIG_VALUE_0=*", "GIT_CONFIG_KEY_1=http.receivepack", "GIT_CONFIG_VALUE_1=true",
			"GIT_CONFIG_KEY_2=uploadpack.allowReachableSHA1InWant", "GIT_CONFIG_VALUE_2=true"},
		Stderr: t.Output(),
	}
	s := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		user, password, _ := r.BasicAuth()
		f.mu.Lock()
		f.asked = append(f.asked, r.Method+" "+r.URL.Path+" "+user)
		before := f.before
		f.mu.Unlock()
		if before != nil && before(w, r) {
			return
		}
		if user != User || password != Secret {
			w.Header().Set("WWW-Authenticate", `Basic realm="forge"`)
			http.Error(w, "who are you?", http.StatusUnauthorized)
			return
		}
		r.Header.Del("Authorization") // the server's program need not know it
		backend.ServeHTTP(w, r)
	}))
	t.Cleanup(s.Close)
	u, err := url.Parse(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	f.URL = s.URL
	if f.Port, err = strconv.Atoi(u.Port()); err != nil {
		t.Fatal(err)
	}
	f.PEM = filepath.Join(f.Dir, "certificate.pem")
	if err := os.WriteFile(f.PEM, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw}), 0o644); err != nil {
		t.Fatal(err)
	}
	return f
}

// Git runs Git on the host, in a folder of the test.
func (f *Forge) Git(args ...string) string {
	f.t.Helper()
	cmd := exec.CommandContext(f.t.Context(), "git", append([]string{"-c", "init.defaultBranch=main", "-c", "user.name=Somebody", "-c", "user.email=somebody@example.com", "-c", "protocol.file.allow=always"}, args...)...) //nolint:gosec // the arguments are the tests' own
	cmd.Dir = f.Dir
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1", "HOME="+f.Dir)
	out, err := cmd.CombinedOutput()
	if err != nil {
		f.t.Fatalf("git %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return strings.TrimSpace(string(out))
}

// Publish makes org/{name}.git with one commit of some files, and returns the commit.
func (f *Forge) Publish(name string, content map[string]string) string {
	f.t.Helper()
	work := filepath.Join(f.Dir, "work-"+name)
	f.Git("init", "-q", work)
	for path, text := range content {
		path = filepath.Join(work, path)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o644)); err != nil {
			f.t.Fatal(err)
		}
	}
	f.Git("-C", work, "add", "-A")
	f.Git("-C", work, "commit", "-q", "--allow-empty", "-m", "first")
	f.Git("clone", "-q", "--bare", work, filepath.Join(f.Dir, "org", name+".git"))
	return f.Git("-C", work, "rev-parse", "HEAD")
}

// Repo returns the address of org/{name}.git.
func (f *Forge) Repo(name string) string { return fmt.Sprintf("%s/org/%s.git", f.URL, name) }

// Requests returns all requests so far, each with method, path and user.
func (f *Forge) Requests() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([]string(nil), f.asked...)
}

// Meddle installs a function that sees each request first; it returns true if it answered the request.
func (f *Forge) Meddle(do func(w http.ResponseWriter, r *http.Request) bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.before = do
}
