package agent

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestTheBuiltInAgentsAreThere(t *testing.T) {
	s, err := NewSet(nil, Coder)
	if err != nil {
		t.Fatal(err)
	}
	var ids []string
	for _, a := range s.All() {
		ids = append(ids, a.ID)
	}
	if !slices.Equal(ids, []string{Assistant, Coder}) || s.Default() != Coder {
		t.Errorf("there are %v, and %q is the default", ids, s.Default())
	}
	reader, _ := s.Get("agents/assistant")
	for _, tool := range reader.Spec.Tools {
		if slices.Contains([]string{"Bash", "Edit", "MultiEdit", "Write"}, tool) {
			t.Errorf("the assistant, which cannot change anything, has %s", tool)
		}
	}
	if reader.Spec.Greeting == "" {
		t.Error("the assistant does not greet")
	}
}

func TestGetFindsAnAgentByEitherNameOrTheDefault(t *testing.T) {
	s, err := NewSet(map[string]Spec{"mine": {Profile: "full"}}, "mine")
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"": "mine", "mine": "mine", "agents/mine": "mine", "coder": "coder", "none": "", "agents/": "mine"} {
		if a, ok := s.Get(name); a.ID != want || ok != (want != "") {
			t.Errorf("%q is %q (%t), want %q", name, a.ID, ok, want)
		}
	}
}

func TestFaultsAreReportedTogether(t *testing.T) {
	_, err := NewSet(map[string]Spec{
		"Bad Name": {Profile: "full"}, "no-profile": {}, "negative": {Profile: "full", TurnLimits: TurnLimits{MaxWallTime: -time.Second}},
	}, "missing")
	if err == nil {
		t.Fatal("no error")
	}
	for _, want := range []string{`"Bad Name": a name is`, `"no-profile": profile is missing`, `"negative": a limit is negative`, `default-agent "missing" does not exist`} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%v does not say %s", err, want)
		}
	}
}

func TestARevisionIsOfEverythingAndOfNothingElse(t *testing.T) {
	base := Spec{Profile: "full", Prompt: "p", Tools: []string{"Read", "Bash"}}
	of := func(s Spec) string {
		set, err := NewSet(map[string]Spec{"a": s}, "a")
		if err != nil {
			t.Fatal(err)
		}
		a, _ := set.Get("a")
		return a.Revision
	}
	want := of(base)
	same := base
	same.Tools = []string{"Bash", "Read"}
	if of(same) != want {
		t.Error("the order of tools changes the revision")
	}
	for name, change := range map[string]func(*Spec){
		"prompt": func(s *Spec) { s.Prompt = "q" }, "model": func(s *Spec) { s.Model = "a:b" }, "profile": func(s *Spec) { s.Profile = "read-only" },
		"tools": func(s *Spec) { s.Tools = []string{"Bash"} }, "greeting": func(s *Spec) { s.Greeting = "hi" }, "limit": func(s *Spec) { s.MaxSteps = 3 },
	} {
		other := base
		change(&other)
		if of(other) == want {
			t.Errorf("another %s is the same revision", name)
		}
	}
}

func TestARevisionIsReadBackAsItWasKept(t *testing.T) {
	want := BuiltIn()[Coder]
	want.MaxWallTime, want.MaxOutputTokens = time.Minute, 7
	got, err := Unmarshal(want.Marshal())
	if d := cmp.Diff(want, got); err != nil || d != "" {
		t.Error(err, d)
	}
	if _, err := Unmarshal([]byte("{")); err == nil {
		t.Error("half a revision is read")
	}
}

func TestNewSetLeavesTheConfigurationAlone(t *testing.T) {
	configured := map[string]Spec{"a": {Profile: "full", Tools: []string{"Write", "Bash"}}}
	if _, err := NewSet(configured, "a"); err != nil {
		t.Fatal(err)
	}
	if got := configured["a"].Tools; !slices.Equal(got, []string{"Write", "Bash"}) {
		t.Errorf("the configured tools are %v now", got)
	}
}

func TestProtoShowsTheServersModelWhereTheAgentNamesNone(t *testing.T) {
	a := Agent{ID: "a", Revision: "r", Spec: Spec{Profile: "full"}}
	if p := a.Proto("x:y", true); p.Name != "agents/a" || p.Model != "x:y" || !p.Default || p.Revision != "r" {
		t.Errorf("got %v", p)
	}
	a.Spec.Model = "own:model"
	if p := a.Proto("x:y", false); p.Model != "own:model" || p.Default {
		t.Errorf("got %v", p)
	}
}
