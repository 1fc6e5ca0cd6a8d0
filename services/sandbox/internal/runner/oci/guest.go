package oci

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	specs "github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"

	"github.com/fairlead/fairlead/services/sandbox/internal/bind"
	"github.com/fairlead/fairlead/services/sandbox/internal/box"
	"github.com/fairlead/fairlead/services/sandbox/internal/cgroup"
	"github.com/fairlead/fairlead/services/sandbox/internal/runner/pool"
	"github.com/fairlead/fairlead/services/sandbox/internal/runner/remote"
	"github.com/fairlead/fairlead/services/sandbox/internal/runner/rootfs"
)

// initPath is the path of init in a container with its own kernel, which cannot get it as a descriptor.
const initPath = "/.init"

// A separate kernel takes memory, threads and processes of the machine, besides those of commands, which it
// limits itself.
const (
	kernelMemory    = 256 << 20
	kernelProcesses = 1024
)

// guest is a pool.Body: a container with its own kernel (gVisor's runsc), which is a few processes of this
// machine. None of them is a command or init, and it gets no file later: init carries all data over its
// standard input and output.
type guest struct {
	m     *maker
	name  string
	link  *remote.Link
	group cgroup.Group // nil without control groups
	pid   int          // of the kernel's process
	pipes [2]*os.File  // our ends: from init, and to init
	hide  func() error // hides its mounts once it has them; nil before they are shown
	ended chan struct{}

	mu     sync.Mutex // guards what follows
	kernel int        // a descriptor of the kernel's process; -1 if there is none
}

// makeGuest is Make for such a runtime.
func (m *maker) makeGuest(ctx context.Context, b pool.Build) (_ pool.Body, err error) {
	g := &guest{m: m, name: b.Name, kernel: -1, ended: make(chan struct{})}
	defer func() {
		if err != nil {
			err = errors.Join(err, g.discard(ctx))
		}
	}()
	mounts, err := b.Spec.MountList()
	if err != nil {
		return nil, err
	}
	frame, shown, err := m.showGuest(b.Spec, mounts)
	if err != nil {
		return nil, fmt.Errorf("show mounts to the runtime: %w", err)
	}
	g.hide = sync.OnceValue(frame.Remove)
	if err := m.writeGuest(b, originals(mounts), shown); err != nil {
		return nil, err
	}
	hears, says, err := g.open()
	if err != nil {
		return nil, err
	}
	pidFile := filepath.Join(m.bundle(b.Name), "pid")
	cmd := m.command(ctx, "create", "--bundle", m.bundle(b.Name), "--pid-file", pidFile, b.Name)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = hears, says, b.Errors
	// A container that outlived this service would make what the next service has already looked for. The
	// thread lives as long as the service does.
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err = m.thread.Do(cmd.Start); err == nil {
		err = cmd.Wait()
	}
	if err := errors.Join(err, hears.Close(), says.Close()); err != nil {
		return nil, fmt.Errorf("create the container: %w", err)
	}
	if err := g.confine(pidFile, b.Spec.Limits); err != nil {
		return nil, err
	}
	if g.link, err = remote.Join(b.Socket, g.pipes[0], g.pipes[1]); err != nil {
		return nil, err
	}
	m.work.Go(func() {
		_ = g.link.Run(g.Kill) // init's end reports the cause
		g.Kill()
		close(g.ended)
		g.link.Wait()
	})
	return g, nil
}

// open makes the pipes to init and returns its ends.
func (g *guest) open() (hears, says *os.File, err error) {
	fromInit, says, err := os.Pipe()
	if err != nil {
		return nil, nil, err
	}
	hears, toInit, err := os.Pipe()
	if err != nil {
		return nil, nil, errors.Join(err, fromInit.Close(), says.Close())
	}
	g.pipes = [2]*os.File{fromInit, toInit}
	return hears, says, nil
}

// confine opens the container's kernel process, and moves all processes of the container into a control
// group. Nothing runs in it yet that could make more meanwhile.
func (g *guest) confine(pidFile string, l box.Limits) error {
	text, err := os.ReadFile(pidFile)
	if err != nil {
		return fmt.Errorf("find the container's kernel: %w", err)
	}
	if g.pid, err = strconv.Atoi(strings.TrimSpace(string(text))); err != nil || g.pid <= 1 {
		return fmt.Errorf("find the container's kernel: the runtime says %q", text)
	}
	kernel, err := unix.PidfdOpen(g.pid, 0)
	if err != nil {
		return fmt.Errorf("take hold of the container's kernel: %w", err)
	}
	inside := pool.Namespace(g.pid) // those that run commands
	all := g.m.processes(g.name)    // and those that open files for it
	if !slices.Contains(all, g.pid) || len(inside) == 0 || slices.Contains(inside, os.Getpid()) {
		return errors.Join(fmt.Errorf("process %d is not a container's kernel in a process namespace of its own", g.pid), unix.Close(kernel))
	}
	g.mu.Lock()
	g.kernel = kernel
	g.mu.Unlock()
	if g.m.groups == nil {
		return nil
	}
	if g.group, err = g.m.groups.New(g.name, cgroup.Limits{MemoryBytes: l.MemoryBytes + kernelMemory, Processes: kernelProcesses + 4*l.Processes, CPUs: l.CPUs}); err != nil {
		return err
	}
	for _, pid := range append(all, inside...) {
		if err := g.group.Add(pid); err != nil {
			return err
		}
	}
	return nil
}

// showGuest shows the sandbox's mounts to the runtime until it has them, and returns their descriptions.
func (m *maker) showGuest(s box.Sandbox, mounts []box.Mount) (*rootfs.Frame, []specs.Mount, error) {
	all, err := clones(s, mounts, &bind.IDs{UID: m.setup, GID: m.setup})
	defer func() {
		for _, x := range all {
			_ = x.tree.Close()
		}
	}()
	if err != nil {
		return nil, nil, err
	}
	pieces := make([]rootfs.Piece, len(all))
	for i, x := range all {
		pieces[i] = rootfs.Piece{Name: strconv.Itoa(i), Tree: int(x.tree.Fd())}
	}
	frame, err := m.stage.Hang(pieces)
	if err != nil {
		return nil, nil, err
	}
	var to []specs.Mount
	for i, x := range all {
		at := x.Source
		if !x.original {
			at = x.Path()
		}
		mode := "ro"
		if x.Writable {
			mode = "rw"
		}
		to = append(to, show(at, frame.At(strconv.Itoa(i)), mode))
	}
	return frame, to, nil
}

// writeGuest writes the description for the runtime.
func (m *maker) writeGuest(b pool.Build, originals []string, mounts []specs.Mount) error {
	return m.writeBundle(m.bundle(b.Name), b, originals, func(spec *specs.Spec) error {
		spec.Process.Args = []string{initPath, "stream", "filter", "rights"}
		for _, r := range pool.Resources(b.Spec.Limits) { // some cannot be lowered from inside
			spec.Process.Rlimits = append(spec.Process.Rlimits, specs.POSIXRlimit{Type: "RLIMIT_" + strings.ToUpper(r.Name), Hard: r.Value, Soft: r.Value})
		}
		spec.Process.Env = []string{"PATH=" + m.layout.Path, "GOMAXPROCS=3"}
		spec.Mounts = append(append(spec.Mounts, show(initPath, m.program(), "ro")), mounts...)
		return m.placeInit(spec.Root.Path)
	})
}

// Init implements pool.Body: it is no process of this machine.
func (g *guest) Init() int { return 0 }

// Release implements pool.Body.
func (g *guest) Release() error { return g.m.start(g.name) }

// Complete implements pool.Body.
func (g *guest) Complete() error { return g.hide() }

// Kill implements pool.Body.
func (g *guest) Kill() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.kernel >= 0 {
		_ = unix.PidfdSendSignal(g.kernel, unix.SIGKILL, nil, 0)
	}
}

// Wait implements pool.Body. The pipes stay open while any process holds them: one that the kernel does not
// end, or a foreign one.
func (g *guest) Wait() error {
	late := time.AfterFunc(g.m.patience, g.hangUp)
	<-g.ended
	late.Stop()
	return g.discard(context.Background())
}

// hangUp closes the pipes to and from init.
func (g *guest) hangUp() {
	for _, f := range g.pipes {
		if f != nil {
			_ = f.Close() // the link, or this, may have closed it
		}
	}
}

// discard releases the container's resources.
func (g *guest) discard(ctx context.Context) error {
	g.Kill()
	faults := []error{g.m.remove(ctx, g.name)}
	if g.hide != nil {
		faults = append(faults, g.hide())
	}
	if g.group != nil {
		faults = append(faults, g.group.Remove())
	}
	g.hangUp()
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.kernel >= 0 {
		faults = append(faults, unix.Close(g.kernel))
		g.kernel = -1
	}
	return errors.Join(faults...)
}

// Holder implements pool.Holder: the kernel holds all files that commands have open.
func (g *guest) Holder() int { return g.pid }

// Listener implements pool.Elsewhere.
func (g *guest) Listener() net.Listener { return g.link.Listener() }

// Counts implements pool.Counting.
func (g *guest) Counts() cgroup.Counts {
	if g.group == nil {
		return cgroup.Counts{}
	}
	return g.group.Counts()
}
