package page_test

import (
	"errors"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/fairlead/fairlead/services/internal/kit/page"
)

func TestFill(t *testing.T) {
	text := func(bytes int) *wrapperspb.StringValue { return wrapperspb.String(strings.Repeat("x", bytes)) }
	many := func(n, bytes int) (all []*wrapperspb.StringValue) {
		for range n {
			all = append(all, text(bytes))
		}
		return all
	}
	for _, c := range []struct {
		name    string
		entries []*wrapperspb.StringValue
		size    int
		want    int
		more    bool
	}{
		{"no entries", nil, 10, 0, false},
		{"fewer than asked for", many(9, 10), 10, 9, false},
		{"as many as asked for", many(10, 10), 10, 10, false},
		{"one more than asked for", many(11, 10), 10, 10, true},
		{"more than are read at one time", many(120, 10), 1000, 120, false},
		{"as many as are read at one time", many(50, 10), 1000, 50, false},
		{"one more than are read at one time", many(51, 10), 50, 50, true},
		{"a page that is full by its bytes", many(20, 200<<10), 1000, 5, true},
		{"a page that is full by its bytes just at the end", many(5, 200<<10), 1000, 5, false},
		{"an entry that is larger than a page", append(many(1, 3<<20), many(3, 10)...), 1000, 1, true},
		{"an entry that is larger than a page as the last one", many(1, 3<<20), 1000, 1, false},
		{"a large entry behind small ones", append(many(3, 10), many(1, 3<<20)...), 1000, 3, true},
		{"one entry", many(3, 3<<20), 1, 1, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			at, most := 0, 0
			got, more, err := page.Fill(c.size, func(after *wrapperspb.StringValue, n int) ([]*wrapperspb.StringValue, error) {
				if (after == nil) != (at == 0) || at > 0 && c.entries[at-1] != after {
					t.Errorf("it goes on behind %.20v, want entry %d", after, at-1)
				}
				some := c.entries[at:min(at+n, len(c.entries))]
				at, most = min(at+n-1, len(c.entries)), max(most, n)
				return some, nil
			})
			if err != nil || len(got) != c.want || more != c.more || most > 51 {
				t.Errorf("%d entries, more: %t, %v; read %d at one time", len(got), more, err, most)
			}
			for i, m := range got {
				if !proto.Equal(m, c.entries[i]) {
					t.Errorf("entry %d is another", i)
				}
			}
		})
	}
	broken := errors.New("broken")
	if got, more, err := page.Fill(1, func(*wrapperspb.StringValue, int) ([]*wrapperspb.StringValue, error) { return nil, broken }); !errors.Is(err, broken) || got != nil || more {
		t.Errorf("%v, %t, %v", got, more, err)
	}
}
