package snapshot

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fairlead/fairlead/services/internal/kit/objectstore"
)

func objects(t *testing.T) objectstore.Store {
	t.Helper()
	s, err := objectstore.Open("file://"+t.TempDir(), objectstore.Credentials{})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// unbounded is what no test comes up to.
var unbounded = Bounds{Snapshots: 1000, Bytes: 1 << 40}

func (p *testPlace) push(to objectstore.Store) (Pushed, error) {
	return Push(p.t.Context(), p.where, func() func() { return func() {} }, to, "t/s/1/")
}

func TestAStoreMovesThroughAnObjectStore(t *testing.T) {
	t.Parallel()
	p, remote := newPlace(t), objects(t)
	push := func() Pushed {
		t.Helper()
		p.reopen()
		did, err := p.push(remote)
		p.must(err)
		return did
	}
	p.write("d/f", strings.Repeat("one", 5000))
	p.create("one")
	if did := push(); did.Packs != 1 || did.Snapshots != 1 {
		t.Errorf("the first push: %+v", did)
	}
	p.write("d/g", "two")
	p.create("two")
	want := p.capture()
	if did := push(); did.Packs != 1 || did.Bytes > 2000 || did.Snapshots != 2 {
		t.Errorf("the second push: %+v", did)
	}
	if did := push(); did.Packs != 0 {
		t.Errorf("a push of nothing: %+v", did)
	}
	p.must(p.store.Delete("one"))
	push()
	q := newPlace(t)
	p.must(os.RemoveAll(p.where))
	p.must(Pull(t.Context(), remote, "t/s/1/", q.where, unbounded))
	q.restore("two")
	if diff := cmp.Diff(want, q.capture()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if err := Pull(t.Context(), remote, "t/other/1/", filepath.Join(t.TempDir(), "x"), unbounded); !errors.Is(err, ErrNotFound) {
		t.Errorf("nothing to pull: %v", err)
	}
}

// A file that is the list of another's chunks does not make a copy without the chunks
// whole.
func TestACopyThatLacksChunksIsDamaged(t *testing.T) {
	t.Parallel()
	p, remote := newPlace(t), objects(t)
	large := noise(rand.New(rand.NewPCG(1, 1)), 2*chunkSize)
	p.write("a file before it", chunkList(large))
	p.create("one")
	p.write("large", large)
	p.reopen()
	p.must(p.store.Prepare(p.t.Context(), p.tree)) // the list is there: the pack has nothing but chunks
	packs := p.store.packs.all
	chunks := packs[len(packs)-1]
	p.create("two")
	_, err := p.push(remote)
	p.must(err)
	p.must(Pull(t.Context(), remote, "t/s/1/", filepath.Join(t.TempDir(), "whole"), unbounded))
	p.must(remote.Delete(t.Context(), "t/s/1/"+packsDir+"/"+filepath.Base(chunks.path)))
	if err := Pull(t.Context(), remote, "t/s/1/", filepath.Join(t.TempDir(), "lacking"), unbounded); !errors.Is(err, ErrDamaged) {
		t.Errorf("got %v", err)
	}
}

// breaking is an object store that fails after some writes.
type breaking struct {
	objectstore.Store
	left int
}

var errBroken = errors.New("broken")

func (b *breaking) Put(ctx context.Context, key string, from io.Reader, size int64) error {
	if b.left--; b.left < 0 {
		return errBroken
	}
	return b.Store.Put(ctx, key, from, size)
}

func (b *breaking) Delete(ctx context.Context, key string) error {
	if b.left--; b.left < 0 {
		return errBroken
	}
	return b.Store.Delete(ctx, key)
}

// TestAPushThatBreaksOffLeavesWhatWasWhole breaks a push off at every point: what
// can be pulled then is the state before or the one after.
func TestAPushThatBreaksOffLeavesWhatWasWhole(t *testing.T) {
	t.Parallel()
	for left := 0; ; left++ {
		p, remote := newPlace(t), objects(t)
		p.write("f", strings.Repeat("one", 5000))
		p.create("one")
		_, err := p.push(remote)
		p.must(err)
		p.write("f", strings.Repeat("two", 6000))
		p.create("two")
		want := p.capture()
		p.must(p.store.Delete("one"))
		_, broke := p.push(&breaking{remote, left})
		q := newPlace(t)
		if err := Pull(t.Context(), remote, "t/s/1/", q.where, unbounded); err != nil {
			t.Fatalf("after %d writes: %v", left, err)
		}
		q.reopen()
		if all, err := q.store.List(1, 0); err != nil || len(all) != 1 {
			t.Fatalf("after %d writes: %v, %v", left, all, err)
		} else if q.restore(all[0].ID); all[0].ID == "two" && !cmp.Equal(want, q.capture()) {
			t.Errorf("after %d writes the last snapshot is another", left)
		}
		if broke == nil {
			return
		}
		if !errors.Is(broke, errBroken) || left > 20 {
			t.Fatalf("after %d writes: %v", left, broke)
		}
	}
}

// making is an object store during whose first write another snapshot is made.
type making struct {
	objectstore.Store
	once sync.Once
	make func()
}

func (m *making) Put(ctx context.Context, key string, from io.Reader, size int64) error {
	m.once.Do(m.make)
	return m.Store.Put(ctx, key, from, size)
}

// A workspace goes on while its snapshots are copied: what is made meanwhile is not
// named elsewhere before all that it needs is there.
func TestASnapshotThatIsMadeDuringAPushIsNotPushedInPart(t *testing.T) {
	t.Parallel()
	p, remote := newPlace(t), objects(t)
	p.write("f", strings.Repeat("one", 5000))
	p.create("one")
	want := p.capture()
	_, err := p.push(&making{Store: remote, make: func() {
		p.write("g", strings.Repeat("two", 5000))
		p.create("two")
	}})
	p.must(err)
	q := newPlace(t)
	p.must(Pull(t.Context(), remote, "t/s/1/", q.where, unbounded))
	q.restore("one")
	if diff := cmp.Diff(want, q.capture()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// What an object store has takes no more of the disk than a session may.
func TestAPullTakesNoMoreThanMayBe(t *testing.T) {
	t.Parallel()
	p, remote := newPlace(t), objects(t)
	r := rand.New(rand.NewPCG(1, 1))
	for _, id := range []string{"one", "two"} {
		p.write("f", noise(r, 100_000))
		p.create(id)
	}
	_, err := p.push(remote)
	p.must(err)
	for name, x := range map[string]struct {
		most Bounds
		from objectstore.Store
		want error
	}{
		"as much as there is": {Bounds{2, 300_000}, remote, nil},
		"fewer snapshots":     {Bounds{1, 300_000}, remote, ErrTooLarge},
		"less":                {Bounds{2, 100_000}, remote, ErrTooLarge},
		"more than is listed": {Bounds{2, 300_000}, growing{remote}, ErrTooLarge},
	} {
		t.Run(name, func(t *testing.T) {
			if err := Pull(t.Context(), x.from, "t/s/1/", filepath.Join(t.TempDir(), "x"), x.most); !errors.Is(err, x.want) {
				t.Errorf("got %v, want %v", err, x.want)
			}
		})
	}
	for i := range 50 { // files of no size take room as well
		p.must(remote.Put(t.Context(), fmt.Sprintf("t/s/1/%s/%d%s", packsDir, i, packSuffix), strings.NewReader("x"), 1))
	}
	if err := Pull(t.Context(), remote, "t/s/1/", filepath.Join(t.TempDir(), "x"), Bounds{2, 300_000}); !errors.Is(err, ErrTooLarge) {
		t.Errorf("many small objects: %v", err)
	}
}

// growing is an object store whose objects are larger than it lists.
type growing struct{ objectstore.Store }

func (g growing) Get(ctx context.Context, key string) (io.ReadCloser, error) {
	r, err := g.Store.Get(ctx, key)
	if err != nil {
		return nil, err
	}
	return struct {
		io.Reader
		io.Closer
	}{io.MultiReader(r, strings.NewReader("more")), r}, nil
}
