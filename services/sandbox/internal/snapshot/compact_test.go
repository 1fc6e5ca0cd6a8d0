package snapshot

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fairlead/fairlead/services/internal/kit/objectstore"
)

// TestWhateverIsDeletedTheRestIsRestoredExactly makes, deletes, restores, copies and
// forks snapshots at random, of files among which are some that are objects of the
// store. With these seeds it loses some of them as soon as an object counts as followed
// because it is live, or the index is believed without a look at the chunks.
func TestWhateverIsDeletedTheRestIsRestoredExactly(t *testing.T) {
	t.Parallel()
	for _, seed := range []uint64{1, 16, 30} {
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			t.Parallel()
			h := newHistory(t, seed)
			for range 60 {
				h.step()
			}
			h.end()
		})
	}
}

// history is a workspace with the states that its snapshots are of.
type history struct {
	*testPlace
	r      *rand.Rand
	blocks []string // of which large files are made
	remote objectstore.Store
	ids    []string
	made   int
	states map[string]map[string]string
}

func newHistory(t *testing.T, seed uint64) *history {
	t.Helper()
	r := rand.New(rand.NewPCG(seed, 11))
	return &history{
		testPlace: newPlace(t), r: r, remote: objects(t), states: map[string]map[string]string{},
		blocks: []string{noise(r, chunkSize), noise(r, chunkSize), string(make([]byte, chunkSize))},
	}
}

// step does one thing, and looks whether all that the snapshots lead to is there.
func (h *history) step() {
	h.t.Helper()
	h.reopen()
	switch n := h.r.IntN(10); {
	case n < 5:
		for range 1 + h.r.IntN(2) {
			h.alter()
		}
		if n > 0 {
			h.snapshot()
		}
	case n == 5:
		h.must(h.store.Prepare(h.t.Context(), h.tree))
	case len(h.ids) > 0:
		h.use(h.ids[h.r.IntN(len(h.ids))])
	}
	h.whole(h.store, h.ids)
}

// alter makes, changes or removes a file: one of two large ones, or a small one, which
// can be an object that the store has, or will have.
func (h *history) alter() {
	h.t.Helper()
	large, small := fmt.Sprintf("large %d", h.r.IntN(2)), []string{"before", "zero"}[h.r.IntN(2)]
	was, err := os.ReadFile(h.path(large))
	if err != nil {
		was = []byte(h.blocks[h.r.IntN(2)] + h.blocks[h.r.IntN(3)])
	}
	name, content := small, noise(h.r, h.r.IntN(50_000))
	switch h.r.IntN(6) {
	case 0:
		h.must(os.RemoveAll(h.path([]string{large, small}[h.r.IntN(2)])))
		return
	case 1, 2:
		name, content = large, string(was[:2*chunkSize])+noise(h.r, 5)[:5*h.r.IntN(2)]
	case 3:
		content = chunkList(string(was))
	case 4:
		if len(h.ids) > 0 {
			content = h.list(h.ids[h.r.IntN(len(h.ids))])
		}
	}
	h.write(name, content)
	h.age(name)
}

// list is a snapshot's list of files.
func (h *history) list(id string) string {
	h.t.Helper()
	r, err := h.store.Get(id)
	h.must(err)
	b, err := h.store.packs.read(r.Root)
	h.must(err)
	return string(b)
}

func (h *history) snapshot() {
	h.t.Helper()
	id := fmt.Sprintf("s%d", h.made)
	h.create(id)
	h.ids, h.states[id], h.made = append(h.ids, id), h.capture(), h.made+1
}

// use does something with a snapshot.
func (h *history) use(id string) {
	h.t.Helper()
	switch h.r.IntN(8) {
	case 0, 1:
		h.back(id, h.states)
	case 2, 3:
		h.drop(id)
	case 4, 5, 6: // only one is left, and the next is of what the index knows
		h.back(id, h.states)
		kept := h.r.IntN(len(h.ids))
		h.drop(slices.Delete(slices.Clone(h.ids), kept, kept+1)...)
		h.snapshot()
	default:
		h.copies(id)
	}
}

func (h *history) drop(ids ...string) {
	h.t.Helper()
	h.must(h.store.Delete(ids...))
	h.ids = slices.DeleteFunc(h.ids, func(id string) bool { return slices.Contains(ids, id) })
}

// copies copies all snapshots, and forks one.
func (h *history) copies(id string) {
	h.t.Helper()
	_, err := h.push(h.remote)
	h.must(err)
	dir := filepath.Join(h.t.TempDir(), "fork")
	h.must(h.store.CopyTo(h.t.Context(), dir, id))
	fork, err := Open(dir)
	h.must(err)
	h.whole(fork, []string{id})
	h.must(fork.Close())
}

// whole looks for every object of snapshots.
func (h *history) whole(in *Store, ids []string) {
	h.t.Helper()
	for _, id := range ids {
		r, err := in.Get(id)
		h.must(err)
		entries, err := in.entries(r.Root)
		h.must(err)
		for _, e := range entries {
			objects, err := in.objects(e)
			h.must(err)
			if i := slices.IndexFunc(objects, func(o Hash) bool { return !in.packs.has(o) }); i >= 0 {
				h.t.Fatalf("of %s in %s an object is missing: %x", e.Path, id, objects[i][:6])
			}
		}
	}
}

// end restores all that is left, here and from a copy.
func (h *history) end() {
	h.t.Helper()
	if len(h.ids) == 0 {
		return
	}
	for _, id := range h.ids {
		h.back(id, h.states)
	}
	_, err := h.push(h.remote)
	h.must(err)
	q := newPlace(h.t)
	h.must(os.RemoveAll(q.where))
	h.must(Pull(h.t.Context(), h.remote, "t/s/1/", q.where, unbounded))
	for _, id := range h.ids {
		q.restore(id)
		if diff := cmp.Diff(h.states[id], q.capture()); diff != "" {
			h.t.Errorf("%s from a copy (-want +got):\n%s", id, diff)
		}
	}
}
