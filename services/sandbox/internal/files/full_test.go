package files

import (
	"errors"
	"os"
	"testing"

	"github.com/fairlead/fairlead/services/sandbox/internal/smalldisk"
)

// A mount may be on another disk, which may be full.
func TestAMountThatIsFullSaysSo(t *testing.T) {
	disk := smalldisk.New(t, "size=65536,mode=0755")
	tree, _ := newTree(t, map[string]string{"mnt/": ""})
	space, err := tree.With([]Mounted{{
		Alias: "mnt", Writable: true, As: func(f func() error) error { return f() },
		Open: func() (*os.File, error) { return os.Open(disk) },
	}})
	must(t, err)
	d, err := space.Draft()
	must(t, err)
	defer d.Discard()
	if _, err := d.Write(make([]byte, 1<<20)); err != nil {
		t.Fatal(err)
	}
	if _, _, err := space.Put(d, "mnt/f", Target{}); !errors.Is(err, ErrNoRoom) {
		t.Errorf("it ended with %v", err)
	}
	left, _, err := space.List(t.Context(), "mnt", "", 10, nil)
	if err != nil || len(left) > 0 {
		t.Errorf("it left %v: %v", left, err)
	}
}
