package server

import (
	"strings"
	"testing"

	"github.com/fairlead/fairlead/services/internal/kit/objectstore"
	"github.com/fairlead/fairlead/services/sandbox/internal/box"
)

// Nodes of an older version do not say that a place is whole, and may leave that word alone of a
// place that they remove.
func TestTheLastPlaceHasSnapshots(t *testing.T) {
	k := box.Key{Tenant: "t", Session: "s"}
	for _, x := range []struct {
		name string
		keys []string // after the generation
		want int64    // 0: none
	}{
		{"none", nil, 0},
		{"the word alone", []string{"5/whole"}, 0},
		{"the word of one that was removed", []string{"5/whole", "6/packs/p.pack", "6/snapshots/1.json"}, 6},
		{"one that is whole, and one that broke off", []string{"5/snapshots/1.json", "5/whole", "6/packs/p.pack", "6/snapshots/1.json"}, 5},
		{"two that are whole", []string{"5/snapshots/1.json", "5/whole", "6/snapshots/1.json", "6/whole"}, 6},
		{"one above what is asked for", []string{"5/snapshots/1.json", "5/whole", "8/snapshots/1.json", "8/whole"}, 5},
	} {
		t.Run(x.name, func(t *testing.T) {
			o, err := objectstore.Open("file://"+t.TempDir(), objectstore.Credentials{})
			if err != nil {
				t.Fatal(err)
			}
			for _, key := range x.keys {
				generation, rest, _ := strings.Cut(key, "/")
				if err := o.Put(t.Context(), exported(k, int64(generation[0]-'0'))+rest, strings.NewReader("x"), 1); err != nil {
					t.Fatal(err)
				}
			}
			s := &snapshotServer{Server: &Server{info: Info{Objects: o}}}
			got, err := s.lastPlace(t.Context(), k, 7)
			if x.want == 0 && err == nil || x.want > 0 && got != exported(k, x.want) {
				t.Errorf("got %q, %v", got, err)
			}
		})
	}
}
