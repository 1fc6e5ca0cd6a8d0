package quota

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"unsafe"

	"github.com/fairlead/fairlead/services/sandbox/internal/box"
	"github.com/fairlead/fairlead/services/sandbox/internal/runner/pool"
)

// TestTheFileSystemIsBelievedOnlyWhatItShows opens the real file system: one that
// keeps project quotas passes, any other is refused with why. Nothing is left.
func TestTheFileSystemIsBelievedOnlyWhatItShows(t *testing.T) {
	dir := t.TempDir()
	p, err := Open(dir, 4_000_000, nobody())
	left, bad := os.ReadDir(dir)
	if bad != nil || len(left) > 0 {
		t.Errorf("left are %v, %v", left, bad)
	}
	if err != nil {
		if !errors.Is(err, ErrUnavailable) || len(err.Error()) <= len(ErrUnavailable.Error())+4 {
			t.Errorf("got %v, without why", err)
		}
		t.Logf("here: %v", err)
		return
	}
	if err := p.Set(1, Limit{64 << 10, 4}, dir); err != nil {
		t.Fatal(err)
	}
	if err := p.Release(1); err != nil {
		t.Error(err)
	}
}

// nobody is a user without privileges, or the test's own user.
func nobody() As {
	if os.Getuid() != 0 {
		return As{UID: os.Getuid(), GID: os.Getgid(), Do: func(f func() error) error { return f() }}
	}
	o := box.Owner{UID: 65534, GID: 65534}
	return As{UID: o.UID, GID: o.GID, Do: func(f func() error) error { return pool.As(o, f) }}
}

// TestAKernelThatTakesEveryCallAndKeepsNothingIsRefused is what a file system
// without the quota switched on does.
func TestAKernelThatTakesEveryCallAndKeepsNothingIsRefused(t *testing.T) {
	var calls []string
	p := &Projects{dir: t.TempDir(), first: 10, as: nobody(), kernel: kernel{
		mark: func(_ string, project uint32) error {
			calls = append(calls, fmt.Sprint("mark ", project))
			return nil
		},
		limit: func(_ string, project uint32, l Limit) error {
			calls = append(calls, fmt.Sprint("limit ", project, " ", l))
			return nil
		},
	}}
	if err := p.prove(); err == nil || !strings.Contains(err.Error(), "was accepted") {
		t.Errorf("got %v", err)
	}
	p.kernel.read = func(string, uint32) (limit, used Limit, err error) {
		return Limit{1 << 20, 10}, Limit{1<<20 - 100<<10, 9}, nil
	}
	if bytes, inodes, err := p.Remaining(3); bytes != 36<<10 || inodes != 1 || err != nil {
		t.Errorf("left are %v, %v, %v", bytes, inodes, err)
	}
	if err := p.Set(3, Limit{1, 2}, "a", "b"); err != nil {
		t.Fatal(err)
	}
	want := fmt.Sprint([]string{"mark 10", "limit 10 {262144 8}", "limit 10 {0 0}", "mark 14", "mark 14", "limit 14 {1 2}"})
	if fmt.Sprint(calls) != want {
		t.Errorf("the kernel was asked %v, want %v", calls, want)
	}
}

func TestTheKernelsStructuresHaveItsSizes(t *testing.T) {
	if s := unsafe.Sizeof(fsxattr{}); s != 28 {
		t.Errorf("fsxattr has %d bytes", s)
	}
	if s := unsafe.Sizeof(dqblk{}); s != 72 {
		t.Errorf("dqblk has %d bytes", s)
	}
	if setQuota != 0x80000802 {
		t.Errorf("Q_SETQUOTA for projects is %#x", setQuota)
	}
}
