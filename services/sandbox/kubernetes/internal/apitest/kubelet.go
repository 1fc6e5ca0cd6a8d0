package apitest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	specs "github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"

	"github.com/fairlead/fairlead/services/sandbox/internal/box"
	"github.com/fairlead/fairlead/services/sandbox/internal/runner/rootfs"
)

// setup is the user that is root in a container with user namespaces.
const setup = 200998

// kubelet runs containers with runc. Its only image is a part of this machine.
type kubelet struct {
	volumes map[string]string // folders, by claim
	dir     string
	layout  *rootfs.Layout
}

func newKubelet(o Options) (*kubelet, error) {
	dir, err := os.MkdirTemp("/tmp", "fairlead-kubelet-")
	if err != nil {
		return nil, err
	}
	k := &kubelet{volumes: map[string]string{Claim: o.Volume}, dir: dir}
	maps.Copy(k.volumes, o.Claims)
	if err := os.Chmod(dir, 0o711); err != nil { //nolint:gosec // the user that is root of a container passes through
		return nil, err
	}
	k.layout, err = rootfs.Find(nil, []string{"/usr/local/go"})
	return k, err
}

// Path returns the PATH of the image.
func (s *Server) Path() string { return s.kubelet.layout.Path }

func (k *kubelet) close() error {
	groups, _ := filepath.Glob("/sys/fs/cgroup/*/" + k.group())
	for _, g := range append(groups, "/sys/fs/cgroup/"+k.group()) {
		_ = unix.Rmdir(g)
	}
	return os.RemoveAll(k.dir)
}

func (k *kubelet) group() string { return filepath.Base(k.dir) }

func (k *kubelet) runc(args ...string) *exec.Cmd {
	return exec.Command("runc", append([]string{"--root", filepath.Join(k.dir, "runc")}, args...)...) //nolint:gosec,noctx // a test's own, which ends what it starts
}

func (k *kubelet) run(args ...string) error {
	cmd := k.runc(args...)
	var said bytes.Buffer
	cmd.Stderr = &said // its children keep only this open, and nothing is written to it
	log, err := os.Create(filepath.Join(k.dir, "log"))
	if err != nil {
		return err
	}
	defer func() { _ = log.Close() }()
	cmd.Stdout, cmd.Stderr = log, log
	cmd.Stdin = new(bytes.Buffer) // a pipe: runc gives what it is given to the pod's user, the machine's /dev/null as well
	if err := cmd.Run(); err != nil {
		raw, _ := os.ReadFile(log.Name())
		return fmt.Errorf("runc %s: %w: %s%s", args[0], err, raw, said.String())
	}
	return nil
}

// running is a running container.
type running struct {
	k      *kubelet
	name   string
	pid    int
	pidfd  int
	reason string // why it was ended from outside

	mu     sync.Mutex // guards pidfd against closing, and what follows
	closed bool
	late   *time.Timer // kills a process that does not end on request
}

// grace is how long a container may take to end.
const grace = time.Second

// start starts a pod's container.
func (k *kubelet) start(p *corev1.Pod, f Faults) (*running, error) {
	spec, err := k.spec(p, f)
	if err != nil {
		return nil, err
	}
	bundle := filepath.Join(k.dir, p.Name)
	raw, err := json.Marshal(spec)
	if err == nil {
		err = os.Mkdir(bundle, 0o711)
	}
	if err == nil { // includes the places that a runtime makes for mounts
		var places []string
		for _, m := range p.Spec.Containers[0].VolumeMounts {
			if !strings.HasPrefix(m.MountPath, box.WorkspacePath+"/") {
				places = append(places, m.MountPath)
			}
		}
		err = k.layout.Build(filepath.Join(bundle, "root"), places...)
	}
	if err == nil {
		err = os.WriteFile(filepath.Join(bundle, "config.json"), raw, 0o600)
	}
	if err != nil {
		return nil, err
	}
	if err := k.run("run", "--detach", "--bundle", bundle, "--pid-file", filepath.Join(bundle, "pid"), p.Name); err != nil {
		return nil, err
	}
	text, err := os.ReadFile(filepath.Join(bundle, "pid"))
	if err != nil {
		return nil, err
	}
	r := &running{k: k, name: p.Name}
	if r.pid, err = strconv.Atoi(strings.TrimSpace(string(text))); err != nil {
		return nil, err
	}
	r.pidfd, err = unix.PidfdOpen(r.pid, 0)
	return r, err
}

// terminate asks the first process to end, and kills it if it does not.
func (r *running) terminate() {
	r.signal(unix.SIGTERM)
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.late == nil {
		r.late = time.AfterFunc(grace, r.kill)
	}
}

func (r *running) kill() { r.signal(unix.SIGKILL) }

func (r *running) signal(s unix.Signal) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.closed {
		_ = unix.PidfdSendSignal(r.pidfd, s, nil, 0)
	}
}

// wait waits for the container's end.
func (r *running) wait() {
	poll := []unix.PollFd{{Fd: int32(r.pidfd), Events: unix.POLLIN}}
	for {
		if _, err := unix.Poll(poll, -1); !errors.Is(err, unix.EINTR) {
			break
		}
	}
	_, _ = unix.Wait4(r.pid, nil, unix.WNOHANG, nil)
}

// forget removes the container's remains.
func (r *running) forget() error {
	r.mu.Lock()
	r.closed = true
	if r.late != nil {
		r.late.Stop()
	}
	r.mu.Unlock()
	return errors.Join(unix.Close(r.pidfd), r.k.run("delete", "--force", r.name), os.RemoveAll(filepath.Join(r.k.dir, r.name)))
}

// spec returns a container runtime's description of a pod.
func (k *kubelet) spec(p *corev1.Pod, f Faults) (*specs.Spec, error) {
	c := p.Spec.Containers[0]
	mounts, err := k.mounts(p, f)
	if err != nil {
		return nil, err
	}
	uid, gid := uint32(*p.Spec.SecurityContext.RunAsUser), uint32(*p.Spec.SecurityContext.RunAsGroup)
	env := []string{"PATH=" + k.layout.Path, "KUBERNETES_SERVICE_HOST=10.0.0.1"}
	for _, e := range c.Env {
		env = append(env, e.Name+"="+e.Value)
	}
	args := c.Command
	if f.SlowProgram {
		args = append([]string{"sh", "-c", `sleep 1; exec "$@"`, "sh"}, args...)
	}
	memory, shares := c.Resources.Limits.Memory().Value(), uint64(100000)
	quota := c.Resources.Limits.Cpu().MilliValue() * 100
	s := &specs.Spec{
		Version: "1.0.2", Hostname: p.Spec.Hostname,
		Root: &specs.Root{Path: filepath.Join(k.dir, p.Name, "root"), Readonly: *c.SecurityContext.ReadOnlyRootFilesystem},
		Process: &specs.Process{
			User: specs.User{UID: uid, GID: gid}, Args: args, Env: env, Cwd: c.WorkingDir,
			Capabilities: &specs.LinuxCapabilities{}, NoNewPrivileges: !*c.SecurityContext.AllowPrivilegeEscalation,
		},
		Mounts: mounts,
		Linux: &specs.Linux{
			Namespaces: []specs.LinuxNamespace{
				{Type: specs.PIDNamespace}, {Type: specs.MountNamespace}, {Type: specs.IPCNamespace}, {Type: specs.UTSNamespace}, {Type: specs.CgroupNamespace},
			},
			CgroupsPath: "/" + k.group() + "/" + p.Name,
			Resources:   &specs.LinuxResources{Memory: &specs.LinuxMemory{Limit: &memory}, CPU: &specs.LinuxCPU{Quota: &quota, Period: &shares}},
			MaskedPaths: k.layout.MaskedFiles, ReadonlyPaths: []string{"/proc/sys", "/proc/sysrq-trigger", "/proc/irq", "/proc/bus", "/proc/fs"},
		},
	}
	if !f.HostNetwork {
		s.Linux.Namespaces = append(s.Linux.Namespaces, specs.LinuxNamespace{Type: specs.NetworkNamespace})
	}
	if p.Spec.HostUsers != nil && !*p.Spec.HostUsers && !f.HostUsers {
		s.Linux.Namespaces = append(s.Linux.Namespaces, specs.LinuxNamespace{Type: specs.UserNamespace})
		s.Linux.UIDMappings = []specs.LinuxIDMapping{{ContainerID: 0, HostID: setup, Size: 1}, {ContainerID: uid, HostID: uid, Size: 1}}
		s.Linux.GIDMappings = []specs.LinuxIDMapping{{ContainerID: 0, HostID: setup, Size: 1}, {ContainerID: gid, HostID: gid, Size: 1}}
	}
	return s, nil
}

func (k *kubelet) mounts(p *corev1.Pod, f Faults) ([]specs.Mount, error) {
	all := []specs.Mount{
		{Destination: "/proc", Type: "proc", Source: "proc", Options: []string{"nosuid", "noexec", "nodev"}},
		{Destination: "/dev", Type: "tmpfs", Source: "tmpfs", Options: []string{"nosuid", "strictatime", "mode=755", "size=65536"}},
		{Destination: "/dev/pts", Type: "devpts", Source: "devpts", Options: []string{"nosuid", "noexec", "newinstance", "ptmxmode=0666", "mode=0620"}},
	}
	for _, b := range k.layout.Binds {
		all = append(all, bind(b.Path, b.Source, true))
	}
	volumes := map[string]corev1.Volume{}
	for _, v := range p.Spec.Volumes {
		volumes[v.Name] = v
	}
	for _, m := range p.Spec.Containers[0].VolumeMounts {
		v := volumes[m.Name]
		if v.EmptyDir != nil {
			options := []string{"nosuid", "nodev", "mode=1777"}
			if !f.Unbounded {
				options = append(options, "size="+strconv.FormatInt(v.EmptyDir.SizeLimit.Value(), 10))
			}
			all = append(all, specs.Mount{Destination: m.MountPath, Type: "tmpfs", Source: "tmpfs", Options: options})
			continue
		}
		at := filepath.Join(k.volumes[v.PersistentVolumeClaim.ClaimName], m.SubPath)
		if found, err := filepath.EvalSymlinks(at); err != nil || found != at { // like a kubelet: no path leads outside
			return nil, fmt.Errorf("failed to prepare subPath %q for volumeMount: %w", m.SubPath, errors.Join(err, errors.New("it is a link, or not there")))
		}
		all = append(all, bind(m.MountPath, at, m.ReadOnly && !f.Writable))
	}
	return all, nil
}

func bind(at, source string, readOnly bool) specs.Mount {
	mode := "rw"
	if readOnly {
		mode = "ro"
	}
	return specs.Mount{Destination: at, Type: "bind", Source: source, Options: []string{"rbind", mode}}
}

// live runs a pod through its life: it gets a node, runs, and ends.
func (s *Server) live(p *pod) {
	s.mu.Lock()
	f := s.faults
	if f.Unschedulable != "" {
		p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: "Unschedulable", Message: f.Unschedulable}}
		s.store(p, "MODIFIED")
	}
	if f.Waiting != "" {
		p.Status.ContainerStatuses = []corev1.ContainerStatus{{State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: f.Waiting, Message: "as the test has it"}}}}
		s.store(p, "MODIFIED")
	}
	s.mu.Unlock()
	delay := time.After(f.Delay)
	for waits := true; waits; {
		s.mu.Lock()
		waits = p.DeletionTimestamp == nil && !s.closed
		changed := s.changed
		s.mu.Unlock()
		if !waits {
			break
		}
		if f.Unschedulable == "" && f.Waiting == "" {
			select {
			case <-delay:
				waits = false
			case <-changed:
			}
			continue
		}
		<-changed
	}
	s.mu.Lock()
	gone := p.DeletionTimestamp != nil || s.closed
	s.mu.Unlock()
	if !gone {
		s.runPod(p, f)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if p.DeletionTimestamp != nil {
		s.store(p, "DELETED")
	}
}

// runPod runs a pod's container to its end. A pod that ended by itself is kept until it is deleted.
func (s *Server) runPod(p *pod, f Faults) {
	run, err := s.kubelet.start(&p.Pod, f)
	s.mu.Lock()
	if err != nil {
		p.Status.Phase, p.Status.Reason, p.Status.Message = corev1.PodFailed, "StartError", err.Error()
		s.store(p, "MODIFIED")
		s.awaitDeletion(p)
		s.mu.Unlock()
		return
	}
	p.run, p.Spec.NodeName = run, Node
	p.Status = corev1.PodStatus{Phase: corev1.PodRunning, HostIP: "192.0.2.1"}
	s.store(p, "MODIFIED")
	if p.DeletionTimestamp != nil {
		run.terminate()
	}
	s.mu.Unlock()
	run.wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	reason := run.reason
	p.run = nil
	if err := run.forget(); err != nil {
		s.t.Error(err)
	}
	if f.Reticent {
		s.awaitDeletion(p)
	}
	if reason != "" || p.DeletionTimestamp == nil { // also before the deletion is complete
		p.Status.Phase = corev1.PodFailed
		if reason == "OOMKilled" {
			p.Status.ContainerStatuses = []corev1.ContainerStatus{{State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{Reason: reason, ExitCode: 137}}}}
		} else {
			p.Status.Reason = reason
		}
		s.store(p, "MODIFIED")
	}
	s.awaitDeletion(p)
}

// awaitDeletion waits until a pod is deleted. mu is held, but released while it waits.
func (s *Server) awaitDeletion(p *pod) {
	for p.DeletionTimestamp == nil && !s.closed {
		changed := s.changed
		s.mu.Unlock()
		<-changed
		s.mu.Lock()
	}
}
