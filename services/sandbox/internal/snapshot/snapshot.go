// Package snapshot stores the states of a workspace: its exact files at a moment, at the cost of the
// changes since the previous snapshot.
//
// A store is one folder and belongs to one workspace. So tenants never share its contents, and it is
// deleted with the workspace. It holds
//
//	packs/<name>.pack         contents and lists of files, by the SHA-256 of each
//	snapshots/<n>.<id>.json   one snapshot: its name and the hash of its list
//	index                     the files' stat data when they were last read
//
// All data except the index is durable before it is named, and the snapshot's name comes last: a snapshot
// that a crash interrupted is not listed. A snapshot that adds no contents is only named, without a sync: its
// record must be durable elsewhere before the workspace changes (Request.Intend). The index is only a shortcut. A file is not read again if its
// size, inode, change time and modification time equal those in the index. A restart of the machine voids
// the index: a crash may have reverted a file's contents but not its times. A change through a mapping that
// was made writable before the snapshot can go unnoticed until the kernel writes the page.
//
// A snapshot keeps regular files with their contents and holes, directories, also empty ones, and symbolic
// links. It keeps their permissions, with the set-user-id, set-group-id and sticky bits, and their
// modification times from 1677 to 2262, but not the workspace folder's own time. It does not keep owners (a
// restored file belongs to the workspace's), extended attributes, access control lists, or which names are
// links to the same file. It leaves out FIFOs, sockets and devices; Create returns their names.
//
// Several goroutines may read a Store while another changes it. Delete, Compact and Pull are exceptions:
// they need exclusive use of the folder, which no other Store may use either.
package snapshot

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/fairlead/fairlead/services/sandbox/internal/durable"
)

// Errors of this package. All other errors are failures of the disk.
var (
	ErrNotFound = errors.New("there is no such snapshot")
	ErrDamaged  = errors.New("the snapshot store is damaged")
	ErrTooDeep  = errors.New("folders are nested too deep")
	ErrTooLarge = errors.New("the session's snapshots exceed its limit")
	ErrChanged  = errors.New("a command changed files meanwhile: end the commands, and try again")
)

// Snapshot describes one state of the workspace.
type Snapshot struct {
	ID          string    `json:"id"`
	Seq         int64     `json:"seq"` // numbers the snapshots of a store in the order of their creation
	Parent      string    `json:"parent,omitempty"`
	Description string    `json:"description,omitempty"`
	Created     time.Time `json:"created"`
	Root        Hash      `json:"root"` // of its list of files
	Files       int64     `json:"files"`
	Directories int64     `json:"directories"`
	Links       int64     `json:"links"`
	Bytes       int64     `json:"bytes"` // of the files' contents
	Added       int64     `json:"added"` // bytes that the store grew by
	// Skipped are the paths that the snapshot does not hold, at most 100, and why. Long paths are cut, and the names are as
	// filename.Encode writes them.
	Skipped []Skipped `json:"left,omitempty"`
	// SkippedCount is how many there are.
	SkippedCount int64 `json:"left_out,omitempty"`
	// Clones are the calls whose clones had been made; nil if unknown.
	Clones []string `json:"clones"`
}

// Skipped is a file that a snapshot does not hold, or not as it was.
type Skipped struct {
	Path string `json:"path"`
	Why  string `json:"why"`
}

const (
	packsDir       = "packs"
	recordsDir     = "snapshots"
	indexFile      = "index"
	recordSuffix   = ".json"
	maxSkipped     = 100
	maxSkippedPath = 1024 // bytes
)

var validID = regexp.MustCompile(`^[a-z0-9][a-z0-9-]{0,62}$`)

// Names are the snapshots of a store, without their contents.
type Names struct{ dir string }

// In returns the snapshots of the store in a folder.
func In(dir string) Names { return Names{dir} }

// Store is an open store.
type Store struct {
	Names
	packs *packs
	boot  string // of the machine
}

// Open opens a store, and makes its folders if they are missing.
func Open(dir string) (*Store, error) {
	for _, d := range []string{packsDir, recordsDir} {
		if err := os.MkdirAll(filepath.Join(dir, d), 0o700); err != nil {
			return nil, fmt.Errorf("open the snapshot store: %w", err)
		}
	}
	p, err := openPacks(filepath.Join(dir, packsDir))
	if err != nil {
		return nil, fmt.Errorf("open the snapshot store: %w", err)
	}
	return &Store{Names: In(dir), packs: p, boot: durable.Boot()}, nil
}

// Close releases the store's files.
func (s *Store) Close() error { return s.packs.close() }

// record identifies a snapshot's file.
type record struct {
	seq      int64
	id, file string
}

// records returns the snapshots' files, last one first.
func (s Names) records() ([]record, error) {
	entries, err := os.ReadDir(filepath.Join(s.dir, recordsDir))
	if err != nil {
		return nil, err
	}
	var all []record
	for _, e := range entries {
		name, ok := strings.CutSuffix(e.Name(), recordSuffix)
		number, id, cut := strings.Cut(name, ".")
		seq, err := strconv.ParseInt(number, 10, 64)
		if ok && cut && err == nil && validID.MatchString(id) && !torn(e) {
			all = append(all, record{seq: seq, id: id, file: e.Name()})
		}
	}
	slices.SortFunc(all, func(a, b record) int { return cmp.Or(cmp.Compare(b.seq, a.seq), cmp.Compare(b.id, a.id)) })
	return all, nil
}

// torn reports whether a crash of the machine has left a record without its content.
func torn(e os.DirEntry) bool {
	st, err := e.Info()
	return err == nil && st.Size() == 0
}

func (s Names) record(id string) (record, error) {
	all, err := s.records()
	if err != nil {
		return record{}, err
	}
	i := slices.IndexFunc(all, func(r record) bool { return r.id == id })
	if i < 0 {
		return record{}, fmt.Errorf("%w: %.80q", ErrNotFound, id)
	}
	return all[i], nil
}

// Get returns a snapshot.
func (s Names) Get(id string) (Snapshot, error) {
	r, err := s.record(id)
	if err != nil {
		return Snapshot{}, err
	}
	return s.load(r)
}

func (s Names) load(r record) (Snapshot, error) {
	raw, err := os.ReadFile(filepath.Join(s.dir, recordsDir, r.file))
	if err != nil {
		return Snapshot{}, err
	}
	var got Snapshot
	if err := json.Unmarshal(raw, &got); err != nil || got.ID != r.id || got.Seq != r.seq {
		return Snapshot{}, fmt.Errorf("%w: the record of %s cannot be read", ErrDamaged, r.id)
	}
	return got, nil
}

// List returns snapshots, last one first: at most n of those before a number, where zero stands for the
// end.
func (s Names) List(n int, before int64) ([]Snapshot, error) {
	all, err := s.records()
	if err != nil {
		return nil, err
	}
	var list []Snapshot
	for _, r := range all {
		if before != 0 && r.seq >= before {
			continue
		}
		if len(list) == n {
			break
		}
		got, err := s.load(r)
		if err != nil {
			return nil, err
		}
		list = append(list, got)
	}
	return list, nil
}

// Size returns how many bytes the store's packs hold.
func (s *Store) Size() int64 { return s.packs.size() }

// save names a snapshot whose objects are durable.
func (s Names) save(r Snapshot, write func(path string, raw []byte) error) error {
	raw, err := json.Marshal(r)
	if err != nil {
		return err
	}
	return write(filepath.Join(s.dir, recordsDir, fmt.Sprintf("%012d.%s%s", r.Seq, r.ID, recordSuffix)), raw)
}

// Count returns how many snapshots the store has.
func (s Names) Count() (int, error) {
	all, err := s.records()
	return len(all), err
}
