package snapshot

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// Two names of one file have one mode and one time. A restore that set them of one name
// must not take them from the other.
func TestNamesOfOneFileAreRestoredEachAsItWas(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(a, b string) error{
		"a link took the place of a file with another mode": func(a, b string) error {
			return os.Chmod(b, 0o600)
		},
		"a link took the place of a file with another time": func(a, b string) error {
			return os.Chtimes(b, time.Time{}, time.Unix(1_000_000, 0))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, order := range [][2]string{{"a", "b"}, {"b", "a"}} {
				p := newPlace(t)
				p.write("a", "same")
				p.write("b", "same")
				a, b := filepath.Join(p.dir, order[0]), filepath.Join(p.dir, order[1])
				p.must(change(a, b))
				p.create("one")
				want := p.capture()
				p.must(os.Remove(b))
				p.must(os.Link(a, b))
				p.restore("one")
				if diff := cmp.Diff(want, p.capture()); diff != "" {
					t.Errorf("%v (-want +got):\n%s", order, diff)
				}
				if got := p.restore("one"); got != (Restored{}) {
					t.Errorf("%v: restoring what is there did %+v", order, got)
				}
			}
		})
	}
}
