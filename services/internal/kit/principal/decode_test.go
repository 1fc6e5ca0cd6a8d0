package principal

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

func FuzzDecode(f *testing.F) {
	for _, s := range []string{"", "{}", `{"tenant":"a","user":"b","scopes":["c"]}`, `{"tenant":"../x","user":"b"}`, `[]`, "null", `{"tenant":1}`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		p, err := decode(s)
		if err != nil {
			return
		}
		if p.Validate() != nil {
			t.Fatalf("accepted %+v", p)
		}
		again, err := encode(p)
		if err != nil {
			t.Fatal(err)
		}
		q, err := decode(again)
		if diff := cmp.Diff(p, q, cmpopts.EquateEmpty()); err != nil && len(again) <= maxEncoded || err == nil && diff != "" {
			t.Fatalf("%+v does not survive: %v %s", p, err, diff)
		}
	})
}
