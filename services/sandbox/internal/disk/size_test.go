package disk

import (
	"errors"
	"os"
	"strings"
	"testing"
)

func TestEverythingCounts(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.WriteFile(dir+"/a", make([]byte, 8192), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.Link(dir+"/a", dir+"/b"), os.Mkdir(dir+"/d", 0o755), os.Symlink("/etc", dir+"/d/l")); err != nil {
		t.Fatal(err)
	}
	l := Room{Bytes: 1 << 20, Inodes: 100}
	u, err := Measure(l, dir)
	if err != nil || u.Inodes != 4 || u.Bytes < 8192 || u.Over(l) != "" {
		t.Errorf("%+v, %v", u, err)
	}
	if limit, why := u.Exceeds(Room{Bytes: 1 << 20, Inodes: 3}); limit != Inodes || why == "" {
		t.Error("four names are not more than three")
	}
	deep := dir
	for range 40 {
		deep += "/" + strings.Repeat("x/", 30)
		if err := os.MkdirAll(deep, 0o755); err != nil {
			break // the path is as long as it may be
		}
	}
	if u, err := Measure(Room{Bytes: 1 << 30, Inodes: 1 << 20}, dir); err != nil || !u.TooDeep {
		t.Errorf("%+v, %v", u, err)
	}
}
