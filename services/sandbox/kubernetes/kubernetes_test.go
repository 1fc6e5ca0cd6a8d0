package kubernetes_test

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/fairlead/fairlead/services/internal/kit/prove"
	"github.com/fairlead/fairlead/services/sandbox/internal/box"
	"github.com/fairlead/fairlead/services/sandbox/internal/runner/runnertest"
	"github.com/fairlead/fairlead/services/sandbox/kubernetes"
	"github.com/fairlead/fairlead/services/sandbox/kubernetes/internal/apitest"
)

// volume is the folder that is the cluster's volume: all that tests make lies in it.
var volume string

func TestMain(m *testing.M) {
	os.Exit(main(m))
}

func main(m *testing.M) int {
	dir, err := os.MkdirTemp("/tmp", "fairlead-volume-")
	if err == nil {
		err = errors.Join(os.Chmod(dir, 0o711), os.Setenv("TMPDIR", dir))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer func() { _ = os.RemoveAll(dir) }()
	volume = dir
	code := m.Run()
	// It ends by itself, at its next beat.
	if err := goleak.Find(goleak.IgnoreTopFunction("k8s.io/client-go/tools/remotecommand.(*heartbeat).start")); err != nil && code == 0 {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return code
}

// owner is whom workspaces belong to.
var owner = box.Owner{UID: 1000, GID: 1000}

// needKubelet skips a test where nothing can run a pod, but not in CI.
func needKubelet(t *testing.T) {
	t.Helper()
	prove.Only(t, "pods are not the default driver")
	if os.Getuid() != 0 {
		t.Skip("it needs root")
	}
	if _, err := exec.LookPath("runc"); err != nil && os.Getenv("CI") == "" {
		t.Skip(err)
	}
}

func options(t *testing.T, s *apitest.Server) kubernetes.Options {
	t.Helper()
	return kubernetes.Options{
		Config: s.Config(), Namespace: apitest.Namespace, Node: apitest.Node, API: kubernetes.Pods,
		Template: kubernetes.Template{
			Image: "registry.example/tools:1", Path: s.Path(), UserNamespaces: true, CPUs: 2, RequestCPUs: 0.1, RequestMemory: 64 << 20,
			Deadline: time.Hour,
		},
		Claim: apitest.Claim, Data: volume, StartTimeout: time.Minute, Log: slog.New(slog.NewTextHandler(t.Output(), nil)),
	}
}

func newRunner(t *testing.T, o kubernetes.Options) *kubernetes.Runner {
	t.Helper()
	r, err := kubernetes.New(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	})
	return r
}

// role is what operators are told to give the service.
var role = filepath.Join("..", "..", "..", "deploy", "k8s", "pods", "sandbox.yaml")

// shelf makes a folder for another claim, outside of what every sandbox has itself.
func shelf(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/srv", "fairlead-shelf-")
	if err == nil {
		err = os.Chmod(dir, 0o711)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

func TestConforms(t *testing.T) {
	needKubelet(t)
	shelf := shelf(t)
	s := apitest.New(t, apitest.Options{Volume: volume, Claims: map[string]string{"shelf": filepath.Dir(shelf)}})
	runnertest.Run(t, runnertest.Subject{
		Owner: owner, Sources: shelf,
		Has: runnertest.Features{Isolated: true, Mounts: true, Network: true},
		New: func(t *testing.T, o runnertest.Options) box.Runner {
			x := options(t, s)
			x.Max, x.Idle, x.Network = o.Max, o.Idle, o.Network
			x.Volumes = []kubernetes.Volume{{Claim: "shelf", ClaimPath: filepath.Base(shelf), Path: shelf}}
			return newRunner(t, x)
		},
	})
	if left := s.Pods(); len(left) > 0 {
		t.Errorf("%d pods are left", len(left))
	}
}
