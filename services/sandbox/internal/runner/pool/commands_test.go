package pool

import (
	"errors"
	"testing"

	"github.com/fairlead/fairlead/services/sandbox/internal/cgroup"
	"github.com/fairlead/fairlead/services/sandbox/internal/initd/wire"
)

// What the sandbox's group counts is a command's own only where nothing else ran beside it.
func TestACommandKnowsWhetherAnotherRanBesideIt(t *testing.T) {
	c := newCommands()
	first, second, third := &process{}, &process{}, &process{}
	add := func(p *process) {
		if _, err := c.add(p); err != nil {
			t.Fatal(err)
		}
	}
	add(first)
	if c.hadOthers(first) {
		t.Error("the first one, alone")
	}
	add(second)
	if !c.hadOthers(first) || !c.hadOthers(second) {
		t.Error("two beside each other")
	}
	if c.find(first.id) != first || c.remove(first) || !c.remove(second) || c.find(first.id) != nil {
		t.Error("they are not removed one after the other")
	}
	add(third)
	if c.hadOthers(third) {
		t.Error("one after the others")
	}
}

func TestASandboxThatIsEndedTakesNoCommand(t *testing.T) {
	c, p := newCommands(), &process{}
	if alone, err := c.add(p); !alone || err != nil {
		t.Fatal(alone, err)
	}
	c.close()
	if _, err := c.add(&process{}); !errors.Is(err, errGone) {
		t.Errorf("got %v", err)
	}
	if left := c.list(); len(left) != 1 || left[0] != p {
		t.Errorf("%d are left", len(left))
	}
}

func TestCountsAreReadAgainOnlyAfterSomethingElseRan(t *testing.T) {
	reads := 0
	read := func() cgroup.Counts { reads++; return cgroup.Counts{Refused: int64(reads)} }
	last := func() bool { return true }
	var c countCache
	if met := c.before(true, read); met.Refused != 1 {
		t.Errorf("the first command: %+v", met)
	}
	c.after(cgroup.Counts{Refused: 10}, last)
	if met := c.before(true, read); met.Refused != 10 || reads != 1 {
		t.Errorf("a command right after it: %+v", met)
	}
	if met := c.before(false, read); met.Refused != 2 {
		t.Errorf("a command beside it: %+v", met)
	}
	c.after(cgroup.Counts{Refused: 20}, func() bool { return false }) // the other one still runs
	if met := c.before(true, read); met.Refused != 3 {
		t.Errorf("a command after both: %+v", met)
	}
}

func TestInitIsAskedForTerminalsOnceAtATime(t *testing.T) {
	var c terminalCount
	if err := c.hear(wire.Reply{ID: 5}); !errors.Is(err, wire.ErrMalformed) {
		t.Errorf("an answer without a question: %v", err)
	}
	if open, ask := c.look(); open != 0 || !ask {
		t.Errorf("%d are open, ask: %v", open, ask)
	}
	if _, ask := c.look(); ask {
		t.Error("it is asked again before its answer")
	}
	if err := c.hear(wire.Reply{ID: 5}); err != nil {
		t.Fatal(err)
	}
	if open, ask := c.look(); open != 5 || !ask {
		t.Errorf("%d are open, ask: %v", open, ask)
	}
	c.forget()
	if open, _ := c.look(); open != 0 {
		t.Errorf("%d are open after the last command", open)
	}
}
