package box

import (
	"context"
	"io"
	"time"
)

// Paths inside a sandbox.
const (
	WorkspacePath = "/workspace"
	HomePath      = "/home/agent"
)

// Runner starts commands in isolation. Implementations are safe for concurrent
// use.
type Runner interface {
	// Start isolates and starts a command. When it returns without an error,
	// every part of the isolation and every limit is in place, and the caller
	// owns the process. The context bounds only the start. An error means that
	// nothing runs: a *StartError when the command could not be executed at all,
	// any other when a part of the isolation could not be applied.
	Start(ctx context.Context, c Command) (Process, error)
}

// Command is what to run.
type Command struct {
	ID        string   // unique among the running commands of this node
	Argv      []string // at least one
	Env       []string // KEY=value, over the clean default environment
	Dir       string   // absolute, inside the sandbox
	Workspace string   // on the host
	Home      string   // on the host
	Owner     Owner
	Limits    Limits
	Stdin     bool          // whether standard input will be written
	Terminal  *TerminalSize // nil for none
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
	// Deleted is how many bytes its processes hold in deleted files of the
	// workspace, which no count of the folders finds.
	Deleted() int64
	// Kill ends the command and everything that it started, at once.
	Kill()
	// Wait waits until nothing of the command runs any more, and releases what
	// isolated it.
	Wait() Exit
}

// Exit is how a process ended, as its runner saw it.
type Exit struct {
	Executed  bool // whether the program was executed
	Status    int  // 0 to 255; 128+n also stands for signal n, as in a shell
	OOMKilled bool // whether the kernel killed one of its processes for memory
	CPU       time.Duration
	MaxMemory int64 // bytes, zero when not known
}
