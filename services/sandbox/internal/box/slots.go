package box

import (
	"fmt"
	"sync"
)

// slots assigns a user to each workspace.
type slots struct {
	owners Owners
	mu     sync.Mutex
	used   map[int]bool
	next   int
}

func newSlots(o Owners) *slots { return &slots{owners: o, used: map[int]bool{}} }

func (s *slots) owner(slot int) Owner {
	if s.owners.Base < 0 {
		return Self
	}
	if s.owners.Count == 0 {
		slot = 0
	}
	return Owner{UID: s.owners.Base + slot, GID: s.owners.Base + slot}
}

// acquire returns a free slot. It goes round, so that a freed slot is reused late.
func (s *slots) acquire() (int, error) {
	if s.owners.Count == 0 {
		return 0, nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for range s.owners.Count {
		slot := s.next
		s.next = (s.next + 1) % s.owners.Count
		if !s.used[slot] {
			s.used[slot] = true
			return slot, nil
		}
	}
	return 0, fmt.Errorf("%w: all %d user ids for workspaces are taken: raise `uid-count`, or delete sessions", ErrIsolation, s.owners.Count)
}

// claim marks the slot of a workspace on disk as taken.
func (s *slots) claim(slot int) error {
	if s.owners.Count == 0 {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if slot >= s.owners.Count {
		return fmt.Errorf("a workspace has user slot %d of %d: raise `uid-count` to what it was", slot, s.owners.Count)
	}
	s.used[slot] = true
	return nil
}

func (s *slots) free(slot int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.used, slot)
}
