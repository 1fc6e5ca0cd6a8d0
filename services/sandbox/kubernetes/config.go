package kubernetes

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/fairlead/fairlead/services/sandbox"
	"github.com/fairlead/fairlead/services/sandbox/internal/box"
)

// Level is the level of the driver: the isolation of a pod.
const Level = "pod"

// Config of the driver. Sizes are in bytes.
type Config struct {
	Kubeconfig     string        `key:"kubeconfig" help:"file with the address and credentials of the API server; empty takes the service account of the service's own pod"`
	Namespace      string        `key:"namespace" help:"namespace of sandboxes and of the claim; empty takes the namespace of the service account or of the kubeconfig"`
	API            string        `key:"api" help:"resource that the service creates: pods, or agent-sandbox, whose controller creates a pod for each Sandbox (agents.x-k8s.io/v1beta1)"`
	Image          string        `key:"image" help:"image with the programs of commands; it needs no part of the service"`
	PullSecret     string        `key:"pull-secret" help:"name of the secret with which the image is pulled; empty for none"`
	Path           string        `key:"path" help:"PATH of commands in the image"`
	RuntimeClass   string        `key:"runtime-class" help:"RuntimeClass of pods, such as a class of gVisor or Kata; empty takes the cluster's own"`
	UserNamespaces bool          `key:"user-namespaces" help:"give each pod its own users (hostUsers: false); in a cluster without support no sandbox is created"`
	Claim          string        `key:"claim" help:"PersistentVolumeClaim that holds the data directory"`
	ClaimPath      string        `key:"claim-path" help:"path of the data directory in the claim; empty for the claim's root"`
	Volumes        []Volume      `key:"volumes" help:"more claims of the service's own pod, from which mounts and workflows may come: claim, claim-path in it, and the path at which the service has that"`
	Pod            string        `key:"pod" help:"name of the service's own pod: sandboxes end with it and run on its node; empty outside of the cluster"`
	Node           string        `key:"node" help:"node on which sandboxes run; empty takes the node of the service's pod"`
	RequestMemory  int64         `key:"request-memory" help:"memory that the scheduler reserves for a sandbox, in bytes; its limit is limits.memory"`
	RequestCPUs    float64       `key:"request-cpus" help:"processors that the scheduler reserves for a sandbox; its limit is limits.cpus"`
	Deadline       time.Duration `key:"deadline" help:"the longest life of a pod, so that a pod whose service is gone ends"`
	StartTimeout   time.Duration `key:"start-timeout" help:"how long a sandbox may take to start, with the download of its image"`
	Unreachable    []string      `key:"unreachable" help:"addresses (IP:port) of running servers that no sandbox may reach, to check that the cluster enforces its network policies; none takes the API server's addresses"`
}

// Defaults returns the defaults of all keys.
func Defaults() Config {
	return Config{
		API: Pods, Path: "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", UserNamespaces: true,
		RequestMemory: 128 << 20, RequestCPUs: 0.1, Deadline: 48 * time.Hour, StartTimeout: 3 * time.Minute,
	}
}

// Validate reports all faults.
func (c Config) Validate() error {
	var faults []error
	bad := func(wrong bool, format string, args ...any) {
		if wrong {
			faults = append(faults, fmt.Errorf(format, args...))
		}
	}
	bad(c.API != Pods && c.API != AgentSandboxes, "api: %q is not pods or agent-sandbox", c.API)
	bad(c.Image == "", "image: must name an image with the programs of commands")
	bad(c.Claim == "", "claim: must name the PersistentVolumeClaim that holds the data directory")
	bad(c.Pod == "" && c.Node == "", "pod, node: set one of them; sandboxes must run on the volume's node")
	bad(c.RequestMemory < 1<<20, "request-memory: %d is less than 1 MiB", c.RequestMemory)
	bad(c.RequestCPUs < 0.001, "request-cpus: %g is less than 0.001", c.RequestCPUs)
	bad(c.Deadline < time.Minute, "deadline: %v is less than a minute", c.Deadline)
	for _, v := range c.Volumes {
		bad(v.Claim == "" || !filepath.IsAbs(v.Path) || v.Path != filepath.Clean(v.Path), "volumes: %q at %q: each needs a claim, and the absolute, clean path that the service has it at", v.Claim, v.Path)
		bad(v.ClaimPath != "" && !filepath.IsLocal(v.ClaimPath), "volumes: claim-path %q does not lead into the claim", v.ClaimPath)
	}
	bad(c.StartTimeout < time.Second, "start-timeout: %v is less than a second", c.StartTimeout)
	return errors.Join(faults...)
}

// checkSources reports mounts that pods cannot show because they are only on the service's machine.
func (c Config) checkSources(s sandbox.Config) error {
	sources := map[string]string{}
	for _, m := range s.Mounts {
		sources["mount "+m.Name] = m.Source
	}
	if s.Workflows != "" {
		sources["workflows"] = s.Workflows
	}
	var faults []error
	for _, name := range slices.Sorted(maps.Keys(sources)) {
		on := func(v Volume) bool {
			_, ok := v.Holds(sources[name])
			return ok
		}
		if !slices.ContainsFunc(c.Volumes, on) {
			faults = append(faults, fmt.Errorf("%s: %s is not on a volume of `kubernetes.volumes`, and pods see no folder of the service's machine: put it on a claim of the service's pod and name the claim there, or leave it out", name, sources[name]))
		}
	}
	return errors.Join(faults...)
}

// connect returns the configuration of the connection to the API server.
func (c Config) connect() (config *rest.Config, namespace string, err error) {
	if c.Kubeconfig == "" {
		if config, err = rest.InClusterConfig(); err != nil {
			return nil, "", fmt.Errorf("the service does not run in a pod with a service account (%w): name a file with the key `kubernetes.kubeconfig`", err)
		}
		if namespace = c.Namespace; namespace == "" {
			raw, err := os.ReadFile("/var/run/secrets/kubernetes.io/serviceaccount/namespace")
			if err != nil {
				return nil, "", fmt.Errorf("find the service's namespace: %w: name it with the key `kubernetes.namespace`", err)
			}
			namespace = strings.TrimSpace(string(raw))
		}
		return config, namespace, nil
	}
	file := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(&clientcmd.ClientConfigLoadingRules{ExplicitPath: c.Kubeconfig}, &clientcmd.ConfigOverrides{})
	if config, err = file.ClientConfig(); err != nil {
		return nil, "", fmt.Errorf("kubernetes.kubeconfig: %w", err)
	}
	if namespace = c.Namespace; namespace == "" {
		namespace, _, err = file.Namespace()
	}
	return config, namespace, err
}

// Driver returns the driver for sandbox.New.
func (c Config) Driver() sandbox.Driver {
	return sandbox.Driver{Name: "kubernetes", Level: Level, StartTimeout: c.StartTimeout, Unmapped: true, New: c.runner}
}

func (c Config) runner(ctx context.Context, g sandbox.DriverDeps) (sandbox.Runner, []string, error) {
	if err := c.checkSources(g.Config); err != nil {
		return nil, nil, err
	}
	connection, namespace, err := c.connect()
	if err != nil {
		return nil, nil, err
	}
	r, err := New(ctx, Options{
		Config: connection, Namespace: namespace, Pod: c.Pod, Node: c.Node, API: c.API,
		Template: Template{
			Image: c.Image, PullSecret: c.PullSecret, Path: c.Path, RuntimeClass: c.RuntimeClass, UserNamespaces: c.UserNamespaces,
			CPUs: g.Config.Limits.CPUs, RequestCPUs: c.RequestCPUs, RequestMemory: c.RequestMemory, Deadline: c.Deadline,
		},
		Claim: c.Claim, ClaimPath: c.ClaimPath, Data: g.Data, Volumes: c.Volumes, Init: g.Config.Init, StartTimeout: c.StartTimeout,
		Unreachable: c.Unreachable, Max: g.Config.MaxSandboxes, Idle: g.Config.IdleTimeout, Network: g.Network, Trust: g.Trust, Log: g.Log,
	})
	if err != nil {
		return nil, nil, err
	}
	return r, c.includes(g.Owners), nil
}

// includes lists what the driver applies to every command.
func (c Config) includes(o box.Owners) []string {
	all := append([]string{"experimental"}, Includes...)
	if c.UserNamespaces {
		all = append(all, "user-namespace")
	}
	if o.Base >= 0 {
		all = append(all, "uid-per-workspace")
	}
	return all
}
