package agent

import (
	"reflect"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fairlead/fairlead/services/session/internal/mcp"
)

// full has every field, so that a new one that is not converted fails the test.
func full() Spec {
	return Spec{
		Description: "d", Model: "a:b", Models: []string{"a:c"}, Environment: "environments/e", Prompt: "p {{n}}", Parameters: []string{"n"}, Tools: []string{"Read", "Task"}, Profile: "full", Greeting: "g",
		Verdict: "tool", OutputSchema: `{"type":"object"}`, PreCompaction: "ls", Checkpoints: []string{"Read"},
		Network: []NetworkRule{{Name: "n", Host: "a.com", Ports: []int32{1}, Methods: []string{"GET"}, Paths: []string{"/**"}, TLS: "pass", Credential: "c"}},
		Limits:  Limits{1, 2, 3, 4, 5, 6, 7, 8, 9, time.Second, time.Minute},
		Mounts:  []Mount{{Name: "m", Path: "p", Alias: "mnt/m", Mode: "ro", Optional: true}}, Repositories: []Repository{{"https://a/b", "main", "b", 1, "none", "turn_end"}},
		TurnLimits: TurnLimits{MaxSteps: 1, MaxWallTime: time.Second, MaxOutputTokens: 2},
		Extensions: Extensions{MetadataJSON: `{"a":1}`, Runtime: "claude-code", ClaudeCode: ClaudeCode{PresetPrompt: true}, Permissions: Permissions{[]string{"a"}, []string{"b"}, []string{"c"}, []string{"d"}, []string{"e"}, []string{"f"}, []string{"g"}}, Subagents: []Subagent{{Name: "r", Description: "d", Prompt: "p", Tools: []string{"Read"}, Model: "a:d", MaxSteps: 3}, {Name: "o", Agent: "agents/other"}}, MCPServers: mcp.Servers{
			"wiki": {
				URL: "https://a.com", Headers: map[string]string{"A": "b"}, SSE: true, OAuth: mcp.OAuth{ClientID: "c", ClientSecret: "s", Scopes: []string{"r"}},
				Required: true, Tools: []string{"t"}, DisabledTools: []string{"u"}, Timeout: time.Second, Trusted: true,
			},
			"files": {Command: "npx", Args: []string{"x"}, Env: map[string]string{"A": "b"}},
		}},
	}
}

func TestASpecIsTheSameAfterTheAPI(t *testing.T) {
	spec := full()
	v := reflect.ValueOf(spec)
	for i := range v.NumField() {
		if v.Field(i).IsZero() && v.Type().Field(i).Name != "Pinned" {
			t.Errorf("the test does not set %s", v.Type().Field(i).Name)
		}
	}
	if faults := spec.Faults(); len(faults) > 0 {
		t.Error(faults)
	}
	for name, want := range map[string]Spec{"full": spec, "empty": {}, "no checkpoints": {Checkpoints: []string{}}} {
		if d := cmp.Diff(want, FromProto(want.ToProto())); d != "" {
			t.Errorf("%s: %s", name, d)
		}
	}
	if New("a", FromProto(BuiltIn()[Coder].ToProto())).Revision != New("a", BuiltIn()[Coder]).Revision {
		t.Error("the same agent has another revision after the API")
	}
}

func TestAFaultNamesItsField(t *testing.T) {
	for want, change := range map[string]func(*Spec){
		"parameters":         func(s *Spec) { s.Parameters = []string{"other"} },
		"runtime":            func(s *Spec) { s.Runtime = "other" },
		"claude_code":        func(s *Spec) { s.Runtime = "native" },
		"profile":            func(s *Spec) { s.Profile = "" },
		"verdict":            func(s *Spec) { s.Verdict = "maybe" },
		"tools":              func(s *Spec) { s.Tools = []string{"finish", "Read", "Task"} },
		"output_schema_json": func(s *Spec) { s.OutputSchema = `{"type":1}` },
		"checkpoints":        func(s *Spec) { s.Checkpoints = []string{"a*b"} },
		"network":            func(s *Spec) { s.Network[0].Host = "" },
		"limits":             func(s *Spec) { s.Limits.Memory = -1 },
		"mounts":             func(s *Spec) { s.Mounts = []Mount{{Name: "../etc"}} },
		"repositories":       func(s *Spec) { s.Repositories[0].URL = "git@host" },
		"mcp_servers":        func(s *Spec) { s.MCPServers["a__b"] = mcp.Server{Command: "x"} },
		"subagents":          func(s *Spec) { s.Subagents[0].Tools = []string{"Bash"} },
		"max_steps":          func(s *Spec) { s.MaxSteps = -1 },
		"max_wall_time":      func(s *Spec) { s.MaxWallTime = -1 },
		"max_output_tokens":  func(s *Spec) { s.MaxOutputTokens = -1 },
	} {
		spec := full()
		change(&spec)
		if faults := spec.Faults(); len(faults) != 1 || faults[0].Field != want || faults[0].Text == "" {
			t.Errorf("%s: %v", want, faults)
		}
	}
}
