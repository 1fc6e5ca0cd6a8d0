package box

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/fairlead/fairlead/services/sandbox/internal/durable"
)

// Acknowledge forgets a finished exec, but remembers that it existed. An unknown exec counts as forgotten.
// The mark of a cancelled one stays.
func (n *Node) Acknowledge(c Call) error {
	s, leave, err := n.sessions.enter(c.Key)
	if err != nil {
		return err
	}
	defer leave()
	s.workspace.mu.Lock()
	defer s.workspace.mu.Unlock()
	if err := s.workspace.fenceCall(c); err != nil {
		return err
	}
	e, _ := s.execs.find(c.ID)
	switch {
	case e == nil || e.mark():
		return nil
	case e.Outcome() == nil:
		return fmt.Errorf("%w: call %s", ErrNotFinished, c.ID)
	case e.cancelled():
		e.abandon()
		return s.execs.setMark(c.ID)
	}
	return s.execs.acknowledge(c.ID)
}

// Cancel kills a command and all its processes, and refuses its call from now on. When it returns, nothing
// of the command runs. It returns nil for a command that had not started; the call may then also be a
// change of a file.
func (n *Node) Cancel(ctx context.Context, c Call) (*Outcome, error) {
	s, leave, err := n.sessions.enter(c.Key)
	if err != nil {
		return nil, err
	}
	defer leave()
	e, err := s.refuse(c)
	if err != nil {
		return nil, err
	}
	if e == nil {
		s.mutations.mu.Lock() // a running change of a file ends first
		defer s.mutations.mu.Unlock()
		return nil, nil
	}
	e.stop(Outcome{Reason: Cancelled, Message: "the command was cancelled"})
	select {
	case <-e.done:
		return e.Outcome(), nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// refuse records that a call is cancelled, and returns its exec if there is one to kill.
func (s *session) refuse(c Call) (*Exec, error) {
	s.workspace.mu.Lock()
	defer s.workspace.mu.Unlock()
	if err := s.workspace.fenceCall(c); err != nil {
		return nil, err
	}
	e, _ := s.execs.find(c.ID)
	if e == nil {
		return nil, s.execs.setMark(c.ID)
	}
	if e.mark() {
		return nil, nil
	}
	return e, e.setCancelled()
}

func (e *Exec) setCancelled() error {
	e.mu.Lock()
	e.rec.Cancelled = true
	e.mu.Unlock()
	if err := errors.Join(e.keepRecord(save), durable.SyncDir(filepath.Dir(e.keeper.dir))); err != nil {
		return fmt.Errorf("mark the call as cancelled: %w", err)
	}
	return nil
}
