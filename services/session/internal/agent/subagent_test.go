package agent

import (
	"slices"
	"strings"
	"testing"

	"github.com/fairlead/fairlead/services/session/internal/mcp"
)

func lead() Spec {
	return Spec{
		Profile: "full", Prompt: "lead", Model: "m:lead", Tools: []string{"Bash", "Read", "Task", "mcp__git__*"}, Greeting: "Hello.",
		Repositories: []Repository{{URL: "https://a/b"}}, TurnLimits: TurnLimits{MaxSteps: 50},
		Extensions: Extensions{Subagents: []Subagent{
			{Name: "reader", Description: "Reads.", Prompt: "read", Tools: []string{"Read", "mcp__git__log"}, Model: "m:small", MaxSteps: 5},
			{Name: "nested", Description: "Gives work on.", Prompt: "nest", Tools: []string{"Read", "Task"}},
			{Name: "plain", Description: "Does what the lead does.", Prompt: "plain"},
			{Name: "other", Agent: "agents/other"},
		}},
	}
}

func TestASubagentHasNoMoreThanItsAgent(t *testing.T) {
	other := Spec{Profile: "full", Prompt: "other", Tools: []string{"Bash", "Write", "Task"}, Extensions: Extensions{Subagents: []Subagent{{Name: "deep", Prompt: "d", Description: "d", Tools: []string{"Write"}}}}}
	for _, c := range []struct {
		name, subagent string
		of             *Spec
		last           bool
		tools          []string
		subagents      int
	}{
		{"it has the tools that it names", "reader", nil, false, []string{"Read", "mcp__git__log"}, 0},
		{"without a list it has all but Task", "plain", nil, false, []string{"Bash", "Read", "mcp__git__*"}, 0},
		{"with Task it has the agent's subagents", "nested", nil, false, []string{"Read", "Task"}, 4},
		{"the deepest one gives no work on", "nested", nil, true, []string{"Read"}, 0},
		{"another agent keeps what both have", "other", &other, false, []string{"Bash", "Task"}, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			a, _ := lead().Subagent(c.subagent)
			got := lead().Narrowed(a, c.of, c.last)
			if !slices.Equal(got.Tools, c.tools) || len(got.Subagents) != c.subagents {
				t.Errorf("the tools are %v, the subagents %v", got.Tools, got.Subagents)
			}
			if got.Profile != "full" || got.Greeting != "" || got.Repositories != nil || got.Checkpoints == nil {
				t.Errorf("the spec is %+v", got)
			}
		})
	}
	a, _ := lead().Subagent("nested")
	inner, _ := lead().Subagent("plain")
	if got := lead().Narrowed(a, nil, false).Narrowed(inner, nil, true).Tools; !slices.Equal(got, []string{"Read"}) {
		t.Errorf("a subagent of a subagent has %v", got)
	}
	if a, _ := lead().Subagent("reader"); lead().Narrowed(a, nil, false).Model != "m:small" || lead().Narrowed(a, nil, false).MaxSteps != 5 {
		t.Error("a subagent's own model and steps do not count")
	}
}

func TestASubagentHasTheToolsOfAnMCPServerThatItNames(t *testing.T) {
	s := lead()
	s.MCPServers = mcp.Servers{"db": {URL: "https://db"}, "web": {URL: "https://web"}}
	s.Subagents = append(s.Subagents, Subagent{Name: "query", Description: "d", Prompt: "p", Tools: []string{"mcp__db__select"}})
	if faults := s.Faults(); len(faults) > 0 {
		t.Fatal(faults)
	}
	a, _ := s.Subagent("query")
	if got := s.Narrowed(a, nil, true).MCPServers; len(got) != 1 || !slices.Equal(got["db"].Tools, []string{"select"}) {
		t.Errorf("it has %v", got)
	}
	a, _ = s.Subagent("plain")
	if got := s.Narrowed(a, nil, true).MCPServers; len(got) != 2 {
		t.Errorf("one without a list has %v", got)
	}
}

func TestFaultsOfSubagents(t *testing.T) {
	for want, change := range map[string]func(*Spec){
		"needs the tool Task":     func(s *Spec) { s.Tools = []string{"Bash", "Read", "mcp__git__*"}; s.Subagents = s.Subagents[:1] },
		"tools: Task needs":       func(s *Spec) { s.Subagents = nil },
		"has no tool Write":       func(s *Spec) { s.Subagents[0].Tools = []string{"Write"} },
		"two of this name":        func(s *Spec) { s.Subagents[1].Name = "reader" },
		"neither a prompt":        func(s *Spec) { s.Subagents[0].Prompt = "" },
		"give one of them":        func(s *Spec) { s.Subagents[0].Agent = "agents/other" },
		"not of the form agents/": func(s *Spec) { s.Subagents[3].Agent = "other" },
		"description is missing":  func(s *Spec) { s.Subagents[0].Description = "" },
		"max_steps is negative":   func(s *Spec) { s.Subagents[0].MaxSteps = -1 },
		"a name is lower-case":    func(s *Spec) { s.Subagents[0].Name = "Reader" },
	} {
		spec := lead()
		change(&spec)
		if faults := spec.Faults(); len(faults) != 1 || !strings.Contains(faults[0].Text, want) {
			t.Errorf("%s: %v", want, faults)
		}
	}
	if faults := lead().Faults(); len(faults) > 0 {
		t.Error(faults)
	}
	if _, err := NewSet(map[string]Spec{"lead": lead()}, "lead"); err == nil || !strings.Contains(err.Error(), "there is no agents/other in the configuration") {
		t.Errorf("an agent that does not exist: %v", err)
	}
}

func TestASubagentHasAllFilters(t *testing.T) {
	denies := func(rule string) Permissions { return Permissions{Deny: []string{rule}} }
	s := lead()
	s.Permissions = denies("a")
	of := Spec{Profile: "full", Tools: []string{"Bash", "Task"}, Extensions: Extensions{Permissions: denies("b")}}
	a, _ := s.Subagent("other")
	child := s.Narrowed(a, &of, false)
	of.Permissions = denies("c")
	child = child.Narrowed(a, &of, true)
	var got []string
	for _, f := range child.Filters(denies("s").Proto()) {
		got = append(got, f.Deny...)
	}
	if !slices.Equal(got, []string{"a", "s", "b", "c"}) {
		t.Errorf("its filters deny %v", got)
	}
	if kept, err := Unmarshal(child.Marshal()); err != nil || len(kept.Filters(nil)) != 3 {
		t.Errorf("the pinned spec has the filters %v, %v", kept.Filters(nil), err)
	}
	if got := s.Filters(denies("a").Proto()); len(got) != 1 {
		t.Errorf("the same rules twice are %v", got)
	}
}

func TestASubagentIsToldOfSkillsOnlyIfItCanReadThem(t *testing.T) {
	parent := Spec{Prompt: "p", Tools: []string{"Read", TaskTool}}.WithSkills([]Skill{{Name: "pdf", Description: "Fills forms."}})
	for name, c := range map[string]struct {
		tools []string
		told  bool
	}{
		"all tools of its agent": {nil, true}, "with the tool": {[]string{"Read", SkillTool}, true}, "without the tool": {[]string{"Read"}, false},
	} {
		child := parent.Narrowed(Subagent{Name: "a", Prompt: "Help.", Tools: c.tools}, nil, true)
		if got := strings.Contains(child.PromptFor(nil), SkillTool); got != c.told {
			t.Errorf("%s: the prompt is %q", name, child.PromptFor(nil))
		}
	}
	for tools, told := range map[string]bool{"Read": false, "Skill": true} {
		child := parent.Narrowed(Subagent{Name: "a", Agent: "agents/x"}, &Spec{Prompt: "Other.", Tools: []string{tools}}, true)
		if got := strings.Contains(child.PromptFor(nil), SkillTool); got != told {
			t.Errorf("an agent with %s: the prompt is %q", tools, child.PromptFor(nil))
		}
	}
}
