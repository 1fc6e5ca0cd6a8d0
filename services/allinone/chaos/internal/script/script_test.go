package script_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	yaml "go.yaml.in/yaml/v3"

	"github.com/fairlead/fairlead/services/allinone/chaos/internal/script"
)

func TestASeedMakesOneScript(t *testing.T) {
	if d := cmp.Diff(script.New(3).YAML(), script.New(3).YAML()); d != "" {
		t.Error(d)
	}
	if script.New(3).YAML() == script.New(4).YAML() {
		t.Error("two seeds make the same script")
	}
}

func TestEffectsAreUnlikeEachOther(t *testing.T) {
	s := script.New(5)
	seen := map[string]bool{}
	for plan := range s.Plans {
		for _, rest := range []string{"one", "two"} {
			want, ok := s.Expect(script.Text(plan, rest))
			if !ok || want.Final == "" || strings.Contains(want.Final, "{{") {
				t.Fatalf("plan %d expects %+v", plan, want)
			}
			for _, step := range want.Steps {
				for _, c := range step.Calls {
					if c.Effect != "" && seen[c.Effect] {
						t.Errorf("the effect %s is there twice", c.Effect)
					}
					seen[c.Effect] = true
				}
			}
		}
	}
	if _, ok := s.Expect("something else"); ok {
		t.Error("there is a plan for any text")
	}
}

func TestTheScenarioSaysWhatIsExpected(t *testing.T) {
	s := script.New(6)
	var scenario struct {
		Turns []struct {
			When  string
			Steps []struct {
				Text, Thinking []string
				Tools          []struct {
					Name  string
					Input map[string]any
				}
			}
		}
	}
	if err := yaml.Unmarshal([]byte(s.YAML()), &scenario); err != nil {
		t.Fatal(err)
	}
	for plan, turn := range scenario.Turns[:len(s.Plans)] {
		want, _ := s.Expect(script.Text(plan, "x"))
		for i, step := range turn.Steps {
			said := strings.ReplaceAll(strings.Join(step.Text, ""), "{{ .UserText }}", script.Text(plan, "x"))
			if said != strings.Join(want.Steps[i].Text, "") {
				t.Errorf("step %d of plan %d says %q", i+1, plan, said)
			}
			for j, c := range step.Tools {
				text, _ := c.Input["command"].(string)
				command := strings.ReplaceAll(text, "{{ .UserText }}", script.Text(plan, "x"))
				call := want.Steps[i].Calls[j]
				if c.Name == script.Here || c.Name == script.There {
					if line, _ := c.Input["line"].(string); strings.ReplaceAll(line, "{{ .UserText }}", script.Text(plan, "x")) != call.Effect+call.Noted {
						t.Errorf("call %d of step %d of plan %d notes %q, want %s", j+1, i+1, plan, line, call.Effect+call.Noted)
					}
					continue
				}
				if e := call.Effect; strings.Count(command, e+"' >> ") != 1 && e != "" {
					t.Errorf("call %d of step %d of plan %d runs %q, want the effect %s", j+1, i+1, plan, command, e)
				}
				if background := c.Input["run_in_background"] == true; background != (call.Last != "") || strings.Count(command, call.Last+"'") < 2 && background {
					t.Errorf("call %d of step %d of plan %d runs %q, and its operation ends with %q", j+1, i+1, plan, command, call.Last)
				}
				if call.Asked != strings.HasPrefix(command, "printf ") {
					t.Errorf("call %d of step %d of plan %d runs %q, and that it is asked about is %t", j+1, i+1, plan, command, call.Asked)
				}
			}
		}
	}
}
