package agent

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
)

func TestThePromptHasTheTurnsParametersAndContext(t *testing.T) {
	s := Spec{Prompt: "Greet {{name}} in {{ city }}; {{other}} and {{name}}.", Parameters: []string{"name", "city"}}
	got := s.PromptFor(&sessionv1.TurnOptions{Context: "Be brief.", Parameters: map[string]string{"name": "{{city}}", "city": "$1", "other": "x"}})
	if want := "Greet {{city}} in $1; {{other}} and {{city}}.\n\nBe brief."; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := (Spec{Prompt: "A {{template}}."}).PromptFor(nil); got != "A {{template}}." {
		t.Errorf("a prompt without parameters became %q", got)
	}
}

func TestOptionsOfATurnComeBeforeTheSessions(t *testing.T) {
	session := &sessionv1.TurnOptions{Model: "a:s", ThinkingTokens: proto.Int64(5), Context: "s", Parameters: map[string]string{"x": "s", "y": "s"}}
	request := &sessionv1.TurnOptions{Model: "a:r", ThinkingTokens: proto.Int64(0), Parameters: map[string]string{"x": "r"}}
	want := &sessionv1.TurnOptions{Model: "a:r", ThinkingTokens: proto.Int64(0), Context: "s", Parameters: map[string]string{"x": "r", "y": "s"}}
	if d := cmp.Diff(want, Options(request, session), protocmp.Transform()); d != "" {
		t.Error(d)
	}
	if Options(nil, nil) != nil {
		t.Error("no options are some")
	}
}

func TestTheGreetingHasTheSessionsParameters(t *testing.T) {
	for name, c := range map[string]struct {
		s    Spec
		o    *sessionv1.TurnOptions
		want string
	}{
		"a value":             {Spec{Greeting: "Hello {{name}}!", Parameters: []string{"name"}}, &sessionv1.TurnOptions{Parameters: map[string]string{"name": "Ann"}}, "Hello Ann!"},
		"an empty value":      {Spec{Greeting: "Hello {{name}}!", Parameters: []string{"name"}}, &sessionv1.TurnOptions{Parameters: map[string]string{"name": ""}}, "Hello !"},
		"braces in a value":   {Spec{Greeting: "Hello {{ name }}!", Parameters: []string{"name"}}, &sessionv1.TurnOptions{Parameters: map[string]string{"name": "{{name}}"}}, "Hello {{name}}!"},
		"no value yet":        {Spec{Greeting: "Hello {{name}}!", Parameters: []string{"name"}}, nil, "Hello {{name}}!"},
		"no parameter":        {Spec{Greeting: "Hello {{name}}!"}, &sessionv1.TurnOptions{Parameters: map[string]string{"name": "Ann"}}, "Hello {{name}}!"},
		"no greeting":         {Spec{Parameters: []string{"name"}}, &sessionv1.TurnOptions{Parameters: map[string]string{"name": "Ann"}}, ""},
		"another placeholder": {Spec{Greeting: "{{x}} {{name}}", Parameters: []string{"name"}}, &sessionv1.TurnOptions{Parameters: map[string]string{"name": "A", "x": "B"}}, "{{x}} A"},
	} {
		if got := GreetingFor(c.s, c.o); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
	alone := Spec{Profile: "full", Greeting: "Hello {{name}}!", Parameters: []string{"name"}}
	if faults := alone.Faults(); len(faults) > 0 {
		t.Errorf("a parameter of the greeting alone: %v", faults)
	}
}

func TestWhatAnAgentDoesNotAllow(t *testing.T) {
	s := Spec{Model: "a:own", Models: []string{"a:other"}, Prompt: "{{x}}", Parameters: []string{"x"}}
	x := map[string]string{"x": ""}
	for name, c := range map[string]struct {
		o     *sessionv1.TurnOptions
		whole bool
		want  string // the field, and a part of the text
	}{
		"its own model":         {&sessionv1.TurnOptions{Model: "a:own", Parameters: x}, true, ""},
		"another of its models": {&sessionv1.TurnOptions{Model: "a:other", Parameters: x}, true, ""},
		"a foreign model":       {&sessionv1.TurnOptions{Model: "a:dear"}, false, "model it allows a:own, a:other. Add the model to the agent's key models"},
		"a foreign parameter":   {&sessionv1.TurnOptions{Parameters: map[string]string{"y": ""}}, false, `parameters no parameter "y"; it has x`},
		"a missing parameter":   {nil, true, `parameters "x" has no value`},
		"one to come":           {nil, false, ""},
	} {
		fault := s.CheckOptions(c.o, "a:default", c.whole)
		field, text, _ := strings.Cut(c.want, " ")
		if (fault == nil) != (c.want == "") || fault != nil && (fault.Field != field || !strings.Contains(fault.Text, text)) {
			t.Errorf("%s: %v, want %q", name, fault, c.want)
		}
	}
	if fault := (Spec{}).CheckOptions(&sessionv1.TurnOptions{Model: "a:default"}, "a:default", true); fault != nil {
		t.Errorf("the default model: %v", fault)
	}
}
