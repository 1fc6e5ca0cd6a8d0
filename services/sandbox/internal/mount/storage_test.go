package mount

import (
	"fmt"
	"sync"
	"testing"

	"github.com/fairlead/fairlead/services/sandbox/internal/box"
)

// Two nodes with one file system for storage make a user's folder once: what was written to
// another one nobody would see again.
func TestNodesAgreeOnAUsersStorage(t *testing.T) {
	t.Parallel()
	o := Options{Storage: Storage{Dir: t.TempDir(), Alias: "storage"}, Owners: box.Owners{Base: -1}}
	var nodes [2]*Set
	for i := range nodes {
		var err error
		if nodes[i], err = New(o); err != nil {
			t.Fatal(err)
		}
	}
	for n := range 300 {
		user := fmt.Sprint("user", n)
		var sources [len(nodes)]string
		var all sync.WaitGroup
		for i, s := range nodes {
			all.Go(func() {
				m, err := s.storage("acme", user)
				if err != nil {
					t.Error(err)
					return
				}
				sources[i] = m.Source
			})
		}
		all.Wait()
		if sources[0] != sources[1] {
			t.Fatalf("one has %s, the other one %s", sources[0], sources[1])
		}
	}
}
