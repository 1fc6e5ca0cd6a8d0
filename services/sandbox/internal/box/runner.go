package box

import (
	"context"
	"errors"
	"io"
	"time"

	"golang.org/x/sys/unix"
)

// Paths inside a sandbox.
const (
	WorkspacePath = "/workspace"
	HomePath      = "/home/agent"
	// TreesPath holds the session's read-only trees, each by its name.
	TreesPath = "/skills"
)

// Runner runs commands in sandboxes, one long-lived sandbox to a workspace. A sandbox is made when it is
// first needed and ends after some idle time; the next command gets a new one. Files in its /tmp last as
// long as the sandbox. Implementations are safe for concurrent use.
type Runner interface {
	// Start starts a command in its workspace's sandbox, and makes the sandbox if there is none. If it
	// returns no error, all isolation and all limits are in place, and the caller owns the process. The
	// context bounds only the start. After an error nothing runs. The error is ErrTooManySandboxes if there
	// is no room for another sandbox, and another one if a part of the isolation failed. A command that
	// cannot be executed is not an error: its Exit reports that.
	Start(ctx context.Context, c Command) (Process, error)
	// Warm makes a workspace's sandbox ahead of its first command.
	Warm(ctx context.Context, s Sandbox) error
	// Move renames a workspace's sandbox after its folders were renamed. Nothing runs in it. Without a
	// sandbox it does nothing.
	Move(from string, to Sandbox)
	// Stop ends a workspace's sandbox and all its processes. When it returns, none of them has the
	// workspace open any more. Without a sandbox it does nothing.
	Stop(workspace string)
	// Freeze stops all processes in a workspace's sandbox until thaw is called. The caller must call thaw.
	// If nothing runs, or the runner cannot freeze, frozen is false and thaw does nothing.
	Freeze(ctx context.Context, workspace string) (frozen bool, thaw func(), err error)
}

// Sandbox is where commands of one workspace run.
type Sandbox struct {
	ID        string // unique among the sandboxes of this node
	Workspace string // on the host; identifies the sandbox
	Home      string // on the host
	Owner     Owner
	Limits    Limits // of everything in it together
	// Network is the policy of what it may reach, as its owner wrote it. If empty, it has no network.
	Network string
	// Mounts are its further mounts; see MountList. It is a string, so that sandboxes can be compared.
	Mounts string
	// User is the only user whose commands may run in it; empty: all users of the session.
	User string
	// Operator means that the operator configured the network, which no ceiling limits.
	Operator bool
	Tenant   string // its tenant, for reports about its network
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

// Owner is the host user that owns a workspace and runs its commands. UID -1 is the service's own user.
type Owner struct{ UID, GID int }

// Self is the service's own user.
var Self = Owner{UID: -1, GID: -1}

// TerminalSize is the size of a terminal.
type TerminalSize struct{ Rows, Columns uint16 }

// Process is a started command. Several goroutines may call its methods, but only one may call Wait.
type Process interface {
	// Stdin is the writer of its standard input; nil if it has none. On a terminal, Close sends an end of
	// file.
	Stdin() io.WriteCloser
	// Stdout and Stderr are the readers of its output, to the end of file. Stderr is nil on a terminal.
	Stdout() io.ReadCloser
	Stderr() io.ReadCloser
	// Signal sends a signal to the command's process group.
	Signal(number int) error
	// Resize sets the size of its terminal.
	Resize(TerminalSize) error
	// Terminals returns how many pseudo-terminals are open in its sandbox, as far as known. It is zero where
	// the sandbox limits them.
	Terminals() int
	// Written returns how many bytes the processes of its sandbox have written to disks since a command runs
	// there, as far as known. Ended processes count. It takes milliseconds.
	Written() int64
	// Kill ends the command and all its processes at once.
	Kill()
	// Ended is closed when the command has ended; Wait is short from then on.
	Ended() <-chan struct{}
	// Wait waits until nothing of the command runs any more, and releases its limits.
	Wait() Exit
}

// Exit is how a process ended, as its runner saw it.
type Exit struct {
	Status int // the exit status, of one that exited
	Signal int // the signal that ended it; zero when it exited
	// NotStarted is why the command could not be executed; empty if it was.
	NotStarted string
	Crowded    bool // whether the limit of processes was the reason
	OOMKilled  bool // whether the kernel killed one of its processes for memory
	// ScratchBytes is the size of the files in /tmp and /dev/shm, which count as memory, after such a kill;
	// zero if unknown.
	ScratchBytes int64
	// Lost means that the sandbox crashed. All that is known is that nothing of the command runs.
	Lost      bool
	CPU       time.Duration
	MaxMemory int64 // bytes; zero if unknown
	// Met is the command's own: from its group, or from the sandbox's if nothing else ran there.
	Met
	// Common is for the whole sandbox, if other commands ran beside this one.
	Common Met
}

// Met counts how often, or how long, processes met a limit.
type Met struct {
	Throttled time.Duration // time that they waited for processors beyond their limit
	Refused   int64         // processes that were not made because there were too many
}

// CannotEnter returns why a command was not started in a folder.
func CannotEnter(dir string, err error) string {
	why := "cannot enter the folder " + dir + ": " + err.Error()
	if errors.Is(err, unix.EACCES) {
		why += ": run `chmod u+rwx` on it, or on the folder above it that is closed, from one that is open, as " + WorkspacePath + " is"
	}
	return why
}
