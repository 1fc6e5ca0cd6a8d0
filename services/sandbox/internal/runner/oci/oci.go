// Package oci runs commands in sandboxes that an OCI runtime makes (runc, crun, runsc):
// one long-lived container to a workspace, whose first process is our init. What
// goes on in it is the package warm's.
//
// The runtime makes namespaces, mounts, the user and the absence of capabilities.
// Init, before it starts anything, lowers its own limits and installs the same
// filter that every driver has, so that neither depends on the runtime. The
// container is created and held, put into the sandbox's control group, and only
// then started.
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
	"github.com/fairlead/fairlead/services/sandbox/internal/initd/program"
	"github.com/fairlead/fairlead/services/sandbox/internal/runner/rootfs"
	"github.com/fairlead/fairlead/services/sandbox/internal/runner/stage"
	"github.com/fairlead/fairlead/services/sandbox/internal/runner/warm"
)

// Runtimes are the names under which a runtime is searched, in this order.
var Runtimes = []string{"runc", "crun", "runsc"}

// ownFlags have runsc make no network, leave control groups to the runner, and write
// through to what is shown.
var ownFlags = []string{"--network=none", "--ignore-cgroups", "--overlay2=none"}

// versionTimeout bounds how long the runtime may take to say what it is, deleteTimeout
// how long it may take to forget a container, and endTimeout how long the kernel may take to
// end what was killed. What the runtime leaves that holds its output is waited for no longer
// than lingerTimeout.
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
	// State is a folder of this service alone, best in memory, in which the runtime and
	// the runner keep what containers are made of.
	State string
	// CgroupParent is the control group below which the runtime makes its own.
	CgroupParent string
	// Setup is the host's user and group that is root of a container while it is being
	// made. Nothing else may belong to it.
	Setup int
	// Init is the file that holds init; empty takes the one built in.
	Init string
	// ReadOnly are further host paths to show, at the same place. Each must exist.
	ReadOnly []string
	// Groups bounds sandboxes by control groups; nil leaves that to process limits.
	Groups cgroup.Hierarchy
	// Max is how many sandboxes there may be; zero means no limit.
	Max int
	// Idle is after what time a sandbox is stopped in which nothing runs; zero
	// means never.
	Idle time.Duration
	// Network serves the listener of a sandbox that has a network; nil: none may.
	Network func(s box.Sandbox, l net.Listener) (io.Closer, error)
	// Trust is the file on the host with the certificates that sandboxes with a
	// network trust; empty shows none.
	Trust string
	Log   *slog.Logger
}

// maker is a warm.Maker.
type maker struct {
	runtime string
	state   string
	parent  string
	setup   int
	lock    *os.File
	swept   bool     // nothing is left of an earlier service
	image   *os.File // init
	layout  *rootfs.Layout
	// own says that the runtime's containers have a kernel of their own.
	own      bool
	groups   cgroup.Hierarchy // for such; nil without control groups
	thread   *stage.Thread    // that calls the runtime for such, and sees the stage
	stage    *stage.Stage     // shows it mounts
	work     sync.WaitGroup   // the goroutines that carry what their inits say
	patience time.Duration    // with what was killed and does not end
}

// Runner runs commands in containers of an OCI runtime.
type Runner struct {
	*warm.Runner
	// OwnKernel says that each container has a kernel of its own.
	OwnKernel bool
	maker     *maker
}

// New finds the runtime, and takes hold of the state folder. It needs root. Sweep must be called
// before the first command. The runner must be closed, after its last command has ended.
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
	r, err := warm.New(warm.Options{Maker: m, Own: true, Path: m.layout.Path, Groups: o.Groups, Max: o.Max, Idle: o.Idle, Network: o.Network, Log: o.Log})
	if err != nil {
		return nil, err
	}
	return &Runner{Runner: r, OwnKernel: m.own, maker: m}, nil
}

// Sweep removes what an earlier service left in the state folder, and makes what containers
// are made of. No process may be left of that service's that stands still, for none such ends:
// control groups are swept before.
func (r *Runner) Sweep(ctx context.Context) error { return r.maker.prepare(ctx) }

// Clear removes what an earlier service left in the state folder, which had this driver, and that
// folder. Where there is none it needs nothing. It is otherwise as Sweep is.
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
		m.layout.Extra = append(m.layout.Extra, rootfs.Bind{Path: warm.TrustPath, Source: o.Trust})
	}
	if m.image, err = program.Open(o.Init); err != nil {
		return err
	}
	// The user that is root of a container passes through here.
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
	m.thread = stage.NewThread(0)
	m.stage, err = stage.New(m.thread)
	return err
}

// copyInit puts init where containers that are handed no descriptor are shown it from.
func (m *maker) copyInit() error {
	raw, err := io.ReadAll(io.NewSectionReader(m.image, 0, 1<<30))
	if err != nil {
		return err
	}
	return os.WriteFile(m.program(), raw, 0o555)
}

// placeInit makes the place in a root where init is shown.
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
		return errors.Join(fmt.Errorf("the folder %s is another service's: %w", m.state, err), f.Close())
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

// sweep deletes containers of an earlier service, and what they were made of.
func (m *maker) sweep(ctx context.Context) error {
	left, err := os.ReadDir(m.bundle("")) // made before a container, and removed after it
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	for _, d := range left {
		err := m.end(d.Name()) // whichever runtime made it, and however little that knows of it
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

// remove ends a container and has the runtime forget it. One that the runtime does
// not know is no error.
func (m *maker) remove(ctx context.Context, name string) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), deleteTimeout)
	defer cancel()
	if _, err := os.Stat(filepath.Join(m.containers(), name)); !m.own && errors.Is(err, os.ErrNotExist) {
		return os.RemoveAll(m.bundle(name)) // runsc has another name for it, and minds nothing that it does not know
	}
	out, err := m.command(ctx, "delete", "--force", name).CombinedOutput()
	if err != nil {
		err = fmt.Errorf("delete container %s: %w: %s", name, err, strings.TrimSpace(string(out)))
	}
	if m.own { // it minds none either that was not made to the end
		err = errors.Join(err, m.end(name))
	}
	if err != nil {
		return err
	}
	return os.RemoveAll(m.bundle(name))
}

// Close implements warm.Maker.
func (m *maker) Close() error {
	m.work.Wait()
	if m.thread != nil {
		m.thread.Close()
	}
	var faults []error
	if m.lock != nil {
		faults = append(faults, m.discard(), m.lock.Close())
	}
	if m.image != nil {
		faults = append(faults, m.image.Close())
	}
	return errors.Join(faults...)
}

// discard removes the state folder, unless there is something in it of an earlier service: the next
// start removes that, for which the runtime needs its notes.
func (m *maker) discard() error {
	if left, err := os.ReadDir(m.bundle("")); !m.swept && (len(left) > 0 || err != nil && !errors.Is(err, os.ErrNotExist)) {
		return err
	}
	m.removeGroups()
	return os.RemoveAll(m.state)
}

// removeGroups removes the control groups above those that the runtime made and
// removed, in every hierarchy. One that another service uses stays.
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
