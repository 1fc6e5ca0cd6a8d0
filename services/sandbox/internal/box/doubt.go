package box

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// A start is not synced if its caller vouches for it. The caller has recorded on its own disk that it makes
// the call for the first time, and never says so again. So the node need not remember the start to refuse a
// second one. The kernel has the data, so a crash of the service does not lose it. After a crash of the
// machine, a lost start counts as lost for all callers that do not vouch. For that the workspace records
// that it had such starts, synced before the second of them.

// vouched reports whether a command's start need not be synced: its caller vouches for it, and the disk
// says that the workspace has such starts. mu is held.
func (ws *workspace) vouched(spec Spec) bool {
	return spec.First && ws.node.trusting() && ws.meta.Unsynced == ws.node.life.ID
}

// vouch writes to disk that starts are not synced from now on. It runs after a caller has vouched for a
// start, so that no command waits for the write.
func (n *Node) vouch(k Key) error {
	s, leave, err := n.enter(k)
	if err != nil {
		return err
	}
	defer leave()
	s.workspace.mu.Lock()
	defer s.workspace.mu.Unlock()
	if s.workspace.meta == nil || !n.trusting() || s.workspace.meta.Unsynced == n.life.ID {
		return nil
	}
	m := *s.workspace.meta
	m.Unsynced = n.life.ID
	if err := save(s.path(metaFile), m); err != nil {
		return fmt.Errorf("remember that starts are not synced: %w", err)
	}
	s.workspace.meta = &m
	return nil
}

// forgetful reports whether the machine may have lost command starts of a workspace.
func (n *Node) forgetful(m *meta) bool { return m.Unsynced != "" && m.Unsynced != n.life.ID }

// doubt adopts the meta file, and records whether the machine may have lost command starts. If the disk is
// full, the next read of the workspace repeats the check instead of failing: the caller may be about to
// make room. mu is held.
func (ws *workspace) doubt(m *meta) {
	if ws.meta = m; !ws.node.forgetful(m) {
		return
	}
	m.Unsynced, m.Doubted = "", true
	if err := save(ws.path(metaFile), m); err != nil {
		ws.node.o.Log.Error("cannot note that the machine may have forgotten commands", "session", ws.key.Session, "error", err)
	}
}

// forgotten returns an exec that the machine may have lost, without further knowledge of it. It is not
// stored, because the doubt does not end.
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

// life identifies a period of the node between possible crashes of the machine. Its file is synced.
type life struct {
	ID string `json:"id"`
	// Boot identifies the start of the machine during this life.
	Boot string `json:"boot"`
	// Over means that the life ended with all starts on disk: the next start of the machine continues it.
	Over bool `json:"over,omitempty"`

	unsaved bool // the file differs
}

const lifeFile = ".life"

// readLife continues the life in the file, or begins another. Its id is empty if starts of the machine
// cannot be distinguished.
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
	if err != nil || l.ID == "" || l.Boot != boot && !l.Over { // a damaged file counts as over, in doubt
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
