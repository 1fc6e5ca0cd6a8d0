package integration

import (
	"slices"
	"strings"
	"testing"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
)

// working is turns with a call; the last text is what the model reads of its result.
const working = "turns:\n  - when: .\n    steps: [{tools: [{name: Bash, input: {command: work}}]}, {text: [\"{{ .LastToolResult }}\"]}]\n"

// setups returns how often each command of a setup was executed.
func (p *peers) setups() map[string]int {
	p.mu.Lock()
	defer p.mu.Unlock()
	found := map[string]int{}
	for id, n := range p.executed {
		if strings.HasPrefix(id, "setup.") {
			parts := strings.Split(id, ".") // the session is the second
			found["setup."+strings.Join(parts[2:], ".")] += n
		}
	}
	return found
}

// changed returns the calls that changed the workspace, in their order.
func (p *peers) changed() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.changes)
}

func TestAnEnvironmentIsSetUpOnceBeforeTheFirstCall(t *testing.T) {
	t.Parallel()
	f, ctx := start(t, working), t.Context()
	f.environment(ctx, t, "prod", &sessionv1.EnvironmentSpec{Setup: []string{"one", "two"}})
	made, err := f.CreateSession(ctx, &sessionv1.CreateSessionRequest{Session: &sessionv1.Session{Environment: "prod"}})
	if err != nil {
		t.Fatal(err)
	}
	s := made.Session.Name
	first := f.turn(ctx, t, s, "first")
	if got := strings.Count(names(first), "environment.set_up"); got != 1 {
		t.Errorf("the first turn tells %d times that the environment is set up: %s", got, names(first))
	}
	if changes := f.peers.changed(); len(changes) < 3 || !strings.HasSuffix(changes[0], ".0.0") || !strings.HasSuffix(changes[1], ".1.0") {
		t.Errorf("the calls are %v", changes)
	}
	second := f.turn(ctx, t, s, "second")
	f.restart(t)
	if again := names(second) + names(f.turn(ctx, t, s, "third")); strings.Contains(again, "environment.set_up") {
		t.Errorf("later turns tell it again: %s", again)
	}
	forked, err := f.ForkSession(ctx, &sessionv1.ForkSessionRequest{Name: s})
	if err != nil {
		t.Fatal(err)
	}
	f.turn(ctx, t, forked.Session.Name, "in the fork")
	if got := f.peers.setups(); len(got) != 2 || got["setup.0.0"] != 1 || got["setup.1.0"] != 1 {
		t.Errorf("the setup ran %v", got)
	}
	other, err := f.CreateSession(ctx, &sessionv1.CreateSessionRequest{Session: &sessionv1.Session{Environment: "prod"}})
	if err != nil {
		t.Fatal(err)
	}
	f.turn(ctx, t, other.Session.Name, "in another session")
	if got := f.peers.setups(); len(got) != 2 || got["setup.0.0"] != 2 || got["setup.1.0"] != 2 {
		t.Errorf("with another session, the setup ran %v", got)
	}
}

func TestAFailedSetupIsAWarningAndTheModelIsTold(t *testing.T) {
	t.Parallel()
	f, ctx := start(t, working), t.Context()
	f.environment(ctx, t, "prod", &sessionv1.EnvironmentSpec{Setup: []string{"one", "fail", "three"}})
	made, err := f.CreateSession(ctx, &sessionv1.CreateSessionRequest{Session: &sessionv1.Session{Environment: "prod"}})
	if err != nil {
		t.Fatal(err)
	}
	warnings := func(message string) (warned []string, told string) {
		for _, e := range f.turn(ctx, t, made.Session.Name, message) {
			if x := e.GetEnvironmentSetUp(); x != nil {
				warned = append(warned, x.Environment+" "+x.Failure)
				if x.Commands != 1 || x.Version != 1 {
					t.Errorf("the setup is %v", x)
				}
			}
			if w := e.GetWarning(); w.GetReason() == "ENVIRONMENT_SETUP" {
				warned = append(warned, w.Message)
			}
			if end := e.GetTurnFinished(); end != nil {
				told = end.FinalText
			}
		}
		return warned, told
	}
	const want = "The setup of the environment failed at command 2 (fail), and the commands after it did not run: It does not work."
	if warned, told := warnings("first"); strings.Join(warned, "|") != "environments/prod It does not work.|"+want || !strings.Contains(told, want) {
		t.Errorf("warned %q, told %q", warned, told)
	}
	f.restart(t)
	if warned, told := warnings("second"); len(warned) != 0 || strings.Contains(told, "setup") {
		t.Errorf("again: warned %q, told %q", warned, told)
	}
	if got := f.peers.setups(); got["setup.2.0"] != 0 || got["setup.0.0"] != 1 || got["setup.1.0"] != 1 {
		t.Errorf("the setup ran %v", got)
	}
}
