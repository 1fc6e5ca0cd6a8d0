// Package kubernetes runs commands in pods, one long-lived pod to a workspace. Init runs in the pod through
// the API server and carries all data over that one connection. Package pool does the rest.
//
// The pod mounts the workspace and the home directory from the volume of the service's data, so it runs on
// the service's node. Init is on the same volume, read-only, and the operator chooses the image.
//
// The cluster provides much of the isolation, and some clusters silently do not. So init checks it in each
// pod before any command (see verify). A missing part is an error.
package kubernetes

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"net/url"
	"path/filepath"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/fairlead/fairlead/services/sandbox/internal/box"
	"github.com/fairlead/fairlead/services/sandbox/internal/runner/pool"
)

// APIs that make pods.
const (
	// Pods makes pods directly.
	Pods = "pods"
	// AgentSandboxes makes them through the controller of agent-sandbox.
	AgentSandboxes = "agent-sandbox"
)

// Includes lists what this driver provides.
var Includes = []string{
	"pod", "pid-namespace", "network-namespace", "ipc-namespace", "uts-namespace", "mount-namespace", "no-network", "read-only-root", "no-capabilities",
	"no-new-privileges", "seccomp", "non-root", "clean-environment", "pod-memory-limit", "pod-cpu-limit", "memory-rlimit", "processes-rlimit",
	"file-size-limit", "open-files-limit", "workspace-limit", "output-limit", "wall-time-limit",
}

// Options of a Runner.
type Options struct {
	// Config is the configuration of the connection to the API server.
	Config *rest.Config
	// Namespace is the namespace of the pods.
	Namespace string
	// Pod is the service's own pod, in the same namespace: sandboxes end with it and run on its node. Empty
	// if there is none.
	Pod string
	// Node is the node of the sandboxes; if empty, it is Pod's, or else the scheduler's choice.
	Node string
	// API is Pods or AgentSandboxes.
	API string
	Template
	// Claim is the PersistentVolumeClaim of the data directory, which is at ClaimPath in it and at Data
	// here.
	Claim, ClaimPath, Data string
	// Volumes are other volumes that sandboxes may be shown parts of.
	Volumes []Volume
	// Init is the file that holds init; empty means the embedded one.
	Init string
	// StartTimeout limits the making of a sandbox.
	StartTimeout time.Duration
	// Unreachable are live addresses (IP:port) that no sandbox may reach. If empty, it is the address of
	// the API server.
	Unreachable []string
	// Network serves the way out of sandboxes, as in pool.Options; nil: no sandbox may have one. Trust is
	// the file of the certificates that these sandboxes trust, shown at pool.TrustPath; empty shows none.
	Network func(s box.Sandbox, l net.Listener) (io.Closer, error)
	Trust   string
	// Max is the largest number of sandboxes; zero means no limit.
	Max int
	// Idle is after how long an idle sandbox is ended; zero means never.
	Idle time.Duration
	Log  *slog.Logger
}

// Template is what all pods have in common.
type Template struct {
	// Image has the programs of commands, PullSecret is the secret to pull it, and Path is the PATH of
	// commands.
	Image, PullSecret, Path string
	RuntimeClass            string // empty means the cluster's default
	// UserNamespaces gives each pod its own users, which the cluster must support.
	UserNamespaces bool
	// CPUs limits a pod. The requests are what the scheduler reserves for it.
	CPUs, RequestCPUs float64
	RequestMemory     int64
	// Deadline is how long a pod may live, in case no service is left to end it.
	Deadline time.Duration
}

// maker is a pool.Maker.
type maker struct {
	o           Options
	client      *client
	data        string // the data directory, without links
	id          string // the service's id, in labels
	node        string
	secret      string                 // in the names of folders that commands see
	owner       *metav1.OwnerReference // nil for none
	unreachable []netip.AddrPort
	work        sync.WaitGroup // goroutines that carry the output of ended commands

	mu        sync.Mutex // guards what follows
	leftovers map[string]string
}

// Runner is a box.Runner.
type Runner struct {
	*pool.Runner
	m *maker
}

// New queries the API server and puts init on the volume. The caller must close the runner after its last
// command has ended.
func New(ctx context.Context, o Options) (*Runner, error) {
	m := &maker{o: o, secret: rand.Text(), leftovers: map[string]string{}}
	if err := m.open(ctx); err != nil {
		return nil, err
	}
	o.Log.WarnContext(ctx, "THE DRIVER KUBERNETES IS EXPERIMENTAL: it was tested against an API server of its tests alone, and never in a cluster. "+
		"Test it as docs/sandbox-drivers.md describes before you rely on it", "driver", "kubernetes", "namespace", o.Namespace, "api", o.API, "node", m.node)
	r, err := pool.New(pool.Options{Maker: m, Path: o.Path, Max: o.Max, Idle: o.Idle, Network: o.Network, MakeTimeout: o.StartTimeout, Log: o.Log})
	if err != nil {
		return nil, err
	}
	return &Runner{Runner: r, m: m}, nil
}

func (m *maker) open(ctx context.Context) (err error) {
	if m.data, err = filepath.EvalSymlinks(m.o.Data); err != nil {
		return fmt.Errorf("find the data directory: %w", err)
	}
	id := sha256.Sum256([]byte(m.o.Namespace + "\x00" + m.o.Claim + "\x00" + filepath.Clean(m.o.ClaimPath)))
	m.id, m.node = hex.EncodeToString(id[:8]), m.o.Node
	if m.client, err = newClient(m.o.Config, m.o.Namespace); err != nil {
		return err
	}
	if m.o.Pod != "" {
		if err := m.findSelf(ctx); err != nil {
			return err
		}
	}
	if m.unreachable, err = addresses(ctx, m.o); err != nil {
		return err
	}
	var some corev1.PodList
	if err := m.client.list(ctx, pods, LabelService+"="+m.id, &some); err != nil {
		return fmt.Errorf("the API server does not let the service list pods in %s: %w", m.o.Namespace, err)
	}
	return m.putFiles()
}

// findSelf finds the pod that the service runs in.
func (m *maker) findSelf(ctx context.Context) error {
	var p corev1.Pod
	if err := m.client.get(ctx, pods, m.o.Pod, &p); err != nil {
		return fmt.Errorf("find the service's own pod %s in %s (key `kubernetes.pod`): %w", m.o.Pod, m.o.Namespace, err)
	}
	m.owner = &metav1.OwnerReference{APIVersion: "v1", Kind: "Pod", Name: p.Name, UID: p.UID}
	if m.node == "" {
		m.node = p.Spec.NodeName
	}
	return nil
}

// addresses returns the addresses that no sandbox may reach.
func addresses(ctx context.Context, o Options) (all []netip.AddrPort, err error) {
	for _, text := range o.Unreachable {
		at, err := netip.ParseAddrPort(text)
		if err != nil {
			return nil, fmt.Errorf("kubernetes.unreachable: %q is not an address with a port", text)
		}
		all = append(all, at)
	}
	if len(all) > 0 {
		return all, nil
	}
	u, err := url.Parse(o.Config.Host)
	if err != nil || u.Hostname() == "" {
		return nil, fmt.Errorf("the API server's address %q is not valid: with the key `kubernetes.unreachable`, name an address that no sandbox may reach", o.Config.Host)
	}
	port := u.Port()
	if port == "" {
		port = "443"
	}
	found, err := net.DefaultResolver.LookupHost(ctx, u.Hostname())
	if err != nil {
		return nil, fmt.Errorf("find the API server's address, which no sandbox may reach: %w", err)
	}
	at, err := netip.ParseAddrPort(net.JoinHostPort(found[0], port))
	if err != nil {
		return nil, fmt.Errorf("find the API server's address, which no sandbox may reach: %w", err)
	}
	return []netip.AddrPort{at}, nil
}

// Close implements pool.Maker.
func (m *maker) Close() error {
	m.work.Wait()
	return nil
}
