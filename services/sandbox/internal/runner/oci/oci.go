// Package oci runs commands in sandboxes that an OCI runtime makes (runc, crun, runsc): one long-lived
// container to a workspace, whose first process is our init. Package pool does the rest.
//
// The runtime makes namespaces and mounts, sets the user and drops capabilities. Before init starts
// anything, it lowers its own limits and installs the common system call filter, so neither depends on the
// runtime. The container is created and held, moved into the sandbox's control group, and only then
// started.
package oci

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/fairlead/fairlead/services/sandbox/internal/box"
	"github.com/fairlead/fairlead/services/sandbox/internal/cgroup"
	"github.com/fairlead/fairlead/services/sandbox/internal/durable"
	"github.com/fairlead/fairlead/services/sandbox/internal/runner/pool"
	"github.com/fairlead/fairlead/services/sandbox/internal/runner/rootfs"
)

// Runtimes are the names of runtimes to search for, in this order.
var Runtimes = []string{"runc", "crun", "runsc"}

// ownFlags make runsc create no network, leave control groups to the runner, and write through to mounts.
var ownFlags = []string{"--network=none", "--ignore-cgroups", "--overlay2=none"}

// versionTimeout limits how long the runtime may take to print its version, and deleteTimeout how long it
// may take to delete a container. endTimeout limits how long the kernel may take to end killed processes.
// lingerTimeout limits the wait for the runtime's children that hold its output open.
const (
	versionTimeout = 20 * time.Second
	deleteTimeout  = 30 * time.Second
	endTimeout     = 30 * time.Second
	lingerTimeout  = 2 * time.Second
)

// Options of a Runner.
type Options struct {
	// Runtime is the path or the name of the runtime; empty searches PATH.
	Runtime string
	// State is a folder of this service alone, best in memory, for the files of the runtime and the runner.
	State string
	// CgroupParent is the control group below which the runtime makes its own.
	CgroupParent string
	// Setup is the host's user and group that is root of a container while that is made. It must own
	// nothing else.
	Setup int
	// Init is the file that holds init; empty means the embedded one.
	Init string
	// ReadOnly are further host paths to show, at the same place. Each must exist.
	ReadOnly []string
	// Groups bounds sandboxes by control groups; nil leaves that to process limits.
	Groups cgroup.Hierarchy
	// Max is the largest number of sandboxes; zero means no limit.
	Max int
	// Idle is after how long an idle sandbox is ended; zero means never.
	Idle time.Duration
	// Network serves the listener of a sandbox that has a network; nil: none may.
	Network func(s box.Sandbox, l net.Listener) (io.Closer, error)
	// Trust is the host's file of certificates that sandboxes with a network trust; empty shows none.
	Trust string
	Log   *slog.Logger
}

// maker is a pool.Maker.
type maker struct {
	runtime string
	state   string
	parent  string
	setup   int
	lock    *os.File
	swept   bool     // nothing is left of an earlier service
	image   *os.File // init
	layout  *rootfs.Layout
	// own means that the runtime's containers have their own kernel.
	own      bool
	groups   cgroup.Hierarchy // for these; nil without control groups
	thread   *rootfs.Thread   // calls the runtime for these, and sees the stage
	stage    *rootfs.Stage    // shows mounts to the runtime
	work     sync.WaitGroup   // goroutines that carry the inits' data
	patience time.Duration    // with killed processes that do not end
}

// Runner runs commands in containers of an OCI runtime.
type Runner struct {
	*pool.Runner
	// OwnKernel means that each container has its own kernel.
	OwnKernel bool
	maker     *maker
}

// New finds the runtime and locks the state folder. It needs root. The caller must call Sweep before the
// first command, and close the runner after the last one has ended.
func New(ctx context.Context, o Options) (*Runner, error) {
	if os.Getuid() != 0 {
		return nil, errors.New("it needs root: start the service as root, or choose the driver `bubblewrap`")
	}
	m := &maker{state: o.State, parent: o.CgroupParent, setup: o.Setup, patience: endTimeout}
	if err := m.open(ctx, o); err != nil {
		return nil, errors.Join(err, m.Close())
	}
	if m.own {
		m.groups, o.Groups = o.Groups, nil
	}
	r, err := pool.New(pool.Options{Maker: m, Own: true, Path: m.layout.Path, Groups: o.Groups, Max: o.Max, Idle: o.Idle, Network: o.Network, Log: o.Log})
	if err != nil {
		return nil, err
	}
	return &Runner{Runner: r, OwnKernel: m.own, maker: m}, nil
}

// Sweep removes the remains of an earlier service in the state folder, and prepares the making of
// containers. Control groups must be swept first: a frozen process of the earlier service would not end.
func (r *Runner) Sweep(ctx context.Context) error { return r.maker.prepare(ctx) }

// Clear removes the state folder of an earlier service that used this driver, with all remains. Without
// such a folder it does nothing. Otherwise it works like Sweep.
func Clear(ctx context.Context, o Options) (err error) {
	if _, err := os.Stat(o.State); errors.Is(err, os.ErrNotExist) {
		return nil
	}
	m := &maker{state: o.State, parent: o.CgroupParent, setup: o.Setup, patience: endTimeout}
	defer func() { err = errors.Join(err, m.Close()) }()
	if err := m.hold(); err != nil {
		return err
	}
	if m.runtime, err = find(o.Runtime); err != nil {
		return err
	}
	if m.own, err = ownKernel(ctx, m.runtime); err != nil {
		return err
	}
	return m.sweep(ctx)
}

func (m *maker) open(ctx context.Context, o Options) (err error) {
	if m.runtime, err = find(o.Runtime); err != nil {
		return err
	}
	if m.own, err = ownKernel(ctx, m.runtime); err != nil {
		return err
	}
	if m.layout, err = rootfs.Find(o.ReadOnly, []string{"/usr/local/go"}); err != nil {
		return err
	}
	if o.Trust != "" {
		m.layout.Extra = append(m.layout.Extra, rootfs.Bind{Path: pool.TrustPath, Source: o.Trust})
	}
	if m.image, err = pool.OpenInit(o.Init); err != nil {
		return err
	}
	// A container's root user passes through here.
	if err := os.MkdirAll(m.state, 0o711); err != nil {
		return fmt.Errorf("make the runtime's folder: %w", err)
	}
	if err := passable(m.state); err != nil {
		return err
	}
	return m.hold()
}

func (m *maker) prepare(ctx context.Context) (err error) {
	if err := m.sweep(ctx); err != nil {
		return fmt.Errorf("remove what an earlier service left: %w", err)
	}
	if err := m.layout.Build(m.rootfs()); err != nil || !m.own {
		return err
	}
	if err := m.copyInit(); err != nil {
		return err
	}
	m.thread = rootfs.NewThread(0)
	m.stage, err = rootfs.NewStage(m.thread)
	return err
}

// copyInit copies init to where containers without descriptors mount it from.
func (m *maker) copyInit() error {
	raw, err := io.ReadAll(io.NewSectionReader(m.image, 0, 1<<30))
	if err != nil {
		return err
	}
	return os.WriteFile(m.program(), raw, 0o555)
}

// placeInit makes the place of init in a root.
func (m *maker) placeInit(root string) error {
	return os.WriteFile(root+initPath, nil, 0o644)
}

// find finds a runtime.
func find(name string) (string, error) {
	names := Runtimes
	if name != "" {
		names = []string{name}
	}
	for _, n := range names {
		if path, err := exec.LookPath(n); err == nil {
			return filepath.Abs(path)
		}
	}
	return "", fmt.Errorf("no OCI runtime was found, looked for %s: apt-get install -y runc, or name one with the key `oci.runtime`", strings.Join(names, ", "))
}

// ownKernel reports whether a runtime's containers have a kernel of their own.
func ownKernel(ctx context.Context, runtime string) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, versionTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, runtime, "--version")
	cmd.WaitDelay = lingerTimeout
	out, err := cmd.Output()
	if err != nil {
		return false, fmt.Errorf("the OCI runtime %s does not run: %w", runtime, err)
	}
	return strings.HasPrefix(string(out), "runsc"), nil
}

// passable returns an error unless every user may pass through a folder.
func passable(dir string) error {
	for ; dir != "/"; dir = filepath.Dir(dir) {
		st, err := os.Stat(dir)
		if err != nil {
			return err
		}
		if st.Mode().Perm()&0o001 == 0 {
			return fmt.Errorf("users that make sandboxes cannot pass through %s: chmod o+x it, or choose another folder with the key `oci.state`", dir)
		}
	}
	return nil
}

// hold locks the state folder for this service.
func (m *maker) hold() error {
	f, err := os.OpenFile(filepath.Join(m.state, "lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		return errors.Join(fmt.Errorf("the folder %s belongs to another service: %w", m.state, err), f.Close())
	}
	m.lock = f
	return nil
}

func (m *maker) containers() string        { return filepath.Join(m.state, "containers") }
func (m *maker) bundle(name string) string { return filepath.Join(m.state, "bundles", name) }
func (m *maker) rootfs() string            { return filepath.Join(m.state, "root") }
func (m *maker) program() string           { return filepath.Join(m.state, "init") }
func (m *maker) command(ctx context.Context, args ...string) *exec.Cmd {
	flags := []string{"--root", m.containers()}
	if m.own {
		flags = append(flags, ownFlags...)
	}
	cmd := exec.CommandContext(ctx, m.runtime, append(flags, args...)...) //nolint:gosec // the operator's
	cmd.Env = []string{"PATH=" + os.Getenv("PATH")}
	cmd.WaitDelay = lingerTimeout
	return cmd
}

// sweep deletes containers of an earlier service, and their files.
func (m *maker) sweep(ctx context.Context) error {
	left, err := os.ReadDir(m.bundle("")) // a bundle is made before its container and removed after it
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	for _, d := range left {
		err := m.end(d.Name()) // whichever runtime made it, and even if that does not know it
		if !m.own {
			err = errors.Join(err, m.remove(ctx, d.Name()))
		}
		if err != nil {
			return err
		}
	}
	for _, dir := range []string{m.containers(), filepath.Join(m.state, "bundles"), m.rootfs()} {
		if err := os.RemoveAll(dir); err != nil {
			return err
		}
	}
	m.swept = true
	return nil
}

// remove ends a container and deletes it from the runtime. A container that is unknown to the runtime is no
// error.
func (m *maker) remove(ctx context.Context, name string) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), deleteTimeout)
	defer cancel()
	if _, err := os.Stat(filepath.Join(m.containers(), name)); !m.own && errors.Is(err, os.ErrNotExist) {
		return os.RemoveAll(m.bundle(name)) // runsc keeps it under another name and ignores unknown ones
	}
	out, err := m.command(ctx, "delete", "--force", name).CombinedOutput()
	if err != nil {
		err = fmt.Errorf("delete container %s: %w: %s", name, err, strings.TrimSpace(string(out)))
	}
	if m.own { // it also ignores an unfinished one
		err = errors.Join(err, m.end(name))
	}
	if err != nil {
		return err
	}
	return os.RemoveAll(m.bundle(name))
}

// Close implements pool.Maker.
func (m *maker) Close() error {
	m.work.Wait()
	if m.thread != nil {
		m.thread.Close()
	}
	var faults []error
	if m.lock != nil {
		faults = append(faults, m.discard(), durable.Unlock(m.lock))
	}
	if m.image != nil {
		faults = append(faults, m.image.Close())
	}
	return errors.Join(faults...)
}

// discard removes the state folder, unless it holds remains of an earlier service. The next start removes
// these, for which the runtime needs its files.
func (m *maker) discard() error {
	if left, err := os.ReadDir(m.bundle("")); !m.swept && (len(left) > 0 || err != nil && !errors.Is(err, os.ErrNotExist)) {
		return err
	}
	m.removeGroups()
	return os.RemoveAll(m.state)
}

// removeGroups removes the parents of the control groups that the runtime made and removed, in every
// hierarchy. A group that another service uses stays.
func (m *maker) removeGroups() {
	for _, pattern := range []string{cgroup.Root, cgroup.Root + "/*"} {
		for _, prefix := range []string{m.parent, filepath.Dir(m.parent)} {
			if prefix == "." || prefix == "/" {
				continue
			}
			dirs, _ := filepath.Glob(filepath.Join(pattern, prefix)) // the pattern is ours
			for _, dir := range dirs {
				_ = unix.Rmdir(dir) // fails while anything is in it
			}
		}
	}
}
