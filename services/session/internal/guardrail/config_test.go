package guardrail

import (
	"strings"
	"testing"
)

func TestAProfileTakesFromTheDefaultOneWhatItLeavesOut(t *testing.T) {
	n := func(n int) *int { return &n }
	profiles, err := New(map[string]Config{
		Default:   {MaxTodo: n(7)},
		"patient": {MaxToolFailures: n(0), RepeatsEnd: EndPartial},
	})
	if err != nil {
		t.Fatal(err)
	}
	got, err := profiles.Get("patient")
	want := Rules{Failures: Rule{0, false}, Repeats: Rule{10, true}, Silent: Rule{50, true}, Todo: Rule{7, true}}
	if err != nil || got != want {
		t.Errorf("patient is %+v (%v), want %+v", got, err, want)
	}
	if dflt, err := profiles.Get(""); err != nil || dflt.Todo.Most != 7 || dflt.Failures.Most != 10 {
		t.Errorf("the default profile is %+v (%v)", dflt, err)
	}
	if _, err := profiles.Get("hasty"); err == nil || !strings.Contains(err.Error(), `no profile of guardrails "hasty"; there are default, patient`) {
		t.Errorf("a profile that is not there: %v", err)
	}
}

func TestFaultsOfAProfileNameTheirKeys(t *testing.T) {
	less := -1
	_, err := New(map[string]Config{"x": {MaxSilent: &less, TodoEnd: "complete"}})
	for _, want := range []string{"guardrails.x.max-silent-steps: -1 is not between", `guardrails.x.todo-steps-end: "complete" is not failed or partial`} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("the error %v does not say %q", err, want)
		}
	}
}
