package snapshot

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/fairlead/fairlead/services/sandbox/internal/durable"
)

// maxRecord is the size in bytes from which a record is not passed to Request.Intend: its snapshot is durable at once.
const maxRecord = 2048

// name names a snapshot that adds no contents.
func (s Names) name(made Snapshot, intend func(record []byte) error) error {
	raw, err := json.Marshal(made)
	if err != nil {
		return err
	}
	write := durable.Replace
	if intend == nil || len(raw) > maxRecord {
		raw, write = nil, durable.WriteFile
	}
	if intend != nil {
		if err := intend(raw); err != nil {
			return err
		}
	}
	return s.save(made, write)
}

// Repeat makes a snapshot of the same state as an earlier one. It does not read the workspace, which must not have
// changed. No other change of the store may run meanwhile.
func (s Names) Repeat(of Snapshot, r Request) (Snapshot, error) {
	if !validID.MatchString(r.ID) {
		return Snapshot{}, fmt.Errorf("snapshot id %.80q is not valid", r.ID)
	}
	if made, err := s.Get(r.ID); !errors.Is(err, ErrNotFound) {
		return made, err
	}
	seq, err := s.nextSeq()
	if err != nil {
		return Snapshot{}, err
	}
	made := of
	made.ID, made.Seq, made.Parent, made.Description, made.Created, made.Added = r.ID, seq, r.Parent, r.Description, r.Now.UTC(), 0
	return made, s.name(made, r.Intend)
}

// Recover returns the snapshot of an interrupted Create or Repeat. record is what Intend got. The error is ErrNotFound if
// the snapshot was not made, or if its contents have been removed since.
func (s *Store) Recover(id string, record []byte) (Snapshot, error) {
	got, err := s.Get(id)
	if !errors.Is(err, ErrNotFound) {
		return got, err
	}
	var lost Snapshot
	if json.Unmarshal(record, &lost) != nil || lost.ID != id || !s.holds(lost.Root) {
		return Snapshot{}, err
	}
	return lost, s.save(lost, durable.WriteFile)
}

// holds reports whether the store has all contents of a list of files.
func (s *Store) holds(root Hash) bool {
	entries, err := s.entries(root)
	if err != nil {
		return false
	}
	for _, e := range entries {
		if e.Kind == Regular && !s.hasContents(known{path: e.Path, size: e.Size, hash: e.Hash}) {
			return false
		}
	}
	return true
}
