package kubernetes

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fairlead/fairlead/services/sandbox/internal/box"
	"github.com/fairlead/fairlead/services/sandbox/internal/runner/pool"
)

// Labels of the driver's objects.
const (
	// LabelService identifies the owner by the volume of the service's data.
	LabelService = "fairlead.dev/service"
	// LabelSandbox is the sandbox's own name.
	LabelSandbox = "fairlead.dev/sandbox"
	// LabelPart is equal for all, for selectors of policies: see LabelPartValue.
	LabelPart      = "app.kubernetes.io/component"
	LabelPartValue = "fairlead-sandbox"
)

const (
	container = "sandbox"
	volume    = "data"
	// initFolder is the folder of init, in the data directory and in the pod. A folder is mounted, because
	// a mount of a single file would not follow a replaced file.
	initFolder = ".init"
	initPath   = "/.fairlead"
	initFile   = initPath + "/init"
	// trustFolder is the folder of the trusted certificates, likewise. The authority's key is elsewhere.
	trustFolder = ".trust"
)

// place is where a sandbox's folders are on the volume, and their owner.
type place struct {
	workspace, home string
	uid, gid        int64
	shown           []shown
}

// place returns a sandbox's place.
func (m *maker) place(s box.Sandbox) (place, error) {
	p := place{uid: int64(s.Owner.UID), gid: int64(s.Owner.GID)}
	if s.Owner == box.Self {
		p.uid, p.gid = int64(os.Getuid()), int64(os.Getgid())
	}
	if p.uid == 0 || p.gid == 0 {
		return place{}, fmt.Errorf("commands would run as root: give the workspace a user of its own")
	}
	var err error
	if p.workspace, err = m.onVolume(s.Workspace); err == nil {
		p.home, err = m.onVolume(s.Home)
	}
	if err == nil {
		p.shown, err = m.mounts(s)
	}
	return p, err
}

// onVolume returns a folder's path on the volume.
func (m *maker) onVolume(dir string) (string, error) {
	dir, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return "", fmt.Errorf("find the workspace: %w", err)
	}
	rel, err := filepath.Rel(m.data, dir)
	if err != nil || !filepath.IsLocal(rel) {
		return "", fmt.Errorf("%s is not on the volume, which is at %s", dir, m.data)
	}
	return filepath.Join(m.o.ClaimPath, rel), nil
}

func (m *maker) labels(name string) map[string]string {
	return map[string]string{LabelService: m.id, LabelSandbox: name, LabelPart: LabelPartValue}
}

func (m *maker) meta(name string) metav1.ObjectMeta {
	meta := metav1.ObjectMeta{Name: name, Namespace: m.client.namespace, Labels: m.labels(name)}
	if m.owner != nil {
		meta.OwnerReferences = []metav1.OwnerReference{*m.owner}
	}
	return meta
}

// spec returns the pod of a sandbox. It complies with level `restricted` of Pod Security.
func (m *maker) spec(s box.Sandbox, p place) corev1.PodSpec {
	spec := corev1.PodSpec{
		RestartPolicy:                 corev1.RestartPolicyNever,
		TerminationGracePeriodSeconds: ptr(int64(1)), // with zero the pod would be forgotten before it has ended
		ActiveDeadlineSeconds:         ptr(int64(m.o.Deadline.Seconds())),
		AutomountServiceAccountToken:  ptr(false),
		EnableServiceLinks:            ptr(false),
		Hostname:                      "sandbox",
		// No names of the cluster and no resolver.
		DNSPolicy: corev1.DNSNone,
		DNSConfig: &corev1.PodDNSConfig{Nameservers: []string{"127.0.0.1"}},
		SecurityContext: &corev1.PodSecurityContext{
			RunAsNonRoot: ptr(true), RunAsUser: &p.uid, RunAsGroup: &p.gid, SupplementalGroupsPolicy: ptr(corev1.SupplementalGroupsPolicyStrict),
			SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
		},
		Containers: []corev1.Container{m.container(s, p)},
		Volumes: []corev1.Volume{
			claim(volume, m.o.Claim), memory("tmp", s.Limits.TmpBytes), memory("shm", s.Limits.ShmBytes),
		},
	}
	m.addMounts(&spec, p.shown)
	if m.o.UserNamespaces {
		spec.HostUsers = ptr(false)
	}
	if m.o.RuntimeClass != "" {
		spec.RuntimeClassName = &m.o.RuntimeClass
	}
	if m.o.PullSecret != "" {
		spec.ImagePullSecrets = []corev1.LocalObjectReference{{Name: m.o.PullSecret}}
	}
	if m.node != "" {
		spec.Affinity = onNode(m.node)
	}
	return spec
}

// onNode makes the scheduler use only one node.
func onNode(name string) *corev1.Affinity {
	return &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{
		NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchFields: []corev1.NodeSelectorRequirement{
			{Key: "metadata.name", Operator: corev1.NodeSelectorOpIn, Values: []string{name}},
		}}},
	}}}
}

func (m *maker) container(s box.Sandbox, p place) corev1.Container {
	mounts := []corev1.VolumeMount{
		{Name: volume, MountPath: box.WorkspacePath, SubPath: p.workspace},
		{Name: volume, MountPath: box.HomePath, SubPath: p.home},
		{Name: volume, MountPath: initPath, SubPath: filepath.Join(m.o.ClaimPath, initFolder), ReadOnly: true},
		{Name: "tmp", MountPath: "/tmp"},
		{Name: "shm", MountPath: "/dev/shm"},
	}
	if m.o.Trust != "" {
		mounts = append(mounts, corev1.VolumeMount{Name: volume, MountPath: filepath.Dir(pool.TrustPath), SubPath: filepath.Join(m.o.ClaimPath, trustFolder), ReadOnly: true})
	}
	return corev1.Container{
		Name: container, Image: m.o.Image, Command: []string{initFile, "pause", "filter"}, WorkingDir: "/",
		// Its two goroutines that wait in the kernel keep one processor each.
		Env: []corev1.EnvVar{{Name: "GOMAXPROCS", Value: "3"}},
		SecurityContext: &corev1.SecurityContext{
			AllowPrivilegeEscalation: ptr(false), ReadOnlyRootFilesystem: ptr(true), RunAsNonRoot: ptr(true), Privileged: ptr(false),
			Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
		},
		Resources: corev1.ResourceRequirements{
			Limits:   resources(s.Limits.MemoryBytes, m.o.CPUs),
			Requests: resources(min(m.o.RequestMemory, s.Limits.MemoryBytes), min(m.o.RequestCPUs, m.o.CPUs)),
		},
		VolumeMounts: mounts,
	}
}

func resources(bytes int64, cpus float64) corev1.ResourceList {
	return corev1.ResourceList{
		corev1.ResourceMemory: *resource.NewQuantity(bytes, resource.BinarySI),
		corev1.ResourceCPU:    *resource.NewMilliQuantity(int64(cpus*1000), resource.DecimalSI),
	}
}

// memory is a volume in memory, which counts against the container's limit.
func memory(name string, bytes int64) corev1.Volume {
	return corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{
		Medium: corev1.StorageMediumMemory, SizeLimit: resource.NewQuantity(bytes, resource.BinarySI),
	}}}
}

// words makes init confine itself and check whether the cluster did what it was asked: it may not know a
// field, or enforce nothing.
func (m *maker) words(l box.Limits, mounts []shown) []string {
	all := []string{initFile, "stream"}
	for _, r := range pool.Resources(l) {
		all = append(all, fmt.Sprintf("limit:%d=%d", r.ID, r.Value))
	}
	all = append(all, "filter", "rights", fmt.Sprintf("size:/tmp=%d", l.TmpBytes), fmt.Sprintf("size:/dev/shm=%d", l.ShmBytes))
	for _, x := range mounts {
		all = append(all, x.word())
	}
	if m.o.UserNamespaces {
		all = append(all, "user-namespace")
	}
	for _, at := range m.unreachable {
		ip := at.Addr().As16()
		all = append(all, fmt.Sprintf("unreachable:%x%04x=%s", ip[:], at.Port(), at))
	}
	return all
}

// objectName returns the service's name for a sandbox.
func objectName(random string) string {
	return "fairlead-sandbox-" + strings.ToLower(random[:16])
}

func ptr[T any](v T) *T { return &v }
