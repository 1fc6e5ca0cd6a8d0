package cgroup

import (
	"os"
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
	for _, want := range []bool{!before, before} {
		if err := FavorMoves(want); err != nil {
			t.Fatal(err)
		}
		if got, err := MovesFavored(); got != want || err != nil {
			t.Errorf("it is %v, not %v: %v", got, want, err)
		}
	}
}
