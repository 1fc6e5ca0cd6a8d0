//go:build linux

package sandbox

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

	"github.com/fairlead/fairlead/services/sandbox/internal/box"
	"github.com/fairlead/fairlead/services/sandbox/internal/runner/kubernetes"
)

// DriverKubernetes makes each sandbox as a pod of a cluster. It is experimental.
const DriverKubernetes = "kubernetes"

// LevelPod is the level of the driver `kubernetes`: the isolation of a pod. It cannot be chosen.
const LevelPod = "pod"

// Kubernetes is the configuration of the driver `kubernetes`.
type Kubernetes struct {
	Kubeconfig     string        `key:"kubeconfig" help:"file that says how the API server is reached; empty takes the service account of the pod that the service runs in"`
	Namespace      string        `key:"namespace" help:"namespace of sandboxes, and of the claim; empty takes that of the service account, or of the kubeconfig"`
	API            string        `key:"api" help:"what makes pods: pods, or agent-sandbox, whose controller makes one of each Sandbox (agents.x-k8s.io/v1beta1)"`
	Image          string        `key:"image" help:"image with the programs of commands; nothing of the service need be in it"`
	PullSecret     string        `key:"pull-secret" help:"name of the secret with which the image is pulled; empty for none"`
	Path           string        `key:"path" help:"PATH of commands in the image"`
	RuntimeClass   string        `key:"runtime-class" help:"RuntimeClass of pods, such as one of gVisor or Kata; empty takes the cluster's own"`
	UserNamespaces bool          `key:"user-namespaces" help:"have each pod have users of its own (hostUsers: false); where the cluster cannot, no sandbox is made"`
	Claim          string        `key:"claim" help:"PersistentVolumeClaim that the data directory is on"`
	ClaimPath      string        `key:"claim-path" help:"where in the claim the data directory is; empty for its root"`
	Volumes        []Volume      `key:"volumes" help:"further claims of the service's own pod, of which mounts and workflows may be shown: claim, claim-path in it, and the path at which the service has that"`
	Pod            string        `key:"pod" help:"name of the pod that the service runs in: sandboxes end with it and run on its node; empty outside of the cluster"`
	Node           string        `key:"node" help:"node that sandboxes run on; empty takes that of the service's pod"`
	RequestMemory  int64         `key:"request-memory" help:"memory that the scheduler keeps for a sandbox, in bytes; what it may have is limits.memory"`
	RequestCPUs    float64       `key:"request-cpus" help:"processors that the scheduler keeps for a sandbox; what it may have is limits.cpus"`
	Deadline       time.Duration `key:"deadline" help:"how long a pod may live at most, so that one whose service is gone ends"`
	StartTimeout   time.Duration `key:"start-timeout" help:"how long a sandbox may take to start, its image's download included"`
	Unreachable    []string      `key:"unreachable" help:"addresses (IP:port) at which somebody answers and which no sandbox may reach, to tell that the cluster keeps its network policies; none takes the API server's"`
}

// Volume is a claim that the service's own pod also mounts.
type Volume struct {
	// Claim is the PersistentVolumeClaim, and ClaimPath a folder in it; empty is its root.
	Claim     string `key:"claim"`
	ClaimPath string `key:"claim-path"`
	// Path is the path of that folder in the service's pod.
	Path string `key:"path"`
}

// check reports all faults of a chosen driver. It is not named Validate, which the configuration would call
// for every driver.
func (k Kubernetes) check() error {
	var faults []error
	bad := func(wrong bool, format string, args ...any) {
		if wrong {
			faults = append(faults, fmt.Errorf("kubernetes."+format, args...))
		}
	}
	bad(k.API != kubernetes.Pods && k.API != kubernetes.AgentSandboxes, "api: %q is none of pods, agent-sandbox", k.API)
	bad(k.Image == "", "image: must name an image with the programs of commands")
	bad(k.Claim == "", "claim: must name the PersistentVolumeClaim that the data directory is on")
	bad(k.Pod == "" && k.Node == "", "pod, node: one of them must say on which node sandboxes run, for it must be the volume's")
	bad(k.RequestMemory < 1<<20, "request-memory: %d is less than 1 MiB", k.RequestMemory)
	bad(k.RequestCPUs < 0.001, "request-cpus: %g is less than 0.001", k.RequestCPUs)
	bad(k.Deadline < time.Minute, "deadline: %v is less than a minute", k.Deadline)
	for _, v := range k.Volumes {
		bad(v.Claim == "" || !filepath.IsAbs(v.Path) || v.Path != filepath.Clean(v.Path), "volumes: %q at %q: each needs a claim, and the absolute, clean path that the service has it at", v.Claim, v.Path)
		bad(v.ClaimPath != "" && !filepath.IsLocal(v.ClaimPath), "volumes: claim-path %q does not lead into the claim", v.ClaimPath)
	}
	bad(k.StartTimeout < time.Second, "start-timeout: %v is less than a second", k.StartTimeout)
	return errors.Join(faults...)
}

// validateKubernetes reports settings that the driver does not support.
func (c Config) validateKubernetes() error {
	faults := []error{c.Kubernetes.check()}
	if c.Level != LevelAuto {
		faults = append(faults, fmt.Errorf("level: the driver `kubernetes` has one of its own, and cannot apply %q: leave it out", c.Level))
	}
	return errors.Join(append(faults, c.checkSources())...)
}

// checkSources reports mounts that pods cannot show because they are only on the service's machine.
func (c Config) checkSources() error {
	sources := map[string]string{}
	for _, m := range c.Mounts {
		sources["mount "+m.Name] = m.Source
	}
	if c.Workflows != "" {
		sources["workflows"] = c.Workflows
	}
	var faults []error
	for _, name := range slices.Sorted(maps.Keys(sources)) {
		on := func(v kubernetes.Volume) bool {
			_, ok := v.Holds(sources[name])
			return ok
		}
		if !slices.ContainsFunc(c.Kubernetes.volumes(), on) {
			faults = append(faults, fmt.Errorf("%s: %s is not on a volume of `kubernetes.volumes`, and pods see no folder of the service's machine: put it on a claim of the service's pod and name that there, or leave it out", name, sources[name]))
		}
	}
	return errors.Join(faults...)
}

func (k Kubernetes) volumes() []kubernetes.Volume {
	var all []kubernetes.Volume
	for _, v := range k.Volumes {
		all = append(all, kubernetes.Volume{Claim: v.Claim, ClaimPath: v.ClaimPath, Path: v.Path})
	}
	return all
}

// connect returns the configuration of the connection to the API server.
func (k Kubernetes) connect() (config *rest.Config, namespace string, err error) {
	if k.Kubeconfig == "" {
		if config, err = rest.InClusterConfig(); err != nil {
			return nil, "", fmt.Errorf("the service runs in no pod with a service account (%w): name a file with the key `kubernetes.kubeconfig`", err)
		}
		if namespace = k.Namespace; namespace == "" {
			raw, err := os.ReadFile("/var/run/secrets/kubernetes.io/serviceaccount/namespace")
			if err != nil {
				return nil, "", fmt.Errorf("find the service's namespace: %w: name it with the key `kubernetes.namespace`", err)
			}
			namespace = strings.TrimSpace(string(raw))
		}
		return config, namespace, nil
	}
	file := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(&clientcmd.ClientConfigLoadingRules{ExplicitPath: k.Kubeconfig}, &clientcmd.ConfigOverrides{})
	if config, err = file.ClientConfig(); err != nil {
		return nil, "", fmt.Errorf("kubernetes.kubeconfig: %w", err)
	}
	if namespace = k.Namespace; namespace == "" {
		namespace, _, err = file.Namespace()
	}
	return config, namespace, err
}

// newKubernetes makes the driver's runner. given has what the service provides: its network, its
// certificates and its log.
func (c Config) newKubernetes(ctx context.Context, data string, given kubernetes.Options) (*kubernetes.Runner, error) {
	k := c.Kubernetes
	config, namespace, err := k.connect()
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(data, 0o700); err != nil {
		return nil, fmt.Errorf("make the data directory: %w", err)
	}
	return kubernetes.New(ctx, kubernetes.Options{
		Config: config, Namespace: namespace, Pod: k.Pod, Node: k.Node, API: k.API, Image: k.Image, PullSecret: k.PullSecret, Path: k.Path,
		RuntimeClass: k.RuntimeClass, UserNamespaces: k.UserNamespaces, Claim: k.Claim, ClaimPath: k.ClaimPath, Data: data, Volumes: k.volumes(), Init: c.Init,
		CPUs: c.Limits.CPUs, RequestCPUs: k.RequestCPUs, RequestMemory: k.RequestMemory, Deadline: k.Deadline, StartTimeout: k.StartTimeout,
		Unreachable: k.Unreachable, Max: c.MaxSandboxes, Idle: c.IdleTimeout, Network: given.Network, Trust: given.Trust, Log: given.Log,
	})
}

// podIncludes lists what the driver applies to every command.
func (c Config) podIncludes(o box.Owners) []string {
	all := append([]string{"experimental"}, kubernetes.Includes...)
	if c.Kubernetes.UserNamespaces {
		all = append(all, "user-namespace")
	}
	if o.Base >= 0 {
		all = append(all, "uid-per-workspace")
	}
	return all
}
