package box

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

func TestTheLastQuarterOfANodesPlacesIsForSessionsThatHaveLessThanTheirShare(t *testing.T) {
	for _, tc := range []struct {
		places int
		have   []int // what sessions run
		more   int   // what the last of them may run besides
		share  bool  // whether it is refused more for its share
	}{
		{1, []int{0}, 1, false},
		{3, []int{0}, 3, false},
		{4, []int{0}, 3, true},
		{7, []int{0}, 6, true},
		{8, []int{0}, 6, true},
		{8, []int{6, 0}, 2, false}, // however many another one has
		{4, []int{1, 1, 1}, 1, false},
		{8, []int{3, 3}, 0, true},
		{8, []int{5, 1}, 1, true},
		{64, []int{0}, 48, true},
		{64, []int{24, 24}, 0, true},
		{64, []int{40, 8}, 8, true},
		{64, []int{16, 16, 16}, 0, true},
		{64, []int{12, 12, 12, 12}, 1, true},
		{64, []int{44, 1, 1, 1, 1}, 8, true},
		{64, of(24, 2), 1, true},
		{64, of(48, 1), 1, true}, // of those that have something in the background, each may run something
		{64, of(63, 1), 1, false},
		{64, []int{16, 16, 16, 8}, 0, true}, // a user with many sessions leaves places to others
		{64, []int{16, 16, 16, 8, 0}, 2, true},
		{64, append(of(62, 1), 2, 0), 0, false}, // all are in use
	} {
		t.Run(fmt.Sprintf("of %d places %.20q are in use", tc.places, fmt.Sprint(tc.have)), func(t *testing.T) {
			c := newCapacity(tc.places)
			var last Key
			for i, have := range tc.have {
				last = Key{"t", fmt.Sprint("s", i)}
				if have > 0 { // it had less than its share then
					c.active, c.taken[last] = c.active+have, have
				}
			}
			more := -1
			var err error
			for ; err == nil; more++ {
				err = c.reserve(last)
			}
			if more != tc.more || !errors.Is(err, ErrTooManyExecs) || strings.Contains(err.Error(), "with fewer than") != tc.share {
				t.Errorf("it may run %d more: %v", more, err)
			}
		})
	}
}

// Whatever ends, the node counts as it did before.
func TestPlacesComeBack(t *testing.T) {
	c, k := newCapacity(10), Key{"t", "s"}
	for range 3 {
		if err := c.reserve(k); err != nil {
			t.Fatal(err)
		}
	}
	for range 3 {
		c.release(k)
	}
	c.wait()
	if c.active != 0 || len(c.taken) != 0 {
		t.Errorf("%d places are in use, of %d sessions", c.active, len(c.taken))
	}
}

func TestOnlyOneSandboxIsMadeAheadAtATime(t *testing.T) {
	c := newCapacity(1)
	if first, second := c.reserveWarm(), c.reserveWarm(); !first || second {
		t.Errorf("the first is reserved: %v, the second: %v", first, second)
	}
	c.releaseWarm()
	if !c.reserveWarm() {
		t.Error("none is reserved after the first")
	}
	c.releaseWarm()
	c.close()
	if err := c.reserve(Key{"t", "s"}); c.reserveWarm() || !errors.Is(err, ErrClosed) {
		t.Errorf("a closed node reserves a place: %v", err)
	}
	c.wait()
}

// What the service itself runs in a session takes a place as its commands do.
func TestATaskTakesAPlaceOfItsSession(t *testing.T) {
	o := options(t, &filling{})
	o.MaxExecs = 4
	n := openNode(t, o)
	ensure(t, n, testCall("").Key)
	for i := range 3 {
		if _, _, err := n.Start(t.Context(), testCall(fmt.Sprint("c", i)), Spec{Argv: []string{"x"}}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := n.RunInside(t.Context(), testCall("task"), Task{Argv: []string{"x"}}); !errors.Is(err, ErrTooManyExecs) {
		t.Errorf("a fourth: %v", err)
	}
}

// of is a number of sessions that all run as much.
func of(sessions, each int) []int {
	have := make([]int, sessions)
	for i := range have {
		have[i] = each
	}
	return have
}
