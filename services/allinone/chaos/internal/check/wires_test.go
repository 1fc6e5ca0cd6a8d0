package check_test

import (
	"testing"

	"github.com/fairlead/fairlead/clients/go/fold"
	"github.com/fairlead/fairlead/services/allinone/chaos/internal/check"
	"github.com/fairlead/fairlead/services/allinone/chaos/internal/record"
	"github.com/fairlead/fairlead/services/allinone/chaos/internal/script"
	"github.com/fairlead/fairlead/services/allinone/chaos/internal/wires"
)

// wired returns a good run in which one client follows the first session and shows what a log says of it.
func wired(t *testing.T) (*record.Run, *script.Script, *record.WireFollower) {
	t.Helper()
	run, sc := good(t)
	log := &fold.Log{}
	for _, e := range run.Sessions[0].Log {
		if err := log.Add(e); err != nil {
			t.Fatal(err)
		}
	}
	f := &record.WireFollower{Wire: "wire", Connections: 3}
	for _, turn := range log.State().Turns {
		f.Shown = append(f.Shown, wires.Of(turn))
	}
	run.Sessions[0].Wires = []*record.WireFollower{f}
	return run, sc, f
}

func TestWhatAProtocolShowsIsJudged(t *testing.T) {
	run, sc, _ := wired(t)
	rep := check.Run(run, sc, limits)
	if len(rep.Violations) > 0 || len(rep.Stats.Wires) != 1 || rep.Stats.Wires[0].Turns == 0 || rep.Stats.Wires[0].Reconnects != 2 {
		t.Fatalf("a good run: %v, %+v", rep.Violations, rep.Stats.Wires)
	}
	call := func(f *record.WireFollower) *record.ShownCall {
		for i := range f.Shown {
			if len(f.Shown[i].Calls) > 0 {
				return &f.Shown[i].Calls[0]
			}
		}
		t.Fatal("the run has no calls")
		return nil
	}
	other := "another"
	for what, spoil := range map[string]func(f *record.WireFollower){
		"text is lost":         func(f *record.WireFollower) { f.Shown[0].Text = f.Shown[0].Text[1:] },
		"text is there twice":  func(f *record.WireFollower) { f.Shown[0].Text += f.Shown[0].Text },
		"a turn is lost":       func(f *record.WireFollower) { f.Shown = f.Shown[1:] },
		"another turn":         func(f *record.WireFollower) { f.Shown[0].Turn = other },
		"a call is lost":       func(f *record.WireFollower) { call(f).ID = other },
		"a result is another":  func(f *record.WireFollower) { call(f).Result = &other },
		"arguments are others": func(f *record.WireFollower) { call(f).Argue(`{"a":1}`) },
		"a tool is another":    func(f *record.WireFollower) { call(f).Tool = other },
		"it did not come back": func(f *record.WireFollower) { f.Failed = "HTTP 500" },
	} {
		run, sc, f := wired(t)
		spoil(f)
		if rep := check.Run(run, sc, limits); !rules(rep)[check.Wires] || rep.Stats.Wires[0].Violations == 0 {
			t.Errorf("%s, and no rule is broken: %v", what, rep.Violations)
		}
	}
}

// A message that interrupts overtakes one that waits: a client that shows all turns has its answer first.
func TestAProtocolShowsTurnsInTheOrderInWhichTheySpeak(t *testing.T) {
	run, sc := arrivals(t)
	s, log := run.Sessions[0], &fold.Log{}
	for _, e := range s.Log {
		if err := log.Add(e); err != nil {
			t.Fatal(err)
		}
	}
	for want, order := range map[bool][]int{
		true:  {whole, joiner, broken, breaker, patient, undone, undoer},
		false: {whole, joiner, broken, patient, breaker, undone, undoer},
	} {
		var all record.Shown
		for _, n := range order {
			turn := wires.Of(log.State().Turn(s.Accepted[n].Turn))
			all.Text, all.Calls = all.Text+turn.Text, append(all.Calls, turn.Calls...)
		}
		s.Wires = []*record.WireFollower{{Wire: "wire", Connections: 1, Shown: []record.Shown{all}}}
		if rep := check.Run(run, sc, limits); rules(rep)[check.Wires] == want {
			t.Errorf("the order %v: %v", order, rep.Violations)
		}
	}
}

// Protocols have different parts of a call: what one lacks is not missed, and what it has is compared.
func TestAProtocolIsJudgedByWhatItHas(t *testing.T) {
	run, sc, f := wired(t)
	calls := 0
	for i := range f.Shown {
		for j := range f.Shown[i].Calls {
			c := &f.Shown[i].Calls[j]
			c.Arguments, c.Result = nil, nil
			calls++
		}
	}
	rep := check.Run(run, sc, limits)
	if st := rep.Stats.Wires[0]; len(rep.Violations) > 0 || st.Calls != calls || st.Arguments != 0 || st.Results != 0 {
		t.Errorf("calls without arguments and results: %v, %+v", rep.Violations, st)
	}
	for _, e := range run.Sessions[0].Log {
		if a := e.GetToolCallArguments(); a != nil {
			a.ArgumentsJson = `{"command":"ls","run_in_background":true}`
		}
	}
	for arguments, good := range map[string]bool{`{"command":"ls"}`: true, `{"command":"pwd"}`: false} {
		for i := range f.Shown {
			for j := range f.Shown[i].Calls {
				c := &f.Shown[i].Calls[j]
				c.Argue(arguments)
				c.Some = true
			}
			f.Shown[i].Lacks = true
		}
		f.Shown[0].Calls = f.Shown[0].Calls[:1]
		if rep := check.Run(run, sc, limits); rules(rep)[check.Wires] == good {
			t.Errorf("%s, of some calls: %v", arguments, rep.Violations)
		}
	}
}
