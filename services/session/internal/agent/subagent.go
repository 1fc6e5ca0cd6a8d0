package agent

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/session/internal/mcp"
)

// TaskTool is the tool with which an agent gives work to its subagents.
const TaskTool = "Task"

// Subagent is an agent that another one may give a part of its work to: a definition of its own, or
// the name of another agent.
type Subagent struct {
	Name        string   `key:"name" json:"name" help:"the name by which the model asks for it"`
	Description string   `key:"description" json:"description,omitempty" help:"what it is for, for the model; empty: the description of agent"`
	Prompt      string   `key:"prompt" json:"prompt,omitempty" help:"its system prompt"`
	Tools       []string `key:"tools" json:"tools,omitempty" help:"its tools, of those of the agent; empty: all but Task, or those of agent that the agent has, too"`
	Model       string   `key:"model" json:"model,omitempty" help:"its model as provider:model; empty: the agent's"`
	MaxSteps    int      `key:"max-steps" json:"max_steps,omitempty" help:"the most model calls for one piece of work; 0: as many as a turn of the agent has"`
	Agent       string   `key:"agent" json:"agent,omitempty" help:"another agent, as agents/NAME, instead of a prompt"`
}

var agentForm = regexp.MustCompile(`^agents/[a-z][a-z0-9-]{0,62}$`)

// Subagent returns the subagent of this name.
func (s Spec) Subagent(name string) (Subagent, bool) {
	i := slices.IndexFunc(s.Subagents, func(a Subagent) bool { return a.Name == name })
	if i < 0 {
		return Subagent{}, false
	}
	return s.Subagents[i], true
}

// checkSubagents returns the field that breaks a rule, and how.
func (s Spec) checkSubagents() (string, error) {
	switch has := slices.Contains(s.Tools, TaskTool); {
	case has && len(s.Subagents) == 0:
		return "tools", fmt.Errorf("tools: %s needs subagents", TaskTool)
	case !has && len(s.Subagents) > 0:
		return "subagents", fmt.Errorf("subagents: the agent needs the tool %s to give them work: add it to tools", TaskTool)
	}
	seen := map[string]bool{}
	for _, a := range s.Subagents {
		if err := s.checkSubagent(a); err != nil {
			return "subagents", fmt.Errorf("subagent %q: %w", a.Name, err)
		}
		if seen[a.Name] {
			return "subagents", fmt.Errorf("subagent %q: there are two of this name", a.Name)
		}
		seen[a.Name] = true
	}
	return "", nil
}

func (s Spec) checkSubagent(a Subagent) error {
	switch {
	case !validName.MatchString(a.Name):
		return fmt.Errorf("a name is lower-case letters, digits and dashes, and begins with a letter")
	case a.Agent == "" && a.Prompt == "":
		return fmt.Errorf("it has neither a prompt nor an agent")
	case a.Agent != "" && a.Prompt != "":
		return fmt.Errorf("it has a prompt and an agent: give one of them")
	case a.Agent != "" && !agentForm.MatchString(a.Agent):
		return fmt.Errorf("agent %q is not of the form agents/NAME", a.Agent)
	case a.Agent == "" && a.Description == "":
		return fmt.Errorf("description is missing: the model chooses a subagent by it")
	case a.MaxSteps < 0:
		return fmt.Errorf("max_steps is negative")
	}
	for _, tool := range a.Tools {
		if !covers(s.offered(), tool) {
			return fmt.Errorf("the agent itself has no tool %s, and a subagent has no more than its agent", tool)
		}
	}
	return nil
}

// Narrowed returns the spec of a subagent's session. of is the agent that it names; nil: it is
// defined here. The sandbox, the permissions and the environment are those of s, because the two share
// a workspace. last says that the subagent is as deep as one may be: it gives no work away.
func (s Spec) Narrowed(a Subagent, of *Spec, last bool) Spec {
	child := s
	child.Description, child.Greeting, child.Parameters, child.Repositories = cmp.Or(a.Description, s.Description), "", nil, nil
	child.Checkpoints, child.PreCompaction = []string{}, "" // the files are the parent's
	if of == nil {
		child.Prompt, child.Verdict, child.OutputSchema = a.Prompt, "", ""
		child.Tools = common(s.offered(), a.Tools)
		if len(a.Tools) == 0 {
			child.Tools = without(s.Tools, TaskTool)
		}
	} else {
		child.Prompt, child.Verdict, child.OutputSchema, child.Subagents, child.TurnLimits = of.Prompt, of.Verdict, of.OutputSchema, of.Subagents, of.TurnLimits
		child.Models, child.Model = of.Models, cmp.Or(of.Model, s.Model)
		child.Further = append(slices.Clip(s.Further), of.Permissions)
		child.Tools = common(s.offered(), of.offered())
		if len(a.Tools) > 0 {
			child.Tools = common(child.Tools, a.Tools)
		}
	}
	if of != nil || len(a.Tools) > 0 {
		child.MCPServers = serversOf(s.MCPServers, child.Tools)
	}
	child.Model, child.MaxSteps = cmp.Or(a.Model, child.Model), cmp.Or(a.MaxSteps, child.MaxSteps)
	if last || !slices.Contains(child.Tools, TaskTool) {
		child.Tools, child.Subagents = without(child.Tools, TaskTool), nil
	}
	return child
}

// offered returns the tools of the agent, and a prefix for each of its own MCP servers, whose tools it has
// without naming them.
func (s Spec) offered() []string {
	all := slices.Clone(s.Tools)
	for _, name := range s.MCPServers.Names() {
		all = append(all, mcpPrefix(name)+"*")
	}
	return all
}

func mcpPrefix(server string) string { return "mcp__" + server + "__" }

// serversOf returns the MCP servers that a list of tools names, each with the tools of it that the list has.
func serversOf(servers mcp.Servers, tools []string) mcp.Servers {
	kept := mcp.Servers{}
	for name, server := range servers {
		var only []string
		for _, t := range tools {
			if own, ok := strings.CutPrefix(t, mcpPrefix(name)); ok {
				only = append(only, own)
			}
		}
		if len(only) == 0 {
			continue
		}
		if !slices.Contains(only, "*") {
			if len(server.Tools) > 0 {
				only = common(only, server.Tools)
			}
			server.Tools = only
		}
		kept[name] = server
	}
	if len(kept) == 0 {
		return nil
	}
	return kept
}

// common returns the tools that both lists have, in order. An entry that ends in * is a prefix.
func common(a, b []string) []string {
	var both []string
	for _, t := range slices.Concat(a, b) {
		if covers(a, t) && covers(b, t) && !slices.Contains(both, t) {
			both = append(both, t)
		}
	}
	slices.Sort(both)
	return both
}

// covers reports whether a list of tools and prefixes has a tool, or all of a prefix.
func covers(list []string, tool string) bool {
	return slices.ContainsFunc(list, func(t string) bool {
		begin, isPrefix := strings.CutSuffix(t, "*")
		return t == tool || isPrefix && strings.HasPrefix(tool, begin)
	})
}

func without(tools []string, tool string) []string {
	return slices.DeleteFunc(slices.Clone(tools), func(t string) bool { return t == tool })
}

// DescribeSubagents says which subagents there are, for the model.
func (s Spec) DescribeSubagents() string {
	var b strings.Builder
	b.WriteString("\n\nThe subagents are:")
	for _, a := range s.Subagents {
		fmt.Fprintf(&b, "\n- %s: %s", a.Name, cmp.Or(a.Description, "see "+a.Agent))
	}
	return b.String()
}

func subagentsFrom(all []*sessionv1.Subagent) []Subagent {
	var out []Subagent
	for _, a := range all {
		out = append(out, Subagent{
			Name: a.GetName(), Description: a.GetDescription(), Prompt: a.GetPrompt(), Tools: a.GetTools(), Model: a.GetModel(),
			MaxSteps: int(a.GetMaxSteps()), Agent: a.GetAgent(),
		})
	}
	return out
}

func (s Spec) subagentsProto() []*sessionv1.Subagent {
	var out []*sessionv1.Subagent
	for _, a := range s.Subagents {
		out = append(out, &sessionv1.Subagent{
			Name: a.Name, Description: a.Description, Prompt: a.Prompt, Tools: a.Tools, Model: a.Model, MaxSteps: int32(a.MaxSteps), Agent: a.Agent,
		})
	}
	return out
}
