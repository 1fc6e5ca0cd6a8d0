// Package bubblewrap runs commands in sandboxes that bubblewrap makes, one
// long-lived sandbox to a workspace: all namespaces, a curated read-only root, no
// network, no capabilities, a system call filter, and limits that are in place
// before the first instruction.
//
// The order of a sandbox's making is what makes it free of races: bubblewrap
// builds it and then waits; the service learns its first process, puts it into its
// control group and lowers its limits; only then is that process let go. It is an
// init of ours (see initd), which starts commands when the service says so: a
// command costs a fork, not a container. What the commands do to init is their
// affair: a sandbox whose init does not answer is ended, and another one made for
// the next command.
//
// A command that runs alone needs no group of its own: the sandbox's limits are
// its limits, and at its end init kills all that is left. One that has limits of
// its own, or that others run beside, is held before its first instruction until
// it is in a control group below the sandbox's, with which it is killed. Where
// there are no control groups, commands that run at the same time each have a
// sandbox of their own, so that the end of one is exact there, too.
package bubblewrap

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"net"
	"os"
	"os/exec"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/fairlead/fairlead/services/sandbox/internal/box"
	"github.com/fairlead/fairlead/services/sandbox/internal/cgroup"
	"github.com/fairlead/fairlead/services/sandbox/internal/initd/program"
)

// startTimeout bounds what bubblewrap takes to build a sandbox.
const startTimeout = 20 * time.Second

// Options of a Runner.
type Options struct {
	// Path of bubblewrap; empty searches PATH.
	Path string
	// Init is the file that holds init; empty takes the one built in.
	Init string
	// ReadOnly are further host paths to show, at the same place. Each must exist.
	ReadOnly []string
	// Groups bounds sandboxes by control groups; nil leaves that to process limits.
	Groups cgroup.Hierarchy
	// OtherUsers has commands run as other users than the service's own, which
	// needs root.
	OtherUsers bool
	// Max is how many sandboxes there may be; zero means no limit.
	Max int
	// Network serves the listener of a sandbox that has a network, until the sandbox
	// has ended; it owns the listener. Nil: no sandbox may have one.
	Network func(s box.Sandbox, l net.Listener) (io.Closer, error)
	// Trust is the file on the host with the certificates that sandboxes with a
	// network trust, shown at TrustPath; empty shows none.
	Trust string
	// Idle is after what time a sandbox is stopped in which nothing runs; zero
	// means never.
	Idle time.Duration
	Log  *slog.Logger
}

// Runner is a box.Runner.
type Runner struct {
	path   string
	image  *os.File // init
	null   *os.File
	layout *layout
	groups cgroup.Hierarchy
	spawn  *spawner
	stage  *stage // nil when all commands run as the service's own user
	max    int
	idle   time.Duration
	log    *slog.Logger
	// network serves the way out of sandboxes; nil: there is none.
	network func(box.Sandbox, net.Listener) (io.Closer, error)
	work    sync.WaitGroup // goroutines of the runner's own

	mu     sync.Mutex            // guards what follows
	warm   map[string][]*sandbox // by workspace
	count  int                   // sandboxes that are, or are being made or ended
	next   int64                 // tells control groups of one workspace apart
	closed bool
}

// New finds bubblewrap. The runner must be closed, after its last command has
// ended.
func New(ctx context.Context, o Options) (_ *Runner, err error) {
	path := o.Path
	if path == "" {
		found, err := exec.LookPath("bwrap")
		if err != nil {
			return nil, errors.New("bubblewrap is missing: apt-get install -y bubblewrap")
		}
		path = found
	}
	if err := checkOptions(ctx, path); err != nil {
		return nil, err
	}
	l, err := newLayout(o.ReadOnly, []string{"/usr/local/go"})
	if err != nil {
		return nil, err
	}
	if o.Trust != "" {
		l.extra = append(l.extra, extra{path: TrustPath, source: o.Trust})
	}
	image, err := newImage(o.Init)
	if err != nil {
		return nil, err
	}
	null, err := os.Open(os.DevNull)
	if err != nil {
		return nil, errors.Join(err, image.Close())
	}
	// Descriptors that this process inherited itself are not Go's to have marked:
	// none of them may reach a command.
	if err := unix.CloseRange(3, math.MaxUint32, unix.CLOSE_RANGE_CLOEXEC); err != nil {
		return nil, errors.Join(fmt.Errorf("keep inherited descriptors from commands: %w", err), image.Close(), null.Close())
	}
	r := &Runner{
		path: path, image: image, null: null, layout: l, groups: o.Groups, spawn: newSpawner(), max: o.Max, idle: o.Idle, log: o.Log,
		network: o.Network, warm: map[string][]*sandbox{},
	}
	if !o.OtherUsers {
		return r, nil
	}
	if r.stage, err = newStage(r.spawn); err == nil {
		err = l.show(r.stage)
	}
	if err != nil {
		r.spawn.close()
		return nil, errors.Join(err, image.Close(), null.Close())
	}
	return r, nil
}

// newImage puts init into memory that nobody can change, whoever opens it.
func newImage(path string) (*os.File, error) {
	raw, err := program.Load(path)
	if err != nil {
		return nil, err
	}
	fd, err := unix.MemfdCreate("init", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING|unix.MFD_EXEC)
	if errors.Is(err, unix.EINVAL) { // before Linux 6.3 all such files could be executed
		fd, err = unix.MemfdCreate("init", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	}
	if err != nil {
		return nil, fmt.Errorf("make a file in memory for init: %w", err)
	}
	f := os.NewFile(uintptr(fd), "init")
	const seals = unix.F_SEAL_SEAL | unix.F_SEAL_SHRINK | unix.F_SEAL_GROW | unix.F_SEAL_WRITE
	_, err = f.Write(raw)
	if err == nil {
		_, err = unix.FcntlInt(f.Fd(), unix.F_ADD_SEALS, seals)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("put init into memory: %w", err), f.Close())
	}
	return f, nil
}

// checkOptions says which option an old bubblewrap lacks, instead of failing on
// each command.
func checkOptions(ctx context.Context, path string) error {
	help, err := exec.CommandContext(ctx, path, "--help").CombinedOutput()
	if err != nil {
		return fmt.Errorf("bubblewrap at %s does not run: %w: apt-get install -y bubblewrap", path, err)
	}
	for _, option := range []string{"--disable-userns", "--size", "--info-fd", "--block-fd", "--as-pid-1"} {
		if !strings.Contains(string(help), option) {
			return fmt.Errorf("bubblewrap at %s is too old, it has no %s: apt-get update && apt-get install -y bubblewrap", path, option)
		}
	}
	return nil
}
