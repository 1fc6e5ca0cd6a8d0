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

// journal writes a start to disk before the command runs, with one synced write into reserved space.
// Without it a crash of the machine could lose a start, because all other records are written later and
// unsynced. So a command waits for one sync, which commands that start at once share.
//
// The journal also holds the end of a quick command before it is published. A crash of the service does not
// lose the end, and the next sync writes it to disk. Its record is written when the journal switches files,
// or within a minute. Most commands are acknowledged by then and need none.
//
// The journal has two files and writes one of them. When that is full, it switches to the other, once all
// that the other stands for is on disk elsewhere.
type journal struct {
	dir string

	mu       sync.Mutex // guards what follows; taken before an Exec's
	files    [2]*os.File
	current  int
	at       int64
	written  int64 // number of starts
	switches int64 // how often a file was begun; numbers the current one
	spare    chan error
	// journalOnly are the commands that may have data only in the journal.
	journalOnly map[*Exec]struct{}
	// intents are the changes of files whose answers are not on disk, by the places of the answers.
	intents map[string]*intent
	// failed is why a sync failed. The kernel reports that once and then treats the data as written. So
	// nothing is begun any more, and the next service reads what the kernel has.
	failed error

	flush  sync.Mutex // held while syncing; guards what follows
	synced int64      // starts that are on disk
}

// startEntry is a start, an end, or a change of files.
type startEntry struct {
	Key     Key       `json:"key"`
	CallID  string    `json:"call_id"`
	Digest  []byte    `json:"digest"`
	Argv    []string  `json:"argv,omitempty"` // unless it is long
	Started time.Time `json:"started"`
	// Created is when the workspace was made. A later workspace of the same name is another one.
	Created time.Time `json:"created"`
	// End is the complete record of an ended command.
	End *record `json:"end,omitempty"`
	// Change is a change of files that is about to be made; there is no command then.
	Change *changeEntry `json:"change,omitempty"`
}

// ending returns the entry of a command's end.
func (e startEntry) ending(r record) startEntry {
	return startEntry{Key: e.Key, CallID: e.CallID, Started: e.Started, Created: e.Created, End: &r}
}

func journalPath(dir string, i int) string { return filepath.Join(dir, fmt.Sprint(".starts-", i)) }

// readJournal returns the entries of an earlier process, in no order.
func readJournal(dir string) (all []startEntry, err error) {
	for i := range 2 {
		raw, err := os.ReadFile(journalPath(dir, i))
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return nil, err
		}
		for len(raw) >= 8 {
			n := int(binary.LittleEndian.Uint32(raw))
			if n == 0 || n > len(raw)-8 || crc32.ChecksumIEEE(raw[8:8+n]) != binary.LittleEndian.Uint32(raw[4:]) {
				break // the end, or an entry that a crash tore: its command had not started
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

// openJournal makes an empty journal. All that the previous one stood for must be on disk.
func openJournal(dir string) (*journal, error) {
	j := &journal{dir: dir, switches: 1, spare: make(chan error, 1), journalOnly: map[*Exec]struct{}{}, intents: map[string]*intent{}}
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

// empty writes zeros: writing to reserved but unwritten space would change the file's metadata each time.
func empty(f *os.File) error {
	_, err := f.WriteAt(make([]byte, journalSize), 0)
	return errors.Join(err, f.Sync())
}

// add writes the start of a command and begins to flush it. The returned function waits until it is on
// disk.
func (j *journal) add(e startEntry, of *Exec) (synced func() error) {
	packet, err := e.encode()
	if err != nil {
		return func() error { return err }
	}
	return j.begin(packet, func() { j.journalOnly[of], of.start.file = struct{}{}, j.switches })
}

// begin is add, for any entry. It calls noted with mu held.
func (j *journal) begin(packet []byte, noted func()) (synced func() error) {
	mine, f, err := j.write(packet, noted)
	if err != nil {
		return func() error { return err }
	}
	// Only a hint to begin: the disk may ignore it, and nothing depends on it.
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
	upTo, switched, failed := j.written, f != j.files[j.current], j.failed
	j.mu.Unlock()
	if failed != nil {
		return failed
	}
	if switched { // the switch wrote it to disk; later entries are in the other file
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

// fail stops all later entries. mu is held.
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
		if err := j.switchFile(); err != nil {
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

// longEnd is the size in bytes from which an end is not journaled.
const longEnd = 4096

// end journals the end of a command. If it returns true, the end survives a crash of the service, and after
// the next sync also one of the machine. If it returns false, the record must be written.
func (j *journal) end(e startEntry, of *Exec) bool {
	packet, err := e.encode()
	if err != nil || len(packet) > longEnd {
		return false
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if !j.fits(packet) || j.put(packet) != nil { // turning the journal over takes longer than writing a record
		return false
	}
	j.journalOnly[of] = struct{}{}
	return true
}

// encode returns an entry as stored in the file: its length, a checksum, and its text.
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

// markRecorded notes that a command has a record as well, or needs none.
func (j *journal) markRecorded(e *Exec) {
	j.mu.Lock()
	defer j.mu.Unlock()
	delete(j.journalOnly, e)
}

// markUnrecorded records that writing the record of a command's end failed and must be retried.
func (j *journal) markUnrecorded(e *Exec) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.journalOnly[e] = struct{}{}
}

// contains reports whether the start of a command is in the journal. If it is not, only its record or its
// acknowledgement keeps it from running again.
func (j *journal) contains(e *Exec) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return e != nil && e.start.file == j.switches
}

// unrecorded returns the commands that still need a record. mu is held.
func (j *journal) unrecorded() []*Exec {
	maps.DeleteFunc(j.journalOnly, func(e *Exec, _ struct{}) bool { return e.keeper.recorded.Load() })
	return slices.Collect(maps.Keys(j.journalOnly))
}

// settle writes the records of the commands that have ended.
func (j *journal) settle() error {
	j.mu.Lock()
	alone := j.unrecorded()
	j.mu.Unlock()
	var faults []error
	for _, e := range alone {
		if e.settled() {
			faults = append(faults, e.keepRecord(noteNew))
		}
	}
	return errors.Join(faults...)
}

// switchFile switches to the other file and empties the full one. mu is held.
func (j *journal) switchFile() error {
	if err := <-j.spare; err != nil { // the disk may have room again
		if err := clearOut(j.files[1-j.current], j.unrecorded()); err != nil {
			j.spare <- err
			return err
		}
	}
	full := j.files[j.current]
	// The next sync counts this file's starts as synced.
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
	j.switches++
	alone := j.unrecorded()
	go func() { j.spare <- clearOut(full, alone) }() // close waits for it
	return nil
}

// clearOut empties a file once all its entries are on disk elsewhere.
func clearOut(full *os.File, alone []*Exec) error {
	for _, e := range alone {
		if err := e.keepRecord(noteNew); err != nil {
			return err
		}
	}
	if err := unix.Syncfs(int(full.Fd())); err != nil {
		return err
	}
	return empty(full)
}

func (j *journal) close() error {
	err := <-j.spare // a switch that is in progress
	j.spare <- err
	j.mu.Lock()
	defer j.mu.Unlock()
	faults := []error{err, j.failed}
	for _, f := range j.files {
		if f != nil {
			faults = append(faults, f.Sync(), f.Close())
		}
	}
	return errors.Join(faults...)
}
