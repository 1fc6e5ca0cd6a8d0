package cgroup

import (
	"os"
	"slices"
	"strings"
	"testing"
)

// TestFavorMovesChangesTheMachine sets it, looks, and puts back what was before.
func TestFavorMovesChangesTheMachine(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("control groups need root")
	}
	if raw, err := os.ReadFile("/proc/mounts"); err != nil || !strings.Contains(string(raw), " cgroup2 ") {
		t.Skip("no cgroup2 is mounted here that would show it")
	}
	before, err := MovesFavored()
	if err != nil {
		t.Fatal(err)
	}
	others := func() []string {
		all, err := mountOptions()
		if err != nil {
			t.Fatal(err)
		}
		return slices.DeleteFunc(all, func(o string) bool { return o == favor })
	}
	was := others()
	for _, want := range []bool{!before, before} {
		if err := FavorMoves(want); err != nil {
			t.Fatal(err)
		}
		if got, err := MovesFavored(); got != want || err != nil {
			t.Errorf("it is %v, not %v: %v", got, want, err)
		}
		if now := others(); !slices.Equal(now, was) {
			t.Errorf("the machine's other options were %v, and are %v", was, now)
		}
	}
}
