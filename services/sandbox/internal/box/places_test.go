package box

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

func TestTheLastQuarterOfANodesPlacesIsForSessionsInWhichNothingRuns(t *testing.T) {
	for _, tc := range []struct{ places, one int }{{1, 1}, {2, 2}, {3, 3}, {4, 3}, {7, 6}, {8, 6}} {
		t.Run(fmt.Sprintf("of %d places one session may have %d", tc.places, tc.one), func(t *testing.T) {
			o := options(t, &filling{})
			o.MaxExecs = tc.places
			n := openNode(t, o)
			begin := func(session, id string) error {
				c := Call{Key: Key{"t", session}, Epoch: 1, ID: id}
				_, _, err := n.Start(t.Context(), c, 0, Spec{Argv: []string{"x"}})
				return err
			}
			ensure(t, n, Key{"t", "s"})
			for i := range tc.one {
				if err := begin("s", fmt.Sprint("c", i)); err != nil {
					t.Fatal(err)
				}
			}
			err := begin("s", "more")
			if !errors.Is(err, ErrTooManyExecs) || strings.Contains(err.Error(), "in which nothing runs") != (tc.one < tc.places) {
				t.Errorf("one more: %v", err)
			}
			for i := range tc.places - tc.one {
				other := fmt.Sprint("other-", i)
				ensure(t, n, Key{"t", other})
				if err := begin(other, "first"); err != nil {
					t.Errorf("the first command of another session: %v", err)
				}
				if err := begin(other, "second"); !errors.Is(err, ErrTooManyExecs) {
					t.Errorf("its second: %v", err)
				}
			}
			ensure(t, n, Key{"t", "last"})
			if err := begin("last", "first"); !errors.Is(err, ErrTooManyExecs) {
				t.Errorf("there is no place: %v", err)
			}
		})
	}
}

func TestATaskOfTheServicesIsSomethingThatRuns(t *testing.T) {
	n := openNode(t, options(t, &filling{}))
	s := newSession(n, Key{"t", "s"})
	first, done, err := s.beginTask()
	if err != nil || !first {
		t.Errorf("the first: %v, %v", first, err)
	}
	second, done2, err := s.beginTask()
	if err != nil || second {
		t.Errorf("the second counts as the first: %v, %v", second, err)
	}
	done()
	done2()
}
