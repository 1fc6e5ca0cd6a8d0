package snapshot

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fairlead/fairlead/services/sandbox/internal/objectstore"
)

func objects(t *testing.T) objectstore.Store {
	t.Helper()
	s, err := objectstore.Open("file://"+t.TempDir(), objectstore.Credentials{})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestAStoreMovesThroughAnObjectStore(t *testing.T) {
	t.Parallel()
	p, remote := newPlace(t), objects(t)
	push := func() Pushed {
		t.Helper()
		p.reopen()
		did, err := p.store.Push(t.Context(), remote, "t/s/1/")
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
	if head, err := Head(t.Context(), remote, "t/s/1/"); err != nil || head.ID != "two" {
		t.Errorf("head: %+v, %v", head, err)
	}
	q := newPlace(t)
	p.must(os.RemoveAll(p.where))
	p.must(Pull(t.Context(), remote, "t/s/1/", q.where))
	q.restore("two")
	if diff := cmp.Diff(want, q.capture()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if err := Pull(t.Context(), remote, "t/other/1/", filepath.Join(t.TempDir(), "x")); !errors.Is(err, ErrNotFound) {
		t.Errorf("nothing to pull: %v", err)
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
		_, err := p.store.Push(t.Context(), remote, "t/s/1/")
		p.must(err)
		p.write("f", strings.Repeat("two", 6000))
		p.create("two")
		want := p.capture()
		p.must(p.store.Delete("one"))
		_, broke := p.store.Push(t.Context(), &breaking{remote, left}, "t/s/1/")
		q := newPlace(t)
		if err := Pull(t.Context(), remote, "t/s/1/", q.where); err != nil {
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
