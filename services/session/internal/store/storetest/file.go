package storetest

import (
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/session/internal/store"
)

var ann = store.Owner{Tenant: "acme", User: "ann"}

func newFile(o store.Owner, id string, size int64) store.NewFile {
	n := store.NewFile{Owner: o, ID: id, UploadTTL: time.Hour, File: &sessionv1.File{Filename: id + ".txt", MediaType: "text/plain"}}
	if size >= 0 {
		n.File.Size = proto.Int64(size)
	}
	return n
}

// uploads is a fixture for files.
type uploads struct{ *fixture }

func (f uploads) file(n store.NewFile) {
	f.Helper()
	_, err := f.CreateFile(f.ctx(), n)
	f.must(err)
}

func part(id string, offset, size int64) store.AppendPart {
	return store.AppendPart{
		Tenant: "acme", ID: id, Hash: []byte("state"), UploadTTL: time.Hour,
		FilePart: store.FilePart{Offset: offset, Size: size, Object: id + "-object"},
	}
}

// filesOf returns the ids of a list.
func (f uploads) filesOf(p store.FilePage) string {
	f.Helper()
	all, err := f.ListFiles(f.ctx(), p)
	f.must(err)
	var ids []string
	for _, x := range all {
		ids = append(ids, strings.TrimPrefix(x.Name, "files/"))
	}
	return strings.Join(ids, " ")
}

func testFiles(t *testing.T, open func(t *testing.T) store.Store) {
	t.Run("a file arrives in parts", func(t *testing.T) { testFileParts(uploads{newFixture(t, open)}) })
	t.Run("files count as long as they are there", func(t *testing.T) { testFileLimits(uploads{newFixture(t, open)}) })
	t.Run("an upload counts with what has arrived and one part", func(t *testing.T) { testOpenUploads(uploads{newFixture(t, open)}) })
	t.Run("files are listed by user", func(t *testing.T) { testListFiles(uploads{newFixture(t, open)}) })
	t.Run("files whose time has come are deleted", func(t *testing.T) { testExpireFiles(uploads{newFixture(t, open)}) })
}

func testFileParts(f uploads) {
	n := newFile(ann, "one", 10)
	n.Promised, n.Request = []byte("sum"), store.Request{Method: "CreateFile", ID: "r", Digest: []byte{1}}
	f.file(n)
	n.ID = "another"
	if a, err := f.CreateFile(f.ctx(), n); err != nil || !a.Replayed || a.Value != "one" {
		f.Errorf("again: %v, %v", a, err)
	}
	f.must(f.AppendPart(f.ctx(), part("one", 0, 4)))
	for err, p := range map[error]store.AppendPart{store.ErrOffset: part("one", 0, 4), store.ErrNotFound: part("none", 0, 4)} {
		if got := f.AppendPart(f.ctx(), p); !errors.Is(got, err) {
			f.Errorf("%v, want %v", got, err)
		}
	}
	f.must(f.AppendPart(f.ctx(), part("one", 4, 6)))
	if err := f.FinishFile(f.ctx(), "acme", "one", 4, []byte("sum")); !errors.Is(err, store.ErrOffset) {
		f.Error(err)
	}
	got, err := f.GetFile(f.ctx(), "acme", "one")
	f.must(err)
	if got.Owner != ann || string(got.Promised) != "sum" || string(got.Hash) != "state" || got.File.Received != 10 || got.File.State != sessionv1.FileState_FILE_STATE_UPLOADING || got.File.ExpireTime == nil {
		f.Errorf("it is %v", got)
	}
	f.must(f.FinishFile(f.ctx(), "acme", "one", 10, []byte{0xab}))
	got, err = f.GetFile(f.ctx(), "acme", "one")
	f.must(err)
	if got.File.State != sessionv1.FileState_FILE_STATE_READY || got.File.Sha256 != "ab" || got.File.GetSize() != 10 || got.File.ExpireTime != nil {
		f.Errorf("it is %v", got.File)
	}
	for _, err := range []error{f.FinishFile(f.ctx(), "acme", "one", 10, nil), f.AppendPart(f.ctx(), part("one", 10, 1))} {
		if !errors.Is(err, store.ErrReady) {
			f.Errorf("of a file that is ready: %v", err)
		}
	}
	parts, err := f.FileParts(f.ctx(), "acme", "one", 4)
	f.must(err)
	if len(parts) != 1 || parts[0] != (store.FilePart{Offset: 4, Size: 6, Object: "one-object"}) {
		f.Errorf("parts %v", parts)
	}
	_, err = f.GetFile(f.ctx(), "other", "one")
	if !errors.Is(err, store.ErrNotFound) {
		f.Errorf("of another tenant: %v", err)
	}
	_, err = f.DeleteFile(f.ctx(), "acme", "one", store.Request{})
	f.must(err)
	if _, err := f.DeleteFile(f.ctx(), "acme", "one", store.Request{}); !errors.Is(err, store.ErrNotFound) {
		f.Errorf("deleted twice: %v", err)
	}
	jobs, err := f.ClaimJobs(f.ctx(), store.JobClaim{Kinds: []store.JobKind{store.JobFile}, Limit: 9, TTL: time.Minute})
	f.must(err)
	if len(jobs) != 1 || jobs[0].ID != "one" || jobs[0].Tenant != "acme" {
		f.Errorf("jobs %v", jobs)
	}
}

func testFileLimits(f uploads) {
	limits := store.FileLimits{User: 100, Tenant: 150}
	limited := func(user, id string, size int64) store.NewFile {
		n := newFile(store.Owner{Tenant: "acme", User: user}, id, size)
		n.Limits = limits
		return n
	}
	var wg sync.WaitGroup
	var mu sync.Mutex
	made := 0
	for i := range 20 {
		wg.Go(func() {
			_, err := f.CreateFile(f.ctx(), limited("ann", string(rune('a'+i)), 10))
			mu.Lock()
			defer mu.Unlock()
			if err == nil {
				made++
			} else if !errors.Is(err, store.ErrFull) {
				f.Error(err)
			}
		})
	}
	wg.Wait()
	if made != 10 {
		f.Errorf("%d files were made, want 10", made)
	}
	if _, err := f.CreateFile(f.ctx(), limited("bob", "big", 51)); !errors.Is(err, store.ErrFull) {
		f.Errorf("beyond the tenant's: %v", err)
	}
	f.file(limited("bob", "open", -1))
	p := part("open", 0, 50)
	p.Limits = limits
	f.must(f.AppendPart(f.ctx(), p))
	p = part("open", 50, 1)
	p.Limits = limits
	if err := f.AppendPart(f.ctx(), p); !errors.Is(err, store.ErrFull) {
		f.Errorf("beyond the tenant's, in parts: %v", err)
	}
	_, err := f.DeleteFile(f.ctx(), "acme", "open", store.Request{})
	f.must(err)
	f.file(limited("bob", "again", 50))
	f.file(newFile(ann, "unlimited", 1<<40))
}

func testOpenUploads(f uploads) {
	const size = 10 * store.UploadPart
	limits := store.FileLimits{User: size + store.UploadPart, Tenant: 2 * size, Uploads: 4}
	create := func(id string, size int64) error {
		n := newFile(ann, id, size)
		n.Limits = limits
		_, err := f.CreateFile(f.ctx(), n)
		return err
	}
	add := func(id string, offset, size int64) error {
		p := part(id, offset, size)
		p.Limits = limits
		return f.AppendPart(f.ctx(), p)
	}
	f.must(create("a", size))
	f.must(create("b", size)) // two such files would not fit; two announcements do
	if err := create("larger", size+1); !errors.Is(err, store.ErrFull) {
		f.Errorf("a file that cannot fit: %v", err)
	}
	for i := range int64(9) {
		f.must(add("a", i*store.UploadPart, store.UploadPart))
	}
	if err := add("b", 0, 1); !errors.Is(err, store.ErrFull) { // all is reserved now
		f.Errorf("a byte beyond the limit: %v", err)
	}
	f.must(add("a", 9*store.UploadPart, store.UploadPart)) // its last part was reserved
	f.must(f.FinishFile(f.ctx(), "acme", "a", size, []byte{1}))
	f.must(f.FinishFile(f.ctx(), "acme", "b", 0, []byte{1})) // it returns the part that it had reserved
	f.must(create("c", store.UploadPart-1))
	for _, id := range []string{"d", "e", "f"} {
		f.must(create(id, -1))
	}
	if err := create("g", -1); !errors.Is(err, store.ErrUploads) {
		f.Errorf("one upload too many: %v", err)
	}
	f.must(f.FinishFile(f.ctx(), "acme", "d", 0, []byte{1}))
	f.must(create("g", -1))
	for _, id := range []string{"a", "b", "c", "d", "e", "f", "g"} {
		_, err := f.DeleteFile(f.ctx(), "acme", id, store.Request{})
		f.must(err)
	}
	f.must(create("all", size+store.UploadPart)) // nothing is counted any more
}

func testListFiles(f uploads) {
	for _, id := range []string{"a", "b", "c"} {
		f.file(newFile(ann, id, 1))
	}
	f.file(newFile(store.Owner{Tenant: "acme", User: "bob"}, "d", 1))
	f.file(newFile(store.Owner{Tenant: "other", User: "ann"}, "e", 1))
	if got := f.filesOf(store.FilePage{Tenant: "acme"}); got != "d c b a" {
		f.Errorf("all: %s", got)
	}
	first, err := f.ListFiles(f.ctx(), store.FilePage{Tenant: "acme", User: "ann", Limit: 1})
	f.must(err)
	if got := f.filesOf(store.FilePage{Tenant: "acme", User: "ann", AfterTime: first[0].CreateTime.AsTime(), AfterID: "c", Limit: 5}); got != "b a" {
		f.Errorf("after the first: %s", got)
	}
}

func testExpireFiles(f uploads) {
	stale := newFile(ann, "stale", 5)
	stale.UploadTTL = 0
	f.file(stale)
	f.file(newFile(ann, "fresh", 5))
	kept := newFile(ann, "kept", 0)
	f.file(kept)
	f.must(f.FinishFile(f.ctx(), "acme", "kept", 0, []byte{1}))
	if _, err := f.GetFile(f.ctx(), "acme", "stale"); !errors.Is(err, store.ErrNotFound) {
		f.Errorf("it is found: %v", err)
	}
	n, err := f.ExpireFiles(f.ctx(), 10)
	f.must(err)
	if got := f.filesOf(store.FilePage{Tenant: "acme"}); n != 1 || got != "kept fresh" {
		f.Errorf("%d were deleted, left are %s", n, got)
	}
}
