package snapshot

import (
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// cut takes the last byte from a pack.
func (p *testPlace) cut(k *pack) {
	p.t.Helper()
	p.must(os.Truncate(k.path, k.size-1))
}

// only is the one pack that there is.
func (p *testPlace) only() *pack {
	p.t.Helper()
	p.reopen()
	if len(p.store.packs.all) != 1 {
		p.t.Fatalf("there are %d packs", len(p.store.packs.all))
	}
	return p.store.packs.all[0]
}

// A pack that cannot be read takes the snapshots away that need it, and no other.
func TestADamagedPackHarmsOnlyTheSnapshotsThatNeedIt(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	r := rand.New(rand.NewPCG(1, 1))
	p.write("a", noise(r, 5000))
	p.create("one")
	first := p.only()
	p.must(os.Remove(p.path("a")))
	p.write("b", noise(r, 5000))
	p.create("two")
	want := p.capture()
	p.cut(first)
	p.reopen()
	if _, err := p.store.Restore(t.Context(), p.tree, "one"); !errors.Is(err, ErrDamaged) {
		t.Errorf("a snapshot that needs it: %v", err)
	}
	p.write("b", "other")
	p.restore("two")
	if got := p.capture()["b"]; got != want["b"] {
		t.Errorf("another: %s, want %s", got, want["b"])
	}
	if p.store.Size() < first.size {
		t.Error("it takes no room")
	}
	if _, err := p.push(objects(t)); !errors.Is(err, ErrDamaged) {
		t.Errorf("it is copied: %v", err)
	}
	if err := p.store.Compact(); !errors.Is(err, ErrDamaged) {
		t.Errorf("it is compacted: %v", err)
	}
	p.must(p.store.Delete("one")) // it is of no use any more
	if _, err := os.Stat(first.path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("it is still there: %v", err)
	}
	if _, err := p.push(objects(t)); err != nil {
		t.Errorf("without it: %v", err)
	}
}

// What a damaged pack held is stored again as soon as a workspace has it.
func TestASnapshotStoresAgainWhatIsDamaged(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	p.write("f", noise(rand.New(rand.NewPCG(2, 2)), 5000))
	p.create("one")
	want := p.capture()
	damaged := p.only()
	p.cut(damaged)
	p.write("g", "another file")
	p.create("two") // in a pack of another name
	p.must(os.Remove(p.path("g")))
	p.create("three") // all of it is there again
	if _, err := os.Stat(damaged.path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the damaged pack is still there: %v", err)
	}
	for _, id := range []string{"one", "two", "three"} {
		p.write("f", "other")
		p.must(os.Chtimes(filepath.Join(p.dir, "f"), time.Time{}, time.Unix(1, 0)))
		p.restore(id)
		if got := p.capture()["f"]; got != want["f"] {
			t.Errorf("%s: %s, want %s", id, got, want["f"])
		}
	}
	_, err := p.push(objects(t))
	p.must(err)
}

// A copy that is shorter than what it is a copy of is made anew.
func TestAPushMendsWhatIsDamagedElsewhere(t *testing.T) {
	t.Parallel()
	p, remote := newPlace(t), objects(t)
	p.write("f", noise(rand.New(rand.NewPCG(3, 3)), 5000))
	p.create("one")
	_, err := p.push(remote)
	p.must(err)
	key := "t/s/1/" + packsDir + "/" + filepath.Base(p.only().path)
	p.must(remote.Put(t.Context(), key, strings.NewReader("short"), 5))
	if err := Pull(t.Context(), remote, "t/s/1/", filepath.Join(t.TempDir(), "damaged"), unbounded); !errors.Is(err, ErrDamaged) {
		t.Errorf("a pull of it: %v", err)
	}
	if did, err := p.push(remote); err != nil || did.Packs != 1 {
		t.Errorf("another push: %+v, %v", did, err)
	}
	p.must(Pull(t.Context(), remote, "t/s/1/", filepath.Join(t.TempDir(), "mended"), unbounded))
}

// A damaged pack that nothing needs does not come along.
func TestAPullLeavesOutWhatIsDamagedAndOfNoUse(t *testing.T) {
	t.Parallel()
	p, remote := newPlace(t), objects(t)
	p.write("f", noise(rand.New(rand.NewPCG(4, 4)), 5000))
	p.create("one")
	_, err := p.push(remote)
	p.must(err)
	p.must(remote.Put(t.Context(), "t/s/1/"+packsDir+"/other"+packSuffix, strings.NewReader("short"), 5))
	q := newPlace(t)
	p.must(Pull(t.Context(), remote, "t/s/1/", q.where, unbounded))
	q.restore("one")
	if _, err := q.push(objects(t)); err != nil {
		t.Errorf("what was pulled cannot be pushed: %v", err)
	}
}
