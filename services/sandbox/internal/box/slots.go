package box

import (
	"fmt"
	"log/slog"
	"sync"
)

// slots assigns a user to each workspace, and a quota of the file system if there are quotas. It is safe for
// concurrent use.
type slots struct {
	owners Owners
	quota  Quota // nil: the file system does not limit the size of workspaces
	log    *slog.Logger

	mu   sync.Mutex // guards what follows
	used map[int]bool
	next int
}

func newSlots(o Owners, q Quota, log *slog.Logger) *slots {
	return &slots{owners: o, quota: q, log: log, used: map[int]bool{}}
}

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

// free returns a workspace's slot and removes its limits in the file system.
func (s *slots) free(slot int) {
	if s.quota != nil {
		if err := s.quota.Release(slot); err != nil {
			s.log.Error("cannot remove the file system's limit of a workspace", "error", err)
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.used, slot)
}

// reserve refuses a change by the service that the file system would refuse to commands. The quota
// counts more than the tally does, and does not limit the service itself.
func (s *slots) reserve(slot int, bytes, inodes int64) error {
	if s.quota == nil || bytes <= 0 && inodes <= 0 {
		return nil
	}
	b, i, err := s.quota.Remaining(slot)
	if err == nil && (bytes > b || inodes > i) {
		err = fmt.Errorf("%w: %d bytes and %d files are left", ErrWorkspaceFull, max(b, 0), max(i, 0))
	}
	return err
}
