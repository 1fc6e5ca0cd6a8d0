package box

import (
	"context"
	"errors"
	"io"
	"time"

	"golang.org/x/sys/unix"

	"github.com/fairlead/fairlead/services/sandbox/internal/held"
)

// Paths inside a sandbox.
const (
	WorkspacePath = "/workspace"
	HomePath      = "/home/agent"
)

// Runner runs commands in sandboxes, one long-lived sandbox to a workspace. A
// sandbox is made when it is first needed, ends when it has not been needed for a
// while, and is then made again. What a command left in its /tmp lasts as long as
// the sandbox does. Implementations are safe for concurrent use.
type Runner interface {
	// Start starts a command in its workspace's sandbox, which it makes when there
	// is none. When it returns without an error, every part of the isolation and
	// every limit is in place, and the caller owns the process. The context bounds
	// only the start. An error means that nothing runs: ErrTooManySandboxes when there
	// is no room for another sandbox, any other when a part of the isolation could not
	// be applied. That a command cannot be executed is its Exit.
	Start(ctx context.Context, c Command) (Process, error)
	// Warm makes a workspace's sandbox ahead of its first command.
	Warm(ctx context.Context, s Sandbox) error
	// Move has the sandbox of a workspace be that of another name: the folders were
	// renamed. Nothing runs in it. Without one it does nothing.
	Move(from string, to Sandbox)
	// Stop ends a workspace's sandbox, with all that runs in it. Nothing of it has
	// the workspace open any more when it returns. Without one it does nothing.
	Stop(workspace string)
	// Freeze has everything in a workspace's sandbox stand still until thaw is
	// called, which must be. It answers false, and a thaw that does nothing, where
	// nothing runs, or where the runner cannot freeze.
	Freeze(ctx context.Context, workspace string) (frozen bool, thaw func(), err error)
}

// Sandbox is where commands of one workspace run.
type Sandbox struct {
	ID        string // unique among the sandboxes of this node
	Workspace string // on the host; what tells sandboxes apart
	Home      string // on the host
	Owner     Owner
	Limits    Limits // of everything in it together
	// Network is the policy of what it may reach, as its owner wrote it; empty: it
	// has no network.
	Network string
	// Mounts are what it shows besides; see MountList. A string, so that sandboxes can
	// be compared.
	Mounts string
	// User is whose commands alone it is for; empty: everybody's in the session.
	User string
	// Operator says that the network is the operator's own, above any ceiling.
	Operator bool
	Tenant   string // whose it is, for what is told of its network
	Session  string
	// Spare marks a sandbox that no command has needed yet. It does not end for being idle, and other
	// sandboxes do not end to make room for it.
	Spare bool
}

// Command is what to run.
type Command struct {
	Sandbox  Sandbox
	Argv     []string      // at least one
	Env      []string      // KEY=value, over the clean default environment
	Dir      string        // absolute, inside the sandbox
	Limits   Limits        // of the command, at most the sandbox's
	Stdin    bool          // whether standard input will be written
	Terminal *TerminalSize // nil for none
	// Patient makes Start return ErrTerminalsTaken if the machine has no free terminal and the sandbox's
	// terminals are not limited. Another command may hold all terminals until it is ended for that.
	// Otherwise Start returns a process that was not started.
	Patient bool
	// Before is called when the command's sandbox exists, and again when it is recreated. It begins the
	// work that must precede execution and returns a function that waits for it. If that function fails,
	// Start returns its error and nothing runs. Before, or the function that it returns, may be nil if
	// there is nothing to do or to wait for.
	Before func() (done func() error)
	// Enter is called before Before, with the server of the sandbox's way out: the value that the runner
	// was given for it, or nil. It must not block. Enter may be nil.
	Enter func(out io.Closer)
}

// Begin calls Before. It returns nil if there is nothing to wait for.
func (c *Command) Begin() (done func() error) {
	if c.Before == nil {
		return nil
	}
	return c.Before()
}

// Prepare calls Begin and waits.
func (c *Command) Prepare() error {
	if done := c.Begin(); done != nil {
		return done()
	}
	return nil
}

// Owner is the host user that owns a workspace and runs its commands. UID -1 is
// the service's own.
type Owner struct{ UID, GID int }

// Self is the owner that the service itself is.
var Self = Owner{UID: -1, GID: -1}

// TerminalSize is the size of a terminal.
type TerminalSize struct{ Rows, Columns uint16 }

// Process is a command that was started. Its methods may be called by several
// goroutines, Wait by one.
type Process interface {
	// Stdin is where to write its standard input; nil when there is none. On a
	// terminal closing it sends an end of file.
	Stdin() io.WriteCloser
	// Stdout and Stderr are where to read its output, to the end of file. Stderr
	// is nil on a terminal.
	Stdout() io.ReadCloser
	Stderr() io.ReadCloser
	// Signal sends a signal to the command's process group.
	Signal(number int) error
	// Resize sets the size of its terminal.
	Resize(TerminalSize) error
	// Held is what its processes hold that no count of the workspace's folders finds, as
	// far as that is known by now.
	Held() held.Sum
	// Weigh returns a function that measures how many bytes of memory the command's processes use together,
	// which may take seconds. It returns nil if no measurement is needed.
	Weigh() func() int64
	// Kill ends the command and all its processes at once.
	Kill()
	// Ended is closed when the command has ended: Wait is short from then on.
	Ended() <-chan struct{}
	// Lasts is closed once the command is known to have run for a moment, or has ended. It is nil if the
	// runner does not tell.
	Lasts() <-chan struct{}
	// Wait waits until nothing of the command runs any more, and releases its limits.
	Wait() Exit
}

// Exit is how a process ended, as its runner saw it.
type Exit struct {
	Status int // the exit status, of one that exited
	Signal int // the signal that ended it; zero when it exited
	// NotStarted is why the command could not be executed; empty: it was.
	NotStarted string
	Crowded    bool // whether that is because there were as many processes as may be
	OOMKilled  bool // whether the kernel killed one of its processes for memory
	// ScratchBytes are those of files in /tmp and /dev/shm, which count as memory, after such a kill; zero when not known.
	ScratchBytes int64
	Counted      bool // whether the kernel counts what it refuses of memory and processes, so that nothing told is nothing refused
	// Lost says that the sandbox broke down, so that nothing else is known of the
	// end but that nothing of the command runs.
	Lost      bool
	CPU       time.Duration
	MaxMemory int64 // bytes, zero when not known
	Written   int64 // bytes that its processes had written to disks, as far as that is known
	// Met is the command's own: of its group, or of the sandbox's while nothing else ran there.
	Met
	// Common is what all in the sandbox met together, when others ran beside the command.
	Common Met
}

// Met is how often, or how long, processes met a limit.
type Met struct {
	Throttled time.Duration // that they waited for processors that they may not have
	Refused   int64         // that were not made for there being too many
}

// CannotEnter is why a command was not started in a folder.
func CannotEnter(dir string, err error) string {
	why := "cannot enter the folder " + dir + ": " + err.Error()
	if errors.Is(err, unix.EACCES) {
		why += ": run `chmod u+rwx` on it, or on the folder above it that is closed, from one that is open, as " + WorkspacePath + " is"
	}
	return why
}
