package files

import (
	"errors"
	"fmt"
	"os"
	"testing"

	"github.com/fairlead/fairlead/services/sandbox/internal/bind"
)

// A mount may be on another disk, which may be full.
func TestAMountThatIsFullSaysSo(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("mounts need root")
	}
	tree, _ := newTree(t, map[string]string{"mnt/": ""})
	space, err := tree.With([]Mounted{{
		Alias: "mnt", Writable: true, As: func(f func() error) error { return f() },
		Open: func() (*os.File, error) {
			mount, err := bind.Memory(64<<10, 0o755, bind.IDs{})
			if err != nil {
				return nil, err
			}
			defer func() { _ = mount.Close() }()
			return os.Open(fmt.Sprintf("/proc/self/fd/%d", mount.Fd()))
		},
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
