package box

import (
	"errors"
	"fmt"
)

// Errors of this package. All other errors are failures of the disk.
var (
	ErrNoWorkspace      = errors.New("the session has no workspace here")
	ErrWorkspaceExists  = errors.New("the session has a workspace already")
	ErrNoExec           = errors.New("there is no such exec")
	ErrNotFinished      = errors.New("the exec has not ended")
	ErrCallIDReused     = errors.New("the call id was used for something else")
	ErrOutcomeUnknown   = errors.New("a crash interrupted the change, and it is unknown whether it took effect: check before you repeat it with another call id")
	ErrCancelled        = errors.New("the call was cancelled")
	ErrAcknowledged     = errors.New("the exec's result was recorded and the exec forgotten")
	ErrStaleEpoch       = errors.New("the caller no longer holds the session")
	ErrStaleGeneration  = errors.New("the workspace's place has moved")
	ErrForgotten        = errors.New("the values of the user's variables are not in memory any more: ensure the workspace again, then start the command")
	ErrSealed           = errors.New("the workspace is about to be moved to another machine, and nothing may change it meanwhile: try again in a moment")
	ErrWrongNode        = errors.New("the request is for another node")
	ErrWorkspaceFull    = errors.New("the workspace has reached its size limit")
	ErrTooManyExecs     = errors.New("too many commands run")
	ErrTooManySandboxes = errors.New("too many sandboxes are in use")
	// ErrTerminalsTaken means that the machine has no free terminal at the moment.
	ErrTerminalsTaken   = errors.New("other commands use all allowed terminals")
	ErrIsolation        = errors.New("a part of the isolation could not be applied")
	ErrNoMount          = errors.New("there is no such mount")
	ErrMountRefused     = errors.New("the mount cannot be shown as requested")
	ErrNoTree           = errors.New("the node does not have the tree")
	ErrTrees            = errors.New("this node cannot show trees")
	ErrMountPoint       = errors.New("the place belongs to a mount")
	ErrMountsInUse      = errors.New("commands of another user or with other mounts are running")
	ErrStorageFull      = errors.New("the mount has reached its size limit")
	ErrNoStdin          = errors.New("the command was started without standard input")
	ErrNoTerminal       = errors.New("the command has no terminal")
	ErrClosed           = errors.New("the sandbox service is stopping")
	ErrLimitUnavailable = errors.New("this node cannot apply the limit")
)

// CeilingError means that a workspace or a command asked for more than it may have.
type CeilingError struct{ Field, Asked, Ceiling string }

func (e *CeilingError) Error() string {
	return fmt.Sprintf("%s is %s, above the ceiling of %s: ask for less, or ask the operator or the agent's author to raise it", e.Field, e.Asked, e.Ceiling)
}

// FloorError means that a workspace asked for less than it needs to run.
type FloorError struct{ Field, Asked, Least string }

func (e *FloorError) Error() string {
	return fmt.Sprintf("%s is %s: no sandbox can be run with less than %s", e.Field, e.Asked, e.Least)
}
