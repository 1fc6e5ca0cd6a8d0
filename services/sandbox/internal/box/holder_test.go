package box

import (
	"errors"
	"testing"
)

func TestAnotherSessionThatWorksInAWorkspaceIsFencedByItsOwnEpochs(t *testing.T) {
	o := options(t, &fake{})
	n := openNode(t, o)
	ensure(t, n, Key{"t", "s"})
	as := func(holder string, epoch int64) error {
		c := testCall("fence")
		c.Holder, c.Epoch = holder, epoch
		return n.Fence(c)
	}
	for _, step := range []struct {
		name, holder string
		epoch        int64
		stale        bool
	}{
		{"the owner", "", 7, false},
		{"a holder begins below the owner's epoch", "sub-a", 1, false},
		{"its successor", "sub-a", 2, false},
		{"it itself, woken up", "sub-a", 1, true},
		{"another holder", "sub-b", 1, false},
		{"the owner, woken up", "", 6, true},
		{"the owner still", "", 7, false},
	} {
		if err := as(step.holder, step.epoch); errors.Is(err, ErrStaleEpoch) != step.stale || !step.stale && err != nil {
			t.Errorf("%s: %v", step.name, err)
		}
	}
	if err := n.Close(); err != nil {
		t.Error(err)
	}
	n = openNode(t, o)
	if err := as("sub-a", 1); !errors.Is(err, ErrStaleEpoch) {
		t.Errorf("after a restart: %v", err)
	}
}
