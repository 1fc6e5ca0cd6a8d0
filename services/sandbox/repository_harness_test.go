package sandbox_test

import (
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/cgi"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	sandboxv1 "github.com/fairlead/fairlead/gen/go/fairlead/sandbox/v1"
	"github.com/fairlead/fairlead/services/sandbox"
	"github.com/fairlead/fairlead/services/sandbox/internal/egress"
	"github.com/fairlead/fairlead/services/sandbox/internal/repository"
)

const gitSecret = "ghp-s3cret-never-inside"

// gitBasic is the credential as it is in a request.
var gitBasic = base64.StdEncoding.EncodeToString([]byte("x-access-token:" + gitSecret))

// forge is a Git server on the host: by HTTPS, and only for those who have the
// credential.
type forge struct {
	t    *testing.T
	dir  string
	url  string // without a path
	port int
	pem  string // file of its certificate

	mu     sync.Mutex
	asked  []string                                          // method, path and user of each request
	before func(w http.ResponseWriter, r *http.Request) bool // answers instead, when it says so
}

func newForge(t *testing.T) *forge {
	t.Helper()
	if _, err := exec.LookPath("git"); err != nil {
		if os.Getenv("CI") != "" {
			t.Fatal("git is not on this machine: install it")
		}
		t.Skip("git is not on this machine")
	}
	path, err := exec.Command("git", "--exec-path").Output()
	if err != nil {
		t.Fatal(err)
	}
	f := &forge{t: t, dir: t.TempDir()}
	backend := &cgi.Handler{
		Path: filepath.Join(strings.TrimSpace(string(path)), "git-http-backend"),
		Env: []string{"GIT_PROJECT_ROOT=" + f.dir, "GIT_HTTP_EXPORT_ALL=1", "REMOTE_USER=x-access-token", "HOME=" + f.dir,
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
		if user != "x-access-token" || password != gitSecret {
			w.Header().Set("WWW-Authenticate", `Basic realm="forge"`)
			http.Error(w, "who are you?", http.StatusUnauthorized)
			return
		}
		r.Header.Del("Authorization") // the server's own program need not know it
		backend.ServeHTTP(w, r)
	}))
	t.Cleanup(s.Close)
	u, err := url.Parse(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	f.url = s.URL
	if f.port, err = strconv.Atoi(u.Port()); err != nil {
		t.Fatal(err)
	}
	f.pem = filepath.Join(f.dir, "certificate.pem")
	if err := os.WriteFile(f.pem, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw}), 0o644); err != nil {
		t.Fatal(err)
	}
	return f
}

// allow has the operator allow the forge's repositories below /org, and pushes to
// those that do not begin with "read".
func (f *forge) allow(c *sandbox.Config) {
	c.Egress.Roots = f.pem
	c.Egress.Credentials = map[string]egress.Credential{"forge": {Hosts: []string{"127.0.0.1"}, Username: "x-access-token", Secret: gitSecret}}
	one := repository.Remote{Host: "127.0.0.1", Ports: []int{f.port}, Credential: "forge", Addresses: []string{"127.0.0.0/8"}}
	read, write := one, one
	read.Paths, write.Paths, write.Push = []string{"/org/read*"}, []string{"/org/[!r]*"}, true
	c.Repositories.Remotes = []repository.Remote{read, write}
}

// git runs Git on the host, in a folder of the test's own.
func (f *forge) git(args ...string) string {
	f.t.Helper()
	cmd := exec.Command("git", append([]string{"-c", "init.defaultBranch=main", "-c", "user.name=Somebody", "-c", "user.email=somebody@example.com", "-c", "protocol.file.allow=always"}, args...)...)
	cmd.Dir = f.dir
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1", "HOME="+f.dir)
	out, err := cmd.CombinedOutput()
	if err != nil {
		f.t.Fatalf("git %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return strings.TrimSpace(string(out))
}

// publish makes org/{name}.git with one commit of some files, and returns the commit.
func (f *forge) publish(name string, content map[string]string) string {
	f.t.Helper()
	work := filepath.Join(f.dir, "work-"+name)
	f.git("init", "-q", work)
	for path, text := range content {
		path = filepath.Join(work, path)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o644)); err != nil {
			f.t.Fatal(err)
		}
	}
	f.git("-C", work, "add", "-A")
	f.git("-C", work, "commit", "-q", "--allow-empty", "-m", "first")
	f.git("clone", "-q", "--bare", work, filepath.Join(f.dir, "org", name+".git"))
	return f.git("-C", work, "rev-parse", "HEAD")
}

func (f *forge) repo(name string) string { return fmt.Sprintf("%s/org/%s.git", f.url, name) }

func (f *forge) requests() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([]string(nil), f.asked...)
}

func (f *forge) meddle(do func(w http.ResponseWriter, r *http.Request) bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.before = do
}

// clone clones, and returns what was told on the way.
func (c *client) clone(t *testing.T, r *sandboxv1.CloneRepositoryRequest) (*sandboxv1.Repository, []string, error) {
	t.Helper()
	if r.Call == nil {
		r.Call = c.call()
	}
	stream, err := c.repos.CloneRepository(t.Context(), r)
	if err != nil {
		return nil, nil, err
	}
	var phases []string
	var made *sandboxv1.Repository
	for {
		m, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return made, phases, nil
		}
		if err != nil {
			return nil, phases, err
		}
		if p := m.GetProgress(); p != nil {
			phases = append(phases, p.GetPhase())
		}
		if m.GetRepository() != nil {
			made = m.GetRepository()
		}
	}
}
