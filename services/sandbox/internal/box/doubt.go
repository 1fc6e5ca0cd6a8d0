package box

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// A start that its caller vouches for is not synced: who asks for a call for the first time, and
// has that on a disk of its own, need not be kept from starting it again, for it will not say again
// that it is the first time. The kernel has the start, so that a crash of the service does not
// forget it. What a crash of the machine forgot is lost to all who do not say so, for good: the
// workspace remembers that there were such starts, synced before the second of them.

// vouched reports whether a command's start need not be synced: its caller vouches for it, and the disk
// says that the workspace has such starts. mu is held.
func (s *session) vouched(spec Spec) bool {
	return spec.First && s.node.trusting() && s.meta.Unsynced == s.node.life.ID
}

// vouch writes to disk that starts are not synced from now on. It runs after a caller has vouched for a
// start, so that no command waits for the write.
func (n *Node) vouch(k Key) error {
	s, leave, err := n.enter(k)
	if err != nil {
		return err
	}
	defer leave()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.meta == nil || !n.trusting() || s.meta.Unsynced == n.life.ID {
		return nil
	}
	m := *s.meta
	m.Unsynced = n.life.ID
	if err := save(s.path(metaFile), m); err != nil {
		return fmt.Errorf("remember that starts are not synced: %w", err)
	}
	s.meta = &m
	return nil
}

// forgetful reports whether the machine may have lost command starts of a workspace.
func (n *Node) forgetful(m *meta) bool { return m.Unsynced != "" && m.Unsynced != n.life.ID }

// doubt adopts the meta file, and records whether the machine may have lost command starts. If the disk is
// full, the next read of the workspace repeats the check instead of failing: the caller may be about to
// make room. mu is held.
func (s *session) doubt(m *meta) {
	if s.meta = m; !s.node.forgetful(m) {
		return
	}
	m.Unsynced, m.Doubted = "", true
	if err := save(s.path(metaFile), m); err != nil {
		s.node.o.Log.Error("cannot note that the machine may have forgotten commands", "session", s.key.Session, "error", err)
	}
}

// forgotten is a command that the machine may have forgotten, of which nothing else is known. It is
// nowhere remembered, for the doubt does not end.
func (s *session) forgotten(id string) (*Exec, error) {
	if !callID.MatchString(id) {
		return nil, fmt.Errorf("call id %q is not valid", id)
	}
	now := s.node.o.Now().UTC()
	e := newExec(s.node, s.path("execs", id), record{CallID: id, Damaged: true, Started: now, Ended: now, Outcome: forgottenOutcome()})
	e.gone = true
	e.recorded.Store(true)
	close(e.done)
	return e, nil
}

func forgottenOutcome() *Outcome {
	return &Outcome{Reason: Lost, Message: "the machine broke down, and whether it had started the command before is not known: it may have taken effect"}
}

// life is what tells a node's lives apart, between which a crash of the machine may lie: its file
// is synced.
type life struct {
	ID string `json:"id"`
	// Boot is the start of the machine in which it is lived.
	Boot string `json:"boot"`
	// Over says that it was ended with all starts on the disk: the next start of the machine
	// goes on with it.
	Over bool `json:"over,omitempty"`

	unsaved bool // it is not on the disk as it is
}

const lifeFile = ".life"

// readLife goes on with the node's life that a file tells of, or begins another. Its id is empty where
// starts of the machine cannot be told apart.
func readLife(path, boot string) (life, error) {
	if boot == "" {
		return life{}, nil
	}
	var l life
	err := read(path, &l)
	damaged := (*json.SyntaxError)(nil)
	if err != nil && !errors.Is(err, os.ErrNotExist) && !errors.As(err, &damaged) {
		return life{}, fmt.Errorf("read which start of the machine it was: %w", err)
	}
	if err != nil || l.ID == "" || l.Boot != boot && !l.Over { // a damaged one is over, in doubt
		return life{ID: rand.Text(), Boot: boot, unsaved: true}, nil //nolint:nilerr // so it begins another
	}
	return life{ID: l.ID, Boot: boot, unsaved: l.Boot != boot || l.Over}, nil
}

// live writes the current life to disk. Until that succeeds, callers cannot vouch for starts.
func (n *Node) live() error {
	if n.life.unsaved {
		if err := save(filepath.Join(n.o.Dir, lifeFile), n.life); err != nil {
			return fmt.Errorf("remember which start of the machine this is: %w", err)
		}
		n.life.unsaved = false
	}
	return nil
}

// endLife writes to disk that all starts are there.
func (n *Node) endLife() error {
	if !n.trusting() {
		return nil
	}
	l := n.life
	l.Over = true
	if err := save(filepath.Join(n.o.Dir, lifeFile), l); err != nil {
		return fmt.Errorf("remember that all starts are on the disk: %w", err)
	}
	return nil
}

// trusting reports whether callers can vouch for starts.
func (n *Node) trusting() bool { return n.life.ID != "" && !n.life.unsaved }
