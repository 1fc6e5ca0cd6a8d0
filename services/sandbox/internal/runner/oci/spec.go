package oci

import (
	"fmt"
	"path/filepath"
	"strconv"

	specs "github.com/opencontainers/runtime-spec/specs-go"

	"github.com/fairlead/fairlead/services/sandbox/internal/box"
	"github.com/fairlead/fairlead/services/sandbox/internal/runner/pool"
	"github.com/fairlead/fairlead/services/sandbox/internal/runner/rootfs"
)

// insideID is the user and group id of commands inside.
const insideID = 1000

// imageFD is the descriptor through which the runtime executes init.
const imageFD = 4

// readOnlyPaths are the paths of /proc that commands may not write to, even as their owner.
var readOnlyPaths = []string{"/proc/sys", "/proc/sysrq-trigger", "/proc/irq", "/proc/bus", "/proc/fs"}

// spec describes a sandbox to the runtime.
func (m *maker) spec(s box.Sandbox, name string) *specs.Spec {
	return &specs.Spec{
		Version:  "1.0.2",
		Hostname: "sandbox",
		Root:     &specs.Root{Path: m.rootfs(), Readonly: true},
		Process: &specs.Process{
			User: specs.User{UID: insideID, GID: insideID},
			Args: words(s.Limits),
			// Its two goroutines that wait in the kernel keep one processor each.
			Env:             []string{"PATH=" + m.layout.Path, "GOMAXPROCS=1"},
			Cwd:             "/",
			Capabilities:    &specs.LinuxCapabilities{},
			NoNewPrivileges: true,
		},
		Mounts: m.mounts(s),
		Linux: &specs.Linux{
			Namespaces: []specs.LinuxNamespace{
				{Type: specs.UserNamespace}, {Type: specs.PIDNamespace}, {Type: specs.MountNamespace}, {Type: specs.NetworkNamespace},
				{Type: specs.IPCNamespace}, {Type: specs.UTSNamespace}, {Type: specs.CgroupNamespace},
			},
			UIDMappings:   mappings(m.setup, s.Owner.UID),
			GIDMappings:   mappings(m.setup, s.Owner.GID),
			CgroupsPath:   filepath.Join("/", m.parent, name),
			MaskedPaths:   append(append([]string{}, m.layout.MaskedFiles...), m.layout.MaskedFolders...),
			ReadonlyPaths: readOnlyPaths,
		},
	}
}

// words makes init confine itself, see its confine, and check whether the runtime did its part.
func words(l box.Limits) []string {
	all := []string{"/proc/self/fd/" + strconv.Itoa(imageFD)}
	for _, r := range pool.Resources(l) {
		all = append(all, fmt.Sprintf("limit:%d=%d", r.ID, r.Value))
	}
	return append(all, "filter", "rights", "user-namespace")
}

// mappings gives the sandbox two users: that of commands, and root while the sandbox is made.
func mappings(setup, owner int) []specs.LinuxIDMapping {
	return []specs.LinuxIDMapping{
		{ContainerID: 0, HostID: uint32(setup), Size: 1},
		{ContainerID: insideID, HostID: uint32(owner), Size: 1},
	}
}

// mounts returns what a sandbox sees, the same as with bubblewrap.
func (m *maker) mounts(s box.Sandbox) []specs.Mount {
	scratch := func(bytes int64) []string {
		return []string{"nosuid", "nodev", "mode=1777", fmt.Sprintf("size=%d", bytes), fmt.Sprintf("nr_inodes=%d", rootfs.ScratchFiles(bytes))}
	}
	all := []specs.Mount{
		{Destination: "/proc", Type: "proc", Source: "proc", Options: []string{"nosuid", "noexec", "nodev"}},
		{Destination: "/dev", Type: "tmpfs", Source: "tmpfs", Options: []string{"nosuid", "noexec", "strictatime", "mode=755", "size=65536"}},
		{Destination: "/dev/pts", Type: "devpts", Source: "devpts", Options: []string{
			"nosuid", "noexec", "newinstance", "ptmxmode=0666", "mode=0620", fmt.Sprintf("max=%d", box.MaxTerminals),
		}},
		{Destination: "/dev/shm", Type: "tmpfs", Source: "shm", Options: scratch(s.Limits.ShmBytes)},
		{Destination: "/tmp", Type: "tmpfs", Source: "tmpfs", Options: scratch(s.Limits.TmpBytes)},
	}
	for _, b := range append(append([]rootfs.Bind{}, m.layout.Binds...), m.layout.Extra...) {
		all = append(all, show(b.Path, b.Source, "ro"))
	}
	return append(all, show(box.HomePath, s.Home, "rw"), show(box.WorkspacePath, s.Workspace, "rw"))
}

func show(at, source, mode string) specs.Mount {
	return specs.Mount{Destination: at, Type: "bind", Source: source, Options: []string{"rbind", mode, "nosuid", "nodev"}}
}
