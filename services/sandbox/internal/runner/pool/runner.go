// Package pool runs commands in long-lived sandboxes, one to a workspace. A Maker makes the sandboxes; only
// the Maker differs between drivers.
//
// A sandbox's first process is our init (see initd), which starts commands at the service's request. So a
// command costs a fork, not a container. Commands may harm their init: a sandbox whose init does not answer
// is ended, and the next command gets a new one.
//
// A command that runs alone needs no group of its own: the sandbox's limits are its limits, and at its end
// init kills all remaining processes. A command with limits of its own, or with other commands beside it,
// is held before its first instruction. It continues once it is in a control group below the sandbox's, and
// is killed with that group. Without control groups, concurrent commands each have their own sandbox, so
// that the end of each is exact there too.
package pool

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"net"
	"os"
	"strconv"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/fairlead/fairlead/services/sandbox/internal/box"
	"github.com/fairlead/fairlead/services/sandbox/internal/cgroup"
)

// startTimeout limits the making of a sandbox and the start of a command.
const startTimeout = 20 * time.Second

// Maker makes sandboxes. It is safe for concurrent use.
type Maker interface {
	// Make builds a sandbox and holds its init before its first instruction. When it returns, all isolation
	// is in place except the control group, which is the caller's task. On an error nothing is left. The
	// sandbox's messages go to Build.Errors. The context has a deadline.
	Make(ctx context.Context, b Build) (Body, error)
	// Close releases the maker's resources. All its sandboxes have ended.
	Close() error
}

// Build describes the sandbox to make.
type Build struct {
	Spec box.Sandbox
	Name string // unique among the sandboxes of this service
	// Socket becomes init's descriptor wire.FD, and Errors its standard error. The caller keeps both.
	Socket, Errors *os.File
}

// Body is a sandbox that a Maker made. Calls of its methods do not overlap, except Kill.
type Body interface {
	// Init returns the sandbox's first process, as the host counts. Nothing of the sandbox outlives it.
	// Zero means that it is not on this machine. Then init passes no files but terminals, processes are
	// reached through init, and there are no control groups.
	Init() int
	// Release lets init run.
	Release() error
	// Complete finishes what needs a running init, and releases what was needed until then. It is called
	// once at that time, or never.
	Complete() error
	// Kill ends at once what the end of Init does not. It may be called repeatedly, until Wait has
	// returned.
	Kill()
	// Wait waits until nothing is left of a killed sandbox and releases its resources.
	Wait() error
}

// OOMReporter is a Body that knows whether its sandbox ended for want of memory, without control groups. It is
// asked after Wait.
type OOMReporter interface {
	OutOfMemory() bool
}

// Counting is a Body that manages its own control group.
type Counting interface {
	// Counts may be called until Wait.
	Counts() cgroup.Counts
}

// Holder is a Body whose init is not a process of this machine. A local process, and others of its process
// namespace, hold the sandbox's files.
type Holder interface {
	Holder() int
}

// RemoteListener is a Body whose init serves the listener itself and carries its connections. They arrive here
// after init was asked to listen.
type RemoteListener interface {
	Listener() net.Listener
}

// Options of a Runner.
type Options struct {
	Maker Maker
	// Own means that the namespaces of sandboxes belong to the service's own user, not to their owner. That
	// user may inspect them.
	Own bool
	// Path is the PATH of commands.
	Path string
	// Groups bounds sandboxes by control groups; nil leaves that to process limits.
	Groups cgroup.Hierarchy
	// Max is the largest number of sandboxes; zero means no limit.
	Max int
	// Idle is after how long an idle sandbox is ended; zero means never.
	Idle time.Duration
	// Network serves the listener of a sandbox that has a network until the sandbox has ended. It owns the
	// listener. If nil, no sandbox may have a network.
	Network func(s box.Sandbox, l net.Listener) (io.Closer, error)
	// MakeTimeout limits the making of a sandbox; zero means a default that is enough on one machine.
	MakeTimeout time.Duration
	Log         *slog.Logger
}

// Runner is a box.Runner.
type Runner struct {
	maker  Maker
	own    bool
	path   string
	null   *os.File
	groups cgroup.Hierarchy
	max    int
	idle   time.Duration
	within time.Duration // the making of a sandbox
	log    *slog.Logger
	// network serves the way out of sandboxes; nil if they have none.
	network func(box.Sandbox, net.Listener) (io.Closer, error)
	work    sync.WaitGroup // goroutines of the runner's own

	mu        sync.Mutex            // guards what follows
	sandboxes map[string][]*sandbox // by workspace
	count     int                   // places of sandboxes that exist or are being made or ended
	ending    []*sandbox            // no longer found by commands, but their places are still taken
	next      int64                 // distinguishes control groups of one workspace
	closed    bool
}

// openNull opens /dev/null, which commands without input read. The file is the machine's own, so the mount
// keeps commands from changing its times or mode, whatever its owner. Without root, its permissions do
// that.
func openNull() (*os.File, error) {
	tree, err := unix.OpenTree(unix.AT_FDCWD, os.DevNull, unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC)
	if errors.Is(err, unix.EPERM) {
		return os.Open(os.DevNull)
	}
	if err != nil {
		return nil, &os.PathError{Op: "show", Path: os.DevNull, Err: err}
	}
	defer func() { _ = unix.Close(tree) }()
	attr := unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY | unix.MOUNT_ATTR_NOSUID}
	if err := unix.MountSetattr(tree, "", unix.AT_EMPTY_PATH, &attr); err != nil {
		return nil, &os.PathError{Op: "show read-only", Path: os.DevNull, Err: err}
	}
	return os.Open("/proc/self/fd/" + strconv.Itoa(tree)) // through that mount
}

// New makes a runner. The caller must close it after its last command has ended. The runner owns the maker,
// also after an error.
func New(o Options) (*Runner, error) {
	null, err := openNull()
	if err != nil {
		return nil, errors.Join(err, o.Maker.Close())
	}
	// Go does not mark descriptors that this process inherited; none of them may reach a command.
	if err := unix.CloseRange(3, math.MaxUint32, unix.CLOSE_RANGE_CLOEXEC); err != nil {
		return nil, errors.Join(fmt.Errorf("keep inherited descriptors from commands: %w", err), null.Close(), o.Maker.Close())
	}
	return &Runner{
		maker: o.Maker, own: o.Own, path: o.Path, null: null, groups: o.Groups, max: o.Max, idle: o.Idle, log: o.Log,
		within:  cmp.Or(o.MakeTimeout, startTimeout),
		network: o.Network, sandboxes: map[string][]*sandbox{},
	}, nil
}
