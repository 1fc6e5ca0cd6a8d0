package snapshot

import (
	"errors"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// Files cost a command nothing in a folder whose name is as long as it may be, and the
// service the whole name of each: there is an end to that.
func TestManyFilesInADeepFolderAreRefused(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	p.write("f", "content")
	p.create("before")
	deep := p.nest(900)
	for i := range 1000 { // 220 MiB of names, beside 100 MiB of the folders'
		fd, err := unix.Openat(deep, strconv.Itoa(i), unix.O_CREAT|unix.O_WRONLY|unix.O_CLOEXEC, 0o600)
		p.must(err)
		p.must(unix.Close(fd))
	}
	p.reopen()
	if _, err := p.store.Create(t.Context(), p.tree, Request{ID: "after", Now: time.Now()}); !errors.Is(err, ErrTooDeep) {
		t.Errorf("the snapshot: %v", err)
	}
	if _, err := p.store.Restore(t.Context(), p.tree, "before"); !errors.Is(err, ErrTooDeep) {
		t.Errorf("the restore: %v", err)
	}
}

// nest makes folders with the longest of names, one in the other, and opens the last one.
func (p *testPlace) nest(depth int) int {
	p.t.Helper()
	dir, err := unix.Open(p.dir, unix.O_PATH|unix.O_CLOEXEC, 0)
	p.must(err)
	name := strings.Repeat("n", 255)
	for range depth {
		p.must(unix.Mkdirat(dir, name, 0o700))
		below, err := unix.Openat(dir, name, unix.O_PATH|unix.O_CLOEXEC, 0)
		p.must(err)
		p.must(unix.Close(dir))
		dir = below
	}
	p.t.Cleanup(func() { _ = unix.Close(dir) })
	return dir
}
