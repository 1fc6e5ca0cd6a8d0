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
const journalSize = 512 << 10

// journal has a start on the disk before the command runs, for the price of one
// synced write into a file whose place on the disk is reserved. Without it a crash
// of the machine could forget that a command was started: everything else that is
// remembered of one is written later, and when the kernel likes: so a command waits
// for one sync and for nothing else, and for none when its caller vouches for it (vouched).
//
// The end of a quick command is written there as well, before anybody is told of it: a
// crash of the service does not forget it, and the next sync has it on the disk.
// A folder for its record is made when the journal is turned over, or within a minute,
// unless it was acknowledged by then, as most are.
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
	turns   int64 // how often a file was begun
	spare   chan error
	// alone are the commands of which the journal knows something that is written nowhere
	// else, maybe.
	alone map[*Exec]struct{}
	// intents are the changes of files whose answers are not on the disk, by the answers'
	// places.
	intents map[string]*intent
	// failed is why the disk has not kept what was synced. The kernel says so once and takes it for
	// written from then on, so nothing is begun any more: the next service reads what the kernel has.
	failed error

	flush  sync.Mutex // held by who syncs; guards what follows
	synced int64      // starts that are on the disk
}

// startEntry is one start, or one end, or a change of files.
type startEntry struct {
	Key     Key       `json:"key"`
	CallID  string    `json:"call_id"`
	Digest  []byte    `json:"digest"`
	Argv    []string  `json:"argv,omitempty"` // unless it is long
	Started time.Time `json:"started"`
	// Created is when the workspace was: one made later under the same name has
	// nothing to do with it.
	Created time.Time `json:"created"`
	// End is the whole record of a command that has ended.
	End *record `json:"end,omitempty"`
	// Change is what is about to be done to files; there is no command then.
	Change *changeEntry `json:"change,omitempty"`
}

// ending is the entry of a command's end.
func (e startEntry) ending(r record) startEntry {
	return startEntry{Key: e.Key, CallID: e.CallID, Started: e.Started, Created: e.Created, End: &r}
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
	j := &journal{dir: dir, turns: 1, spare: make(chan error, 1), alone: map[*Exec]struct{}{}, intents: map[string]*intent{}}
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

// add writes down the start of a command. What it returns waits until it is on the disk,
// to which it is on its way meanwhile. It is nil for one that its caller vouches for: a crash
// of the machine may forget that.
func (j *journal) add(e startEntry, of *Exec, vouched bool) (synced func() error) {
	packet, err := e.encode()
	if err != nil {
		return func() error { return err }
	}
	noted := func() { j.alone[of], of.turn = struct{}{}, j.turns }
	if !vouched {
		return j.begin(packet, noted)
	}
	if _, _, err := j.write(packet, noted); err != nil {
		return func() error { return err }
	}
	return nil
}

// begin is add, for any entry. noted is called with mu held.
func (j *journal) begin(packet []byte, noted func()) (synced func() error) {
	mine, f, err := j.write(packet, noted)
	if err != nil {
		return func() error { return err }
	}
	// Only a beginning: the disk may not be asked for this, and nothing depends on it.
	_ = unix.SyncFileRange(int(f.Fd()), 0, 0, unix.SYNC_FILE_RANGE_WRITE)
	return func() error { return j.sync(mine, f) }
}

// sync writes an entry and all earlier ones to disk.
func (j *journal) sync(mine int64, f *os.File) error {
	j.flush.Lock() // the previous holder's sync usually covers this entry
	defer j.flush.Unlock()
	if j.synced >= mine {
		return nil
	}
	j.mu.Lock()
	upTo, turned, failed := j.written, f != j.files[j.current], j.failed
	j.mu.Unlock()
	if failed != nil {
		return failed
	}
	if turned { // which has it on the disk; what was written since is in the other file
		return nil
	}
	if err := unix.Fdatasync(int(f.Fd())); err != nil {
		j.mu.Lock()
		defer j.mu.Unlock()
		return j.fail(err)
	}
	j.synced = max(j.synced, upTo)
	return nil
}

// fail has nothing begun any more. mu is held.
func (j *journal) fail(err error) error {
	if j.failed == nil {
		j.failed = fmt.Errorf("the disk has not kept the journal of starts, so nothing starts until the sandbox service is started again: %w", err)
	}
	return j.failed
}

func (j *journal) write(packet []byte, noted func()) (mine int64, f *os.File, err error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.failed != nil {
		return 0, nil, j.failed
	}
	if !j.fits(packet) {
		if err := j.turn(); err != nil {
			return 0, nil, err
		}
	}
	if err := j.put(packet); err != nil {
		return 0, nil, err
	}
	noted()
	j.written++
	return j.written, j.files[j.current], nil
}

// longEnd is from how many bytes on an end is not written into the journal.
const longEnd = 4096

// end writes down the end of a command. It is safe from a crash of the service when this
// returns true, and from one of the machine with the next sync. False says that its
// record must be written.
func (j *journal) end(e startEntry, of *Exec) bool {
	packet, err := e.encode()
	if err != nil || len(packet) > longEnd {
		return false
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if !j.fits(packet) || j.put(packet) != nil { // turning it over takes longer than a record
		return false
	}
	j.alone[of] = struct{}{}
	return true
}

// encode is an entry as it is in the file: its length, a sum, and its text.
func (e startEntry) encode() ([]byte, error) {
	text, err := json.Marshal(e)
	if err != nil {
		return nil, err
	}
	packet := make([]byte, 8, 8+len(text))
	binary.LittleEndian.PutUint32(packet, uint32(len(text)))
	binary.LittleEndian.PutUint32(packet[4:], crc32.ChecksumIEEE(text))
	return append(packet, text...), nil
}

// fits reports whether there is room for an entry and the mark behind it. mu is held.
func (j *journal) fits(packet []byte) bool { return j.at+int64(len(packet))+8 <= journalSize }

// put writes an entry. The caller has checked that it fits. mu is held.
func (j *journal) put(packet []byte) error {
	if _, err := j.files[j.current].WriteAt(packet, j.at); err != nil {
		return err
	}
	j.at += int64(len(packet))
	return nil
}

// known notes that a command has a record as well, or needs none.
func (j *journal) known(e *Exec) {
	j.mu.Lock()
	defer j.mu.Unlock()
	delete(j.alone, e)
}

// owes notes that the record of a command's end could not be written: it is tried again.
func (j *journal) owes(e *Exec) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.alone[e] = struct{}{}
}

// holds reports whether the start of a command is in the journal. If it is not, only its record or its
// acknowledgement keeps it from running again.
func (j *journal) holds(e *Exec) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return e != nil && e.turn == j.turns
}

// unrecorded returns the commands that still need a record. mu is held.
func (j *journal) unrecorded() []*Exec {
	maps.DeleteFunc(j.alone, func(e *Exec, _ struct{}) bool { return e.recorded.Load() })
	return slices.Collect(maps.Keys(j.alone))
}

// settle writes the records of the commands that have ended.
func (j *journal) settle() error {
	j.mu.Lock()
	alone := j.unrecorded()
	j.mu.Unlock()
	var faults []error
	for _, e := range alone {
		if e.settled() {
			faults = append(faults, e.keepRecord(e.note))
		}
	}
	return errors.Join(faults...)
}

// turn goes on in the other file, and has this one emptied. mu is held.
func (j *journal) turn() error {
	if err := <-j.spare; err != nil { // the disk may have room again
		if err := clearOut(j.files[1-j.current], j.unrecorded()); err != nil {
			j.spare <- err
			return err
		}
	}
	full := j.files[j.current]
	// Who syncs the next file has this one's starts counted as well.
	if err := unix.Fdatasync(int(full.Fd())); err != nil {
		j.spare <- nil
		return j.fail(err)
	}
	j.current, j.at = 1-j.current, 0
	if err := j.carry(); err != nil {
		j.current = 1 - j.current
		j.at = journalSize // full
		j.spare <- nil
		return err
	}
	j.turns++
	alone := j.unrecorded()
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
	j.mu.Lock()
	defer j.mu.Unlock()
	faults := []error{err, j.failed}
	for _, f := range j.files {
		if f != nil {
			faults = append(faults, f.Sync(), f.Close()) // syncs starts that callers vouched for
		}
	}
	return errors.Join(faults...)
}

// recall gives every command its record of which the journal alone knows: with its end,
// or as lost. It begins a new journal.
func (n *Node) recall() error {
	all, err := readJournal(n.o.Dir)
	if err != nil {
		return fmt.Errorf("read the journal of starts: %w", err)
	}
	if err := n.recallChanges(all); err != nil {
		return fmt.Errorf("recall a change of files: %w", err)
	}
	// Ends first: they hold all that a start does.
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
		return nil // the workspace is gone or unusable
	}
	if err := s.loadSettled(); err != nil {
		return err
	}
	if _, gone := s.settled[e.CallID]; gone {
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

// missing is the record that an entry asks for, unless what is on the disk says as much.
func (e startEntry) missing(path string) (record, bool) {
	var old record
	there := read(path, &old) == nil // one that a crash tore is of no use
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
