package state

import (
	"cmp"
	"sync"

	commonv1 "github.com/fairlead/fairlead/gen/go/fairlead/common/v1"
	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
)

// announced is the permission mode that a command in the inbox asks for. It holds for decisions before the loop, which
// may be making calls, takes the command. A crash loses nothing: the command is in the inbox still.
type announced struct {
	mu      sync.Mutex
	command int64 // 0: none
	mode    commonv1.PermissionMode
	taken   int64 // the last command that the loop took
}

// AnnounceMode tells of a command in the inbox.
func (t *Turn) AnnounceMode(command int64, mode commonv1.PermissionMode) {
	t.announced.mu.Lock()
	defer t.announced.mu.Unlock()
	if command > t.announced.taken && command > t.announced.command {
		t.announced.command, t.announced.mode = command, mode
	}
}

// takenMode forgets what was told of a command.
func (t *Turn) takenMode(command int64) {
	t.announced.mu.Lock()
	defer t.announced.mu.Unlock()
	t.announced.taken = max(t.announced.taken, command)
	if t.announced.command <= command {
		t.announced.command, t.announced.mode = 0, commonv1.PermissionMode_PERMISSION_MODE_UNSPECIFIED
	}
}

func (t *Turn) announcedMode() commonv1.PermissionMode {
	t.announced.mu.Lock()
	defer t.announced.mu.Unlock()
	return t.announced.mode
}

// Mode returns the permission mode of the active turn.
func (s *Session) Mode() commonv1.PermissionMode {
	if s.Active == nil {
		return commonv1.PermissionMode_PERMISSION_MODE_UNSPECIFIED
	}
	return cmp.Or(s.Active.announcedMode(), loggedMode(s))
}

// loggedMode is the mode of which the log tells.
func loggedMode(s *Session) commonv1.PermissionMode {
	return cmp.Or(s.Active.Run.Mode, s.options().GetPermissionMode())
}

// ChangeMode lets the active turn go on in another permission mode, and returns the event of it.
func ChangeMode(s *Session, mode commonv1.PermissionMode, user, call string) *sessionv1.Event {
	before := cmp.Or(loggedMode(s), commonv1.PermissionMode_PERMISSION_MODE_DEFAULT)
	s.Active.Run.Mode = mode
	return s.StepEvent(&sessionv1.Event{Body: &sessionv1.Event_PermissionModeChanged{PermissionModeChanged: &sessionv1.PermissionModeChanged{
		Mode: mode, Before: before, User: user, CallId: call,
	}}})
}

// TakeMode carries out a command that asks for a mode. It returns no event if the turn is in it already.
func TakeMode(s *Session, command int64, mode commonv1.PermissionMode, user string) *sessionv1.Event {
	s.Active.takenMode(command)
	if mode == cmp.Or(loggedMode(s), commonv1.PermissionMode_PERMISSION_MODE_DEFAULT) {
		return nil
	}
	return ChangeMode(s, mode, user, "")
}
