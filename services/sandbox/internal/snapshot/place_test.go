package snapshot

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
)

// place is a workspace with a store.
type testPlace struct {
	t     *testing.T
	dir   string
	tree  *Tree
	store *Store
	where string // of the store
}

func newPlace(t *testing.T) *testPlace {
	t.Helper()
	base := t.TempDir()
	p := &testPlace{t: t, dir: filepath.Join(base, "workspace"), where: filepath.Join(base, "store")}
	for _, d := range []string{p.dir, filepath.Join(base, "staging")} {
		if err := os.Mkdir(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	tree, err := OpenTree(p.dir, filepath.Join(base, "staging"), Owner{-1, -1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if left, err := os.ReadDir(filepath.Join(base, "staging")); err != nil || len(left) > 0 {
			t.Errorf("in the staging folder: %v, %v", left, err)
		}
		_ = tree.Close()
	})
	p.tree = tree
	p.reopen()
	return p
}

// reopen opens the store anew, as every request does.
func (p *testPlace) reopen() {
	p.t.Helper()
	s, err := Open(p.where)
	if err != nil {
		p.t.Fatal(err)
	}
	p.store = s
	p.t.Cleanup(func() { _ = s.Close() })
}

func (p *testPlace) create(id string) Snapshot {
	p.t.Helper()
	p.reopen()
	got, err := p.store.Create(p.t.Context(), p.tree, Request{ID: id, Now: time.Now()})
	if err != nil {
		p.t.Fatal(err)
	}
	return got
}

func (p *testPlace) restore(id string) Restored {
	p.t.Helper()
	p.reopen()
	got, err := p.store.Restore(p.t.Context(), p.tree, id)
	if err != nil {
		p.t.Fatal(err)
	}
	return got
}

// path is a path in the workspace; its directories are made.
func (p *testPlace) path(name string) string {
	p.t.Helper()
	full := filepath.Join(p.dir, name)
	if err := os.MkdirAll(filepath.Dir(full), 0o755); err != nil {
		p.t.Fatal(err)
	}
	return full
}

func (p *testPlace) write(name, content string) {
	p.t.Helper()
	if err := os.WriteFile(p.path(name), []byte(content), 0o644); err != nil {
		p.t.Fatal(err)
	}
}

func (p *testPlace) must(err error) {
	p.t.Helper()
	if err != nil {
		p.t.Fatal(err)
	}
}

// capture describes everything in the workspace that a snapshot keeps.
func (p *testPlace) capture() map[string]string {
	p.t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(p.dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || path == p.dir {
			return err
		}
		name, _ := filepath.Rel(p.dir, path)
		var st unix.Stat_t
		if err := unix.Lstat(path, &st); err != nil {
			return err
		}
		text := fmt.Sprintf("%o %s", st.Mode, time.Unix(st.Mtim.Unix()).UTC().Format(time.RFC3339Nano))
		switch st.Mode & unix.S_IFMT {
		case unix.S_IFREG:
			b, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			text += fmt.Sprintf(" %d %x holes=%t", st.Size, sha256.Sum256(b), sparse(&st))
		case unix.S_IFLNK:
			target, err := os.Readlink(path)
			if err != nil {
				return err
			}
			text += " -> " + target
		}
		all[name] = text
		return nil
	})
	p.must(err)
	return all
}

func (p *testPlace) back(id string, states map[string]map[string]string) {
	p.t.Helper()
	p.restore(id)
	if diff := cmp.Diff(states[id], p.capture()); diff != "" {
		p.t.Fatalf("%s is not what it was (-want +got):\n%s", id, diff)
	}
}

// change makes one random change.
func (p *testPlace) change(r *rand.Rand) {
	p.t.Helper()
	parts := make([]string, 1+r.IntN(3))
	for i := range parts {
		parts[i] = []string{"a", "b", "a-b", "c c", "\xff\n", ".git", "z"}[r.IntN(7)]
	}
	name := filepath.Join(p.dir, strings.Join(parts, "/"))
	if os.MkdirAll(filepath.Dir(name), 0o755) != nil {
		return // a file is there
	}
	st, err := os.Lstat(name)
	switch r.IntN(9) {
	case 0:
		_ = os.Mkdir(name, 0o700)
	case 1:
		_ = os.RemoveAll(name)
	case 2:
		_ = os.Symlink([]string{"/etc/passwd", "../..", "a", "nowhere"}[r.IntN(4)], name)
	case 3:
		if err == nil && st.Mode()&fs.ModeSymlink == 0 {
			_ = unix.Chmod(name, uint32(r.IntN(0o10000))|uint32(own))
		}
	case 4:
		_ = os.Rename(name, filepath.Join(p.dir, fmt.Sprintf("renamed-%d", r.IntN(5))))
	case 5:
		if err == nil && st.Mode().IsRegular() {
			p.patch(name, r)
		}
	case 6:
		_ = os.Chtimes(name, time.Time{}, time.Unix(r.Int64N(1<<31), r.Int64N(1e9)))
	case 7:
		p.sparse(name, r)
	default:
		content := make([]byte, []int{0, 1, 100, 5000, chunkSize, chunkSize + 1, 2*chunkSize + 77}[min(r.IntN(20), 6)*r.IntN(2)])
		for i := range content {
			content[i] = byte(i * int(r.Uint32()%5))
		}
		_ = os.WriteFile(name, content, 0o640)
	}
}

func (p *testPlace) patch(name string, r *rand.Rand) {
	f, err := os.OpenFile(name, os.O_WRONLY, 0)
	if err != nil {
		return
	}
	_, err = f.WriteAt([]byte{byte(r.Uint32())}, r.Int64N(3*chunkSize))
	p.must(errors.Join(err, f.Close()))
}

func (p *testPlace) sparse(name string, r *rand.Rand) {
	f, err := os.OpenFile(name, os.O_CREATE|os.O_WRONLY|os.O_EXCL, 0o600)
	if err != nil {
		return
	}
	p.must(f.Truncate(4*chunkSize + 5))
	_, err = f.WriteAt(bytes.Repeat([]byte("x"), 3*block), r.Int64N(4*chunkSize/block)*block)
	p.must(errors.Join(err, f.Sync(), f.Close()))
}

// noise is content that does not compress.
func noise(r *rand.Rand, n int) string {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(r.Uint32())
	}
	return string(b)
}

// chunkList is the list of a large file's chunks, as the store has it.
func chunkList(content string) string {
	var list []byte
	for b := []byte(content); len(b) > 0; b = b[min(chunkSize, len(b)):] {
		h := sha256.Sum256(b[:min(chunkSize, len(b))])
		list = append(list, h[:]...)
	}
	return string(list)
}

// leaf is the list of files that a snapshot of the workspace would have, when it is a
// short one.
func (p *testPlace) leaf() string {
	p.t.Helper()
	now, err := p.store.look(p.t.Context(), p.tree, justHash)
	p.must(err)
	b, previous := []byte{leafLevel}, ""
	for _, e := range now.entries {
		b, previous = appendEntry(b, e, previous), e.Path
	}
	return string(b)
}

// age gives a file a time that is not of now: a restored one is known by it at once.
func (p *testPlace) age(name string) {
	p.t.Helper()
	p.must(os.Chtimes(p.path(name), time.Time{}, time.Unix(1_000_000, 0)))
}
