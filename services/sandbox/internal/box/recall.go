package box

import (
	"fmt"
	"os"
	"path/filepath"
)

// recall writes the records of commands that only the journal knows: with their end, or as lost. It begins
// a new journal.
func (n *Node) recall() error {
	all, err := readJournal(n.o.Dir)
	if err != nil {
		return fmt.Errorf("read the journal of starts: %w", err)
	}
	if err := n.recallChanges(all); err != nil {
		return fmt.Errorf("recall a change of files: %w", err)
	}
	// Ends first: they contain all that a start does.
	for _, ends := range []bool{true, false} {
		for _, e := range all {
			if (e.End != nil) != ends || e.Change != nil {
				continue
			}
			if err := n.recallOne(e); err != nil {
				return fmt.Errorf("recall a command: %w", err)
			}
		}
	}
	if len(all) > 0 { // from here on, all that they stand for is on disk elsewhere
		if err := n.dir.sync(); err != nil {
			return fmt.Errorf("sync the data directory: %w", err)
		}
	}
	n.journal, err = openJournal(n.o.Dir)
	return err
}

func (n *Node) recallOne(e startEntry) error {
	valid := e.Key.check() == nil && callID.MatchString(e.CallID)
	if !valid || n.o.Now().Sub(e.Started) > n.o.Keep.For {
		return nil
	}
	s := newSession(n, e.Key)
	var m meta
	known := read(s.path(metaFile), &m) == nil && m.Created.Equal(e.Created)
	if !known {
		return nil // the workspace is gone or unusable
	}
	if err := s.execs.loadSettled(); err != nil {
		return err
	}
	if _, gone := s.execs.find(e.CallID); gone {
		return nil
	}
	dir := s.path("execs", e.CallID)
	r, ok := e.missing(filepath.Join(dir, recordFile))
	if !ok {
		return nil
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	return save(filepath.Join(dir, recordFile), r)
}

// missing returns the record for an entry, unless the one on disk is as complete.
func (e startEntry) missing(path string) (record, bool) {
	var old record
	there := read(path, &old) == nil // a record that a crash tore is of no use
	switch {
	case e.End == nil:
		return record{CallID: e.CallID, Digest: e.Digest, Argv: e.Argv, Started: e.Started}, !there
	case there && (old.Outcome != nil || old.Digest == nil): // it has its end, or is a mark
		return record{}, false
	}
	r := *e.End
	r.Cancelled = r.Cancelled || old.Cancelled
	return r, true
}
