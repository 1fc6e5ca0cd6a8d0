package snapshot

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/fairlead/fairlead/services/internal/kit/prove"
	"github.com/fairlead/fairlead/services/sandbox/internal/plainuser"
)

// TestAnyTreeIsRestoredExactly changes a tree at random, keeps its states, and goes
// back and forth between them.
func TestAnyTreeIsRestoredExactly(t *testing.T) {
	t.Parallel()
	for seed := range uint64(3) {
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			t.Parallel()
			r := rand.New(rand.NewPCG(seed, 7))
			p := newPlace(t)
			states := map[string]map[string]string{}
			var ids []string
			for n := range 6 {
				for range 30 {
					p.change(r)
				}
				id := fmt.Sprintf("s%d", n)
				p.create(id)
				ids, states[id] = append(ids, id), p.capture()
				if n > 0 && r.IntN(2) == 0 {
					p.back(ids[r.IntN(len(ids))], states)
				}
			}
			for range 4 {
				for range r.IntN(20) {
					p.change(r)
				}
				p.back(ids[r.IntN(len(ids))], states)
			}
			kept := ids[4]
			p.must(p.store.Delete(ids[:4]...))
			p.back(kept, states)
			if got := p.restore(kept); got != (Restored{}) {
				t.Errorf("restoring what is there did %+v", got)
			}
		})
	}
}

// own are the rights that the test needs itself.
var own = map[bool]fs.FileMode{true: 0o200, false: 0o700}[os.Getuid() == 0]

func TestOnlyWhatChangedIsReadAndStored(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	r := rand.NewChaCha8([32]byte{1})
	for i := range 2000 {
		content := make([]byte, 2000)
		_, _ = r.Read(content)
		p.write(fmt.Sprintf("d%d/f%d", i%40, i), string(content))
	}
	large := make([]byte, 16*chunkSize)
	_, _ = r.Read(large)
	p.write("large", string(large))
	first := p.create("one")
	if first.Files != 2001 || first.Directories != 40 || first.Bytes != 2000*2000+16*chunkSize {
		t.Errorf("the first is %+v", first)
	}
	for i := range 20 {
		p.write(fmt.Sprintf("d%d/f%d", i, i), fmt.Sprintf("changed %d", i))
	}
	p.patch(filepath.Join(p.dir, "large"), rand.New(r))
	second := p.create("two")
	if second.Added > chunkSize+100<<10 {
		t.Errorf("20 small changes and a patched chunk took %d bytes", second.Added)
	}
	if third := p.create("three"); third.Added != 0 || third.Root != second.Root {
		t.Errorf("without a change the store grew by %d bytes", third.Added)
	}
	if got := p.restore("one"); got.Written != 21 || got.Removed != 0 {
		t.Errorf("the restore did %+v", got)
	}
}

func TestARestoreReadsOnlyWhatMayBeAsItIsWanted(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	for _, name := range []string{"grown", "same", "changed", "folder"} {
		p.write(name, "before")
	}
	first := p.create("one")
	p.write("grown", "much longer than before")
	p.write("changed", "behind")
	p.write("new/file", "not wanted")
	p.must(os.Remove(p.path("folder")))
	p.write("folder/file", "another kind")
	_, have, err := p.store.compare(t.Context(), p.tree, first.Root)
	p.must(err)
	read := map[string]bool{}
	for _, e := range have.entries {
		if e.Kind == Regular {
			read[e.Path] = e.Hash != Hash{}
		}
	}
	want := map[string]bool{"same": true, "changed": true, "grown": false, "new/file": false, "folder/file": false}
	if diff := cmp.Diff(want, read); diff != "" {
		t.Errorf("read (-want +got):\n%s", diff)
	}
	if got := p.restore("one"); got.Written != 3 || got.Removed != 4 {
		t.Errorf("the restore did %+v", got)
	}
}

func TestAFileThatOnlyItsChangeTimeBetraysIsRead(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	p.write("f", "before")
	st, err := os.Stat(p.path("f"))
	p.must(err)
	first := p.create("one")
	p.write("f", "behind") // as long, and with the same time of modification
	p.must(os.Chtimes(p.path("f"), time.Time{}, st.ModTime()))
	if second := p.create("two"); second.Root == first.Root {
		t.Error("the change was not seen")
	}
}

func TestWhatIsNoFileIsLeftOutAndLeftAlone(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	p.write("d/f", "x")
	p.must(unix.Mkfifo(p.path("d/fifo"), 0o600))
	l, err := net.Listen("unix", p.path("sock"))
	p.must(err)
	defer func() { _ = l.Close() }()
	got := p.create("one")
	want := []Skipped{{"d/fifo", "it is a FIFO"}, {"sock", "it is a socket"}}
	if diff := cmp.Diff(want, got.Skipped); diff != "" || got.SkippedCount != 2 {
		t.Errorf("left out (-want +got):\n%s", diff)
	}
	p.must(unix.Mkfifo(p.path("new/fifo"), 0o600))
	p.restore("one")
	if _, err := os.Lstat(p.path("d/fifo")); err != nil {
		t.Errorf("the FIFO in a directory that stays: %v", err)
	}
	if _, err := os.Lstat(filepath.Join(p.dir, "new")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a directory that is not in the snapshot, with a FIFO in it: %v", err)
	}
	// In the place of a wanted file it has to go.
	p.must(os.Remove(p.path("d/f")))
	p.must(unix.Mkfifo(p.path("d/f"), 0o600))
	p.restore("one")
	if b, err := os.ReadFile(p.path("d/f")); string(b) != "x" || err != nil {
		t.Errorf("the file is %q, %v", b, err)
	}
}

func TestALinkInTheWayLeadsNowhere(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	p.write("d/f", "inside")
	p.create("one")
	outside := t.TempDir()
	p.must(os.WriteFile(filepath.Join(outside, "f"), []byte("outside"), 0o600))
	p.must(os.RemoveAll(p.path("d")))
	p.must(os.Symlink(outside, p.path("d")))
	second := p.create("two")
	if second.Files != 0 || second.Links != 1 {
		t.Errorf("the link was followed: %+v", second)
	}
	p.restore("one")
	if b, _ := os.ReadFile(filepath.Join(outside, "f")); string(b) != "outside" {
		t.Errorf("outside there is %q", b)
	}
	if b, _ := os.ReadFile(p.path("d/f")); string(b) != "inside" {
		t.Errorf("inside there is %q", b)
	}
}

func TestAnInterruptedSnapshotIsNotListedAndIsMadeAgain(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	p.write("f", strings.Repeat("x", 5000))
	p.create("one")
	p.write("g", "y")
	// What a crash can leave: a pack and a record under way, an index cut short.
	p.must(os.WriteFile(filepath.Join(p.where, packsDir, "new-1"), []byte("torn"), 0o600))
	p.must(os.WriteFile(filepath.Join(p.where, recordsDir, "000000000002.two.json.new"), []byte("{"), 0o600))
	p.must(os.Truncate(filepath.Join(p.where, indexFile), 20))
	p.reopen()
	if all, err := p.store.List(10, 0); err != nil || len(all) != 1 || all[0].ID != "one" {
		t.Errorf("listed: %+v, %v", all, err)
	}
	p.create("two")
	want := p.capture()
	p.restore("one")
	p.restore("two")
	if diff := cmp.Diff(want, p.capture()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if left, _ := filepath.Glob(filepath.Join(p.where, "*", "*new*")); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}

func TestTheSameIDIsTheSameSnapshot(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	p.write("f", "x")
	first := p.create("one")
	p.write("f", "y")
	if again := p.create("one"); again.Root != first.Root {
		t.Error("it was made anew")
	}
}

func TestDamageIsFound(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	p.write("f", strings.Repeat("x", 5000))
	p.create("one")
	p.must(os.Remove(p.path("f")))
	packs, _ := filepath.Glob(filepath.Join(p.where, packsDir, "*"+packSuffix))
	b, err := os.ReadFile(packs[0])
	p.must(err)
	b[len(packMagic)] ^= 1
	p.must(os.WriteFile(packs[0], b, 0o600))
	p.reopen()
	if _, err := p.store.Restore(t.Context(), p.tree, "one"); !errors.Is(err, ErrDamaged) {
		t.Errorf("got %v", err)
	}
	if len(p.capture()) != 0 {
		t.Error("something was restored")
	}
}

func TestDeletingFreesWhatOnlyTheDeletedHeld(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	r := rand.New(rand.NewPCG(3, 3))
	random := func() string {
		b := make([]byte, 3*chunkSize)
		for i := range b {
			b[i] = byte(r.Uint32())
		}
		return string(b)
	}
	p.write("stays", random())
	p.create("one")
	p.write("goes", random())
	p.create("two")
	full := p.store.Size()
	p.must(os.Remove(p.path("goes")))
	p.create("three")
	p.reopen()
	p.must(p.store.Delete("two", "never"))
	if got := p.store.Size(); got > full-3*chunkSize+10_000 {
		t.Errorf("the store holds %d bytes, before %d", got, full)
	}
	p.restore("one")
	want := p.capture()
	p.must(os.Remove(p.path("stays")))
	p.restore("three")
	if diff := cmp.Diff(want, p.capture()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// All that is in the store's lists is known to a command, so it can write a file that
// is one, byte for byte.
func TestAFileThatIsAListTakesNothingAway(t *testing.T) {
	t.Parallel()
	for name, write := range map[string]func(p *testPlace, r *rand.Rand){
		"of chunks": func(p *testPlace, r *rand.Rand) {
			large := noise(r, 2*chunkSize+5)
			p.write("large", large)
			p.write("a file before it", chunkList(large))
			p.create("one")
		},
		"of files": func(p *testPlace, r *rand.Rand) {
			p.write("large", noise(r, chunkSize))
			p.create("one")
			leaf := p.leaf()
			p.must(os.Remove(p.path("large")))
			p.write("of the snapshot before", leaf)
			p.create("two")
		},
		"of lists": func(p *testPlace, r *rand.Rand) {
			p.write("large", noise(r, chunkSize))
			for i := range 2 * leafMost {
				p.write(fmt.Sprintf("f%d", i), "")
			}
			root, err := p.store.packs.read(p.create("one").Root)
			p.must(err)
			p.must(os.Remove(p.path("large")))
			p.write("of the snapshot before", string(root))
			p.create("two")
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newPlace(t)
			write(p, rand.New(rand.NewPCG(1, 1)))
			p.restore("one")
			want := p.capture()
			p.create("deleted")
			p.must(p.store.Delete("deleted"))
			p.must(os.RemoveAll(p.path("large")))
			p.restore("one")
			if diff := cmp.Diff(want, p.capture()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// What is of no use goes pack by pack, so that a large file's list can outlive its
// chunks.
func TestAFileWhoseChunksAreGoneIsReadAgain(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	r := rand.New(rand.NewPCG(1, 1))
	log := noise(r, 2*chunkSize)
	p.write("log", log)
	p.create("chunks")
	log += noise(r, 5) // two of its chunks are in the first pack, its list in the second
	p.write("log", log)
	p.age("log")
	p.write("stays", noise(r, 100_000))
	p.create("list")
	want := p.capture()
	p.must(os.Remove(p.path("log")))
	p.create("neither")
	p.restore("list") // from now on the index knows the file
	p.must(p.store.Delete("chunks", "list"))
	if h := Hash(sha256.Sum256([]byte(chunkList(log)))); !p.store.packs.has(h) {
		t.Fatal("the list has gone, too")
	}
	p.create("after")
	p.must(os.Remove(p.path("log")))
	p.restore("after")
	if diff := cmp.Diff(want, p.capture()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestManySmallPacksBecomeOne(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	for i := range manySmalls + 2 {
		p.write(fmt.Sprintf("f%d", i), strconv.Itoa(i))
		p.create(fmt.Sprintf("s%d", i))
	}
	want := p.capture()
	p.reopen()
	for range 2 {
		p.must(p.store.Compact())
	}
	if packs, _ := filepath.Glob(filepath.Join(p.where, packsDir, "*")); len(packs) != 1 {
		t.Errorf("there are %d packs", len(packs))
	}
	p.restore("s1")
	if len(p.capture()) != 2 {
		t.Errorf("s1 is %v", p.capture())
	}
	p.restore(fmt.Sprintf("s%d", manySmalls+1))
	if diff := cmp.Diff(want, p.capture()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestWhatItsOwnerHasClosedIsKeptAndStaysClosed(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	modes := func() (got []fs.FileMode) {
		for _, name := range []string{"d", "d/e", "d/e/f", "d/g"} {
			st, err := os.Lstat(filepath.Join(p.dir, name))
			p.must(err)
			got = append(got, st.Mode().Perm())
			if st.IsDir() {
				p.must(os.Chmod(filepath.Join(p.dir, name), 0o700))
				defer func() { p.must(os.Chmod(filepath.Join(p.dir, name), st.Mode())) }()
			}
		}
		return got
	}
	p.write("d/e/f", "closed")
	p.write("d/g", "open")
	for _, name := range []string{"d/e/f", "d/e", "d"} {
		p.must(os.Chmod(p.path(name), 0))
	}
	want := []fs.FileMode{0, 0, 0, 0o644}
	p.create("one")
	if diff := cmp.Diff(want, modes()); diff != "" {
		t.Errorf("after the snapshot (-want +got):\n%s", diff)
	}
	for _, name := range []string{"d", "d/e", "d/e/f"} {
		p.must(os.Chmod(filepath.Join(p.dir, name), 0o700))
	}
	p.write("d/e/f", "changed")
	p.write("d/e/more", "more")
	p.must(os.Chmod(p.path("d/e/more"), 0))
	p.must(os.Chmod(p.path("d/e"), 0))
	p.create("two")
	p.restore("one")
	if diff := cmp.Diff(want, modes()); diff != "" {
		t.Errorf("after the restore (-want +got):\n%s", diff)
	}
	for _, name := range []string{"d", "d/e", "d/e/f"} {
		p.must(os.Chmod(filepath.Join(p.dir, name), 0o700))
	}
	if b, err := os.ReadFile(p.path("d/e/f")); string(b) != "closed" || err != nil {
		t.Errorf("the file is %q, %v", b, err)
	}
	if _, err := os.Lstat(p.path("d/e/more")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a file that is not in the snapshot: %v", err)
	}
}

// TestAsAPlainUser runs the other tests as a user to whom files can be closed.
func TestAsAPlainUser(t *testing.T) {
	prove.Only(t, "it runs every test of the package again")
	plainuser.Tests(t, plainuser.Folder(t), nil, "-test.timeout=10m")
}
