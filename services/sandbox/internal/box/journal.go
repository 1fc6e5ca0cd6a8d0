package box

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/fairlead/fairlead/services/sandbox/internal/durable"
)

// journalSize is the size of one of the journal's two files.
const journalSize = 256 << 10

// journal has a start on the disk before the command runs, for the price of one
// synced write into a file whose place on the disk is reserved. Without it a crash
// of the machine could forget that a command was started: everything else that is
// remembered of one is written later, at the latest with its end, and when the
// kernel likes: so a command waits for one sync and for nothing else.
//
// One of two files is written; when it is full, the other one is, once all that
// the other one stands for is on the disk by itself.
type journal struct {
	dir string

	mu      sync.Mutex // guards what follows; taken before an Exec's
	files   [2]*os.File
	current int
	at      int64
	written int64 // starts
	spare   chan error
	// alone are the commands of which the journal knows and maybe nothing else.
	alone map[*Exec]struct{}

	flush  sync.Mutex // held by who syncs; guards what follows
	synced int64      // starts that are on the disk
}

// startEntry is one start.
type startEntry struct {
	Key     Key       `json:"key"`
	CallID  string    `json:"call_id"`
	Digest  []byte    `json:"digest"`
	Argv    []string  `json:"argv,omitempty"` // unless it is long
	Started time.Time `json:"started"`
	// Created is when the workspace was: one made later under the same name has
	// nothing to do with it.
	Created time.Time `json:"created"`
}

func journalPath(dir string, i int) string { return filepath.Join(dir, fmt.Sprint(".starts-", i)) }

// readJournal returns the starts of an earlier process, in no order.
func readJournal(dir string) (all []startEntry, err error) {
	for i := range 2 {
		raw, err := os.ReadFile(journalPath(dir, i))
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return nil, err
		}
		for len(raw) >= 8 {
			n := int(binary.LittleEndian.Uint32(raw))
			if n == 0 || n > len(raw)-8 || crc32.ChecksumIEEE(raw[8:8+n]) != binary.LittleEndian.Uint32(raw[4:]) {
				break // the end, or one that a crash tore: its command had not started
			}
			var e startEntry
			if err := json.Unmarshal(raw[8:8+n], &e); err != nil {
				break
			}
			all = append(all, e)
			raw = raw[8+n:]
		}
	}
	return all, nil
}

// openJournal makes an empty journal. What the one before stood for must be on the
// disk.
func openJournal(dir string) (*journal, error) {
	j := &journal{dir: dir, spare: make(chan error, 1), alone: map[*Exec]struct{}{}}
	j.spare <- nil
	for i := range j.files {
		f, err := os.OpenFile(journalPath(dir, i), os.O_CREATE|os.O_RDWR, 0o600)
		if err != nil {
			return nil, errors.Join(err, j.close())
		}
		j.files[i] = f
		if err := empty(f); err != nil {
			return nil, errors.Join(err, j.close())
		}
	}
	return j, durable.SyncDir(dir)
}

// empty writes zeros: reserved, but never written space would cost a change of
// the file's description with each write.
func empty(f *os.File) error {
	_, err := f.WriteAt(make([]byte, journalSize), 0)
	return errors.Join(err, f.Sync())
}

// add writes down the start of a command. It is on the disk when this returns.
func (j *journal) add(e startEntry, of *Exec) error {
	mine, f, err := j.write(e, of)
	if err != nil {
		return err
	}
	j.flush.Lock() // whoever waits here is mostly served by the one before
	defer j.flush.Unlock()
	if j.synced >= mine {
		return nil
	}
	j.mu.Lock()
	upTo := j.written
	j.mu.Unlock()
	if err := unix.Fdatasync(int(f.Fd())); err != nil {
		return err
	}
	j.synced = max(j.synced, upTo)
	return nil
}

func (j *journal) write(e startEntry, of *Exec) (mine int64, f *os.File, err error) {
	text, err := json.Marshal(e)
	if err != nil {
		return 0, nil, err
	}
	packet := binary.LittleEndian.AppendUint32(nil, uint32(len(text)))
	packet = append(binary.LittleEndian.AppendUint32(packet, crc32.ChecksumIEEE(text)), text...)
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.at+int64(len(packet))+8 > journalSize {
		if err := j.turn(); err != nil {
			return 0, nil, err
		}
	}
	f = j.files[j.current]
	if _, err := f.WriteAt(packet, j.at); err != nil {
		return 0, nil, err
	}
	j.at += int64(len(packet))
	j.written++
	j.alone[of] = struct{}{}
	return j.written, f, nil
}

// known notes that of a command there is a record as well, or that none is needed.
func (j *journal) known(e *Exec) {
	j.mu.Lock()
	defer j.mu.Unlock()
	delete(j.alone, e)
}

// turn goes on in the other file, and has this one emptied. mu is held.
func (j *journal) turn() error {
	if err := <-j.spare; err != nil { // the disk may have room again
		if err := clearOut(j.files[1-j.current], slices.Collect(maps.Keys(j.alone))); err != nil {
			j.spare <- err
			return err
		}
	}
	full := j.files[j.current]
	// Who syncs the next file has this one's starts counted as well.
	if err := unix.Fdatasync(int(full.Fd())); err != nil {
		j.spare <- nil
		return err
	}
	j.current, j.at = 1-j.current, 0
	alone := slices.Collect(maps.Keys(j.alone))
	go func() { j.spare <- clearOut(full, alone) }() // close waits for it
	return nil
}

// clearOut empties a file once what it says is on the disk by itself.
func clearOut(full *os.File, alone []*Exec) error {
	for _, e := range alone {
		if err := e.keepRecord(e.note); err != nil {
			return err
		}
	}
	if err := unix.Syncfs(int(full.Fd())); err != nil {
		return err
	}
	return empty(full)
}

func (j *journal) close() error {
	err := <-j.spare // a turn that is under way
	j.spare <- err
	faults := []error{err}
	for _, f := range j.files {
		if f != nil {
			faults = append(faults, f.Close())
		}
	}
	return errors.Join(faults...)
}

// recall marks the starts as lost of which nothing else is on the disk any more,
// and begins a new journal.
func (n *Node) recall() error {
	all, err := readJournal(n.o.Dir)
	if err != nil {
		return fmt.Errorf("read the journal of starts: %w", err)
	}
	for _, e := range all {
		if err := n.recallOne(e); err != nil {
			return fmt.Errorf("recall a lost command: %w", err)
		}
	}
	if len(all) > 0 { // what they stand for is on the disk by itself from here on
		if err := unix.Syncfs(int(n.lock.Fd())); err != nil {
			return fmt.Errorf("sync the data directory: %w", err)
		}
	}
	n.journal, err = openJournal(n.o.Dir)
	return err
}

func (n *Node) recallOne(e startEntry) error {
	valid := e.Key.check() == nil && callID.MatchString(e.CallID)
	if !valid || n.o.Now().Sub(e.Started) > n.o.KeepFor {
		return nil
	}
	s := newSession(n, e.Key)
	var m meta
	known := read(s.path(metaFile), &m) == nil && m.Created.Equal(e.Created)
	if !known {
		return nil // the workspace is not there any more, or cannot be used anyway
	}
	if err := s.loadSettled(); err != nil {
		return err
	}
	dir := s.path("execs", e.CallID)
	if st, err := os.Stat(filepath.Join(dir, recordFile)); err == nil && st.Size() > 0 {
		return nil
	}
	if _, gone := s.settled[e.CallID]; gone {
		return nil
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	return save(filepath.Join(dir, recordFile), record{CallID: e.CallID, Digest: e.Digest, Argv: e.Argv, Started: e.Started})
}
