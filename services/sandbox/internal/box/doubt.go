package box

import (
	"fmt"

	"github.com/fairlead/fairlead/services/sandbox/internal/durable"
)

// A start that its caller vouches for is not synced: who asks for a call for the first time, and
// has that on a disk of its own, need not be kept from starting it again, for it will not say again
// that it is the first time. The kernel has the start, so that a crash of the service does not
// forget it. What a crash of the machine forgot is lost to all who do not say so: the workspace
// remembers, synced once, in which start of the machine there were such commands.

// vouched says whether a command's start need not be synced, once it is on the disk that there are
// such. mu is held.
func (s *session) vouched(spec Spec) (bool, error) {
	if !spec.First || s.node.boot == "" {
		return false, nil
	}
	if s.meta.Unsynced == s.node.boot {
		return true, nil
	}
	m := *s.meta
	m.Unsynced = s.node.boot
	if err := save(s.path(metaFile), m); err != nil {
		return false, fmt.Errorf("remember that starts are not synced: %w", err)
	}
	s.meta = &m
	return true, nil
}

// doubt takes what the disk says of the workspace, and notes if the machine may have forgotten
// starts of commands there. mu is held.
func (s *session) doubt(m *meta) error {
	if m.Unsynced != "" && m.Unsynced != s.node.boot {
		m.Unsynced, m.Doubted = "", s.node.o.Now().UTC()
		if err := save(s.path(metaFile), m); err != nil {
			return fmt.Errorf("remember that the machine may have forgotten commands: %w", err)
		}
	}
	s.meta = m
	return nil
}

// doubtful says whether a call that is not known may have been started. mu is held, and there is a
// workspace.
func (s *session) doubtful() bool {
	return !s.meta.Doubted.IsZero() && s.node.o.Now().Sub(s.meta.Doubted) <= s.node.o.KeepFor
}

// lose makes a lost command of a call that the machine may have forgotten. mu is held.
func (s *session) lose(id string) (*Exec, error) {
	if !callID.MatchString(id) {
		return nil, fmt.Errorf("call id %q is not valid", id)
	}
	now := s.node.o.Now().UTC()
	e := newExec(s.node, s.path("execs", id), record{
		CallID: id, Damaged: true, Started: now, Ended: now,
		Outcome: &Outcome{Reason: Lost, Message: "the machine was started again, and whether it had started the command before is not known: it may have taken effect"},
	})
	if err := e.keepRecord(save); err != nil {
		return nil, fmt.Errorf("remember a lost command: %w", err)
	}
	if err := durable.SyncDir(s.path("execs")); err != nil {
		return nil, fmt.Errorf("remember a lost command: %w", err)
	}
	close(e.done)
	s.execs[id] = e
	return e, nil
}
