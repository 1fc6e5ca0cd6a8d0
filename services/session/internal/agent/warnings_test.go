package agent

import (
	"strings"
	"testing"
)

func TestWhatAnAgentMayNotHaveMeant(t *testing.T) {
	for name, tt := range map[string]struct {
		spec Spec
		want string // parts of the warnings, with | between them
	}{
		"all is well":                      {Spec{Profile: "full", Tools: []string{"Read", "Write"}, Checkpoints: []string{"Write", "mcp__files__*", "*"}}, ""},
		"only talks":                       {Spec{Profile: "read-only"}, ""},
		"no tools for its profile":         {Spec{Profile: "full"}, "tools: the list is empty, but the agent has the profile full"},
		"no tools for its limits":          {Spec{Profile: "own", Limits: Limits{Memory: 1 << 30}}, "has limits"},
		"no tools for its network":         {Spec{Profile: "own", Network: []NetworkRule{{Host: "a"}}}, "has a network"},
		"no tools for its repositories":    {Spec{Profile: "own", Repositories: []Repository{{}}}, "has repositories"},
		"no tools for its mounts":          {Spec{Profile: "own", Mounts: []Mount{{Name: "a"}}}, "has mounts"},
		"checkpoints before no tool of it": {Spec{Profile: "own", Tools: []string{"Write"}, Checkpoints: []string{"Wrte", "Write", "Edt"}}, `checkpoints: "Wrte"|checkpoints: "Edt"`},
	} {
		got := Agent{Spec: tt.spec}.Warnings()
		want := strings.FieldsFunc(tt.want, func(r rune) bool { return r == '|' })
		if len(got) != len(want) {
			t.Errorf("%s: %q, want %q", name, got, want)
			continue
		}
		for i := range want {
			if !strings.Contains(got[i], want[i]) {
				t.Errorf("%s: %q, want %q", name, got[i], want[i])
			}
		}
	}
}

func TestTheBuiltInAgentsAreMeant(t *testing.T) {
	for id, spec := range BuiltIn() {
		if warnings := (Agent{ID: id, Spec: spec}).Warnings(); len(warnings) > 0 {
			t.Errorf("%s: %q", id, warnings)
		}
	}
}
