package kubernetes_test

import (
	"errors"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fairlead/fairlead/services/sandbox/internal/box"
	"github.com/fairlead/fairlead/services/sandbox/kubernetes"
	"github.com/fairlead/fairlead/services/sandbox/kubernetes/internal/apitest"
)

// command is one in a workspace of its own.
func command(t *testing.T, script string) box.Command {
	t.Helper()
	l := box.Limits{MemoryBytes: 1 << 30, Processes: 64, CPUs: 2, FileBytes: 1 << 20, OpenFiles: 128, TmpBytes: 1 << 20, ShmBytes: 1 << 20}
	c := box.Command{Argv: []string{"bash", "-c", script}, Dir: box.WorkspacePath, Limits: l, Sandbox: box.Sandbox{
		ID: "test", Owner: owner, Limits: l, Workspace: t.TempDir(), Home: t.TempDir(),
	}}
	for _, dir := range []string{c.Sandbox.Workspace, c.Sandbox.Home} {
		if err := os.Chown(dir, owner.UID, owner.GID); err != nil {
			t.Fatal(err)
		}
	}
	return c
}

// run runs a command to its end, and returns what it wrote.
func run(t *testing.T, r box.Runner, c box.Command) (string, box.Exit, error) {
	t.Helper()
	p, err := r.Start(t.Context(), c)
	if err != nil {
		return "", box.Exit{}, err
	}
	return finish(p)
}

func finish(p box.Process) (string, box.Exit, error) {
	errs := make(chan error, 1)
	go func() {
		_, err := io.Copy(io.Discard, p.Stderr())
		errs <- errors.Join(err, p.Stderr().Close())
	}()
	out, err := io.ReadAll(p.Stdout())
	err = errors.Join(err, p.Stdout().Close(), <-errs)
	return string(out), p.Wait(), err
}

// launch starts a command that says that it is ready and then sleeps.
func launch(t *testing.T, r box.Runner, c box.Command, before string) box.Process {
	t.Helper()
	c.Argv = []string{"bash", "-c", before + "echo ready; sleep 600"}
	p, err := r.Start(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	line := make([]byte, 6)
	if _, err := io.ReadFull(p.Stdout(), line); err != nil || string(line) != "ready\n" {
		t.Fatalf("%q, %v", line, err)
	}
	return p
}

func wantFine(t *testing.T, r box.Runner, c box.Command) {
	t.Helper()
	c.Argv = []string{"echo", "fine"}
	if out, exit, err := run(t, r, c); out != "fine\n" || exit.Lost || err != nil {
		t.Errorf("the next one: %q, %+v, %v", out, exit, err)
	}
}

func TestWhatAClusterDoesNotGiveIsMissed(t *testing.T) {
	t.Parallel()
	needKubelet(t)
	refuse := func(verb, resource string, code int32, reason metav1.StatusReason) func(string, string) *metav1.Status {
		return func(v, r string) *metav1.Status {
			if v != verb || r != resource {
				return nil
			}
			return &metav1.Status{Code: code, Reason: reason, Message: "the quota is used up"}
		}
	}
	for _, tc := range []struct {
		name   string
		faults apitest.Faults
		change func(*kubernetes.Options)
		want   []string
	}{
		{"a pod that is refused", apitest.Faults{Refuse: refuse("create", "pods", http.StatusForbidden, metav1.StatusReasonForbidden)}, nil, []string{"make the pod", "the quota is used up"}},
		{"a node without room", apitest.Faults{Unschedulable: "0/1 nodes are available: insufficient memory"}, nil, []string{"did not start within", "insufficient memory", "kubernetes.start-timeout"}},
		{"an image that there is not", apitest.Faults{Waiting: "InvalidImageName"}, nil, []string{"cannot start", "InvalidImageName"}},
		{"an image that does not come", apitest.Faults{Waiting: "ImagePullBackOff"}, nil, []string{"did not start within", "ImagePullBackOff"}},
		{"no right to exec", apitest.Faults{NoExec: true}, nil, []string{"pods/exec is forbidden"}},
		{"a network that nothing closes", apitest.Faults{HostNetwork: true}, nil, []string{"it has a network", "NetworkPolicy"}},
		{"no user namespaces", apitest.Faults{HostUsers: true}, nil, []string{"no user namespace of its own"}},
		{"memory volumes without a size", apitest.Faults{Unbounded: true}, nil, []string{"/tmp may hold"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			s := apitest.New(t, apitest.Options{Volume: volume})
			s.Break(tc.faults)
			o := options(t, s)
			if slices.Contains(tc.want, "did not start within") {
				o.StartTimeout = time.Second
			}
			r := newRunner(t, o)
			_, exit, err := run(t, r, command(t, "echo it runs"))
			if err == nil {
				t.Fatalf("it ran: %+v", exit)
			}
			for _, want := range tc.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("no word of %q: %v", want, err)
				}
			}
			if left := s.Pods(); len(left) > 0 {
				t.Errorf("%d pods are left", len(left))
			}
			s.Break(apitest.Faults{})
			wantFine(t, newRunner(t, options(t, s)), command(t, ""))
		})
	}
}

func TestAPodThatIsSlowIsAwaited(t *testing.T) {
	t.Parallel()
	needKubelet(t)
	s := apitest.New(t, apitest.Options{Volume: volume})
	s.Break(apitest.Faults{Delay: time.Second})
	wantFine(t, newRunner(t, options(t, s)), command(t, ""))
}

func TestAPodWhoseProgramIsSlowIsAwaited(t *testing.T) {
	t.Parallel()
	needKubelet(t)
	s := apitest.New(t, apitest.Options{Volume: volume})
	s.Break(apitest.Faults{SlowProgram: true})
	wantFine(t, newRunner(t, options(t, s)), command(t, ""))
}

func TestASandboxThatEndsByItselfIsLost(t *testing.T) {
	t.Parallel()
	needKubelet(t)
	s := apitest.New(t, apitest.Options{Volume: volume})
	r := newRunner(t, options(t, s))
	for _, tc := range []struct {
		name string
		do   func()
		late bool // the node says how it ended when the pod is deleted, and not sooner
		oom  bool
	}{
		{"the connection is cut", s.Cut, false, false},
		{"the pod is evicted", func() { s.Evict("Evicted") }, false, false},
		{"the pod is out of memory", func() { s.Evict("OOMKilled") }, false, true},
		{"the pod is out of memory, which is said late", func() { s.Evict("OOMKilled") }, true, true},
		{"another client deletes the pod", func() {
			for _, p := range s.Pods() {
				s.Delete(p.Name)
			}
		}, false, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s.Break(apitest.Faults{Reticent: tc.late})
			c := command(t, "")
			p := launch(t, r, c, "setsid bash -c 'while :; do echo x >> alive; sleep 0.01; done' & until [ -e alive ]; do sleep 0.01; done; ")
			tc.do()
			if _, exit, err := finish(p); !exit.Lost || exit.OOMKilled != tc.oom || err != nil {
				t.Errorf("%+v, %v", exit, err)
			}
			wantFine(t, r, c)
			before := size(t, c)
			wantFine(t, r, c)
			if after := size(t, c); after != before {
				t.Errorf("something still writes: %d, %d", before, after)
			}
		})
	}
}

func size(t *testing.T, c box.Command) int64 {
	t.Helper()
	st, err := os.Stat(filepath.Join(c.Sandbox.Workspace, "alive"))
	if err != nil {
		t.Fatal(err)
	}
	return st.Size()
}

func TestACommandCanOnlyHarmItsOwnSandbox(t *testing.T) {
	t.Parallel()
	needKubelet(t)
	s := apitest.New(t, apitest.Options{Volume: volume})
	r := newRunner(t, options(t, s))
	neighbor := command(t, "")
	stays := launch(t, r, neighbor, "")
	for _, tc := range []struct {
		name, script string
		stands       bool // it ends nothing, and says so by a file
	}{
		{"it kills init", "kill -9 -1; sleep 600", false},
		{"it stops init", "for p in /proc/[0-9]*; do p=${p#/proc/}; [ $p = $$ ] || kill -STOP $p; done; echo > stands; sleep 600", true},
		{"it ends the pod", "kill -TERM 1; sleep 600", false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c := command(t, "read; "+tc.script)
			c.Stdin = true // so that init has said that it runs
			stands := pipeIn(t, c)
			p, err := r.Start(t.Context(), c)
			if err == nil {
				_, err = io.WriteString(p.Stdin(), "\n")
			}
			if err != nil {
				t.Fatal(err)
			}
			if tc.stands {
				if _, err := stands.Read(make([]byte, 1)); err != nil {
					t.Fatal(err)
				}
				p.Kill()
			}
			if _, exit, err := finish(p); !exit.Lost || err != nil {
				t.Errorf("%+v, %v", exit, err)
			}
			_ = p.Stdin().Close()
			c.Stdin = false
			wantFine(t, r, c)
		})
	}
	stays.Kill()
	if _, exit, err := finish(stays); exit.Signal != 9 || err != nil {
		t.Errorf("the neighbor: %+v, %v", exit, err)
	}
}

// pipeIn puts a pipe with the name stands into a command's workspace, by which it tells
// of something without init.
func pipeIn(t *testing.T, c box.Command) *os.File {
	t.Helper()
	name := filepath.Join(c.Sandbox.Workspace, "stands")
	if err := errors.Join(unix.Mkfifo(name, 0o600), os.Chown(name, owner.UID, owner.GID)); err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(name, os.O_RDWR, 0)
	if err == nil {
		t.Cleanup(func() { _ = f.Close() })
		err = f.SetReadDeadline(time.Now().Add(time.Minute))
	}
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func TestWhatACrashLeftIsRemoved(t *testing.T) {
	t.Parallel()
	needKubelet(t)
	for _, api := range []string{kubernetes.Pods, kubernetes.AgentSandboxes} {
		t.Run(api, func(t *testing.T) {
			s := apitest.New(t, apitest.Options{Volume: volume})
			o := options(t, s)
			o.API = api
			crashed := newRunner(t, o)
			p := launch(t, crashed, command(t, ""), "")
			other := o
			other.ClaimPath = "."
			next := newRunner(t, other)
			if err := next.Sweep(t.Context()); err != nil {
				t.Fatal(err)
			}
			if left := len(s.Pods()) + len(s.Sandboxes()); left > 0 {
				t.Errorf("%d objects are left", left)
			}
			if _, exit, err := finish(p); !exit.Lost || err != nil {
				t.Errorf("%+v, %v", exit, err)
			}
		})
	}
}

func TestTheRoleInTheManifestIsEnoughAndNotMore(t *testing.T) {
	t.Parallel()
	needKubelet(t)
	s := apitest.New(t, apitest.Options{Volume: volume, Role: role})
	s.AddSelf("sandbox-0")
	for _, api := range []string{kubernetes.Pods, kubernetes.AgentSandboxes} {
		o := options(t, s)
		o.API, o.Pod, o.Node = api, "sandbox-0", ""
		r := newRunner(t, o)
		wantFine(t, r, command(t, ""))
		if err := r.Sweep(t.Context()); err != nil {
			t.Error(err)
		}
	}
	if unused := s.Unused(); len(unused) > 0 {
		t.Errorf("no pod needs %v", unused)
	}
}

func TestSandboxesEndWithTheService(t *testing.T) {
	t.Parallel()
	needKubelet(t)
	for _, api := range []string{kubernetes.Pods, kubernetes.AgentSandboxes} {
		t.Run(api, func(t *testing.T) {
			s := apitest.New(t, apitest.Options{Volume: volume})
			s.AddSelf("sandbox-0")
			o := options(t, s)
			o.API, o.Pod, o.Node = api, "sandbox-0", ""
			p := launch(t, newRunner(t, o), command(t, ""), "")
			s.Delete("sandbox-0") // the cluster's garbage collector does the rest
			if _, exit, err := finish(p); !exit.Lost || err != nil {
				t.Errorf("%+v, %v", exit, err)
			}
		})
	}
}
