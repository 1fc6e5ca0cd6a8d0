// Package agent has the agents: their prompts, models, tools and permission
// profiles. A session is pinned to the revision of its agent with which it
// began.
package agent

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	toolsv1 "github.com/fairlead/fairlead/gen/go/fairlead/tools/v1"
	"github.com/fairlead/fairlead/services/internal/kit/config"
	"github.com/fairlead/fairlead/services/session/internal/mcp"
)

// Spec is one agent. An empty field means the server's default.
type Spec struct {
	Description string   `key:"description" json:"description,omitempty" help:"what the agent is for, in a sentence"`
	Model       string   `key:"model" json:"model,omitempty" help:"the model as provider:model; empty: the server's default model"`
	Models      []string `key:"models" json:"models,omitempty" help:"other models that a turn may choose, as provider:model; * for every usable model"`
	Prompt      string   `key:"prompt" json:"prompt,omitempty" help:"the system prompt"`
	Tools       []string `key:"tools" json:"tools,omitempty" help:"the tools that the agent may ask for"`
	Profile     string   `key:"profile" json:"profile,omitempty" help:"the permission profile that decides on the agent's calls"`
	Parameters  []string `key:"parameters" json:"parameters,omitempty" help:"names of the prompt's parameters: {{name}} in the prompt stands for the value that each turn gives"`
	Greeting    string   `key:"greeting" json:"greeting,omitempty" help:"the agent's first message in a new session"`

	Verdict       string      `key:"verdict" json:"verdict,omitempty" help:"how the agent reports the outcome of its work: none, tool (it calls finish) or header (its final message begins with it)"`
	OutputSchema  config.JSON `key:"output-schema" json:"output_schema_json,omitempty" help:"the JSON Schema (2020-12) of the structured output that the agent must return; it returns the output with the tool finish"`
	PreCompaction string      `key:"pre-compaction" json:"pre_compaction,omitempty" help:"a shell command that runs in the workspace before the conversation is compacted; its output is kept in the summary"`

	// Checkpoints of nil means the server's list; an empty list switches
	// checkpoints off.
	Checkpoints []string `key:"checkpoints" json:"checkpoints,omitzero" help:"tools that trigger a checkpoint before their call: names, prefixes such as mcp__files__*, or * for every tool that may change something; an empty list: no checkpoints, and a rolled-back turn keeps its file changes; not set: the server's list"`

	Network []NetworkRule `key:"network" json:"network,omitempty" help:"destinations that the agent's commands may reach, within the limits of the sandbox's operator; none: no network"`
	Limits  Limits        `key:"limits" json:"limits,omitzero" help:"limits of the agent's workspace and commands, below the limits of the sandbox's operator"`

	Mounts []Mount `key:"mounts" json:"mounts,omitempty" help:"the mounts of the sandbox's operator that sessions request, besides the mounts that every session gets"`

	Environment string `key:"environment" json:"environment,omitempty" help:"the environment of sessions that name none, as environments/NAME; each tenant needs one of that name"`
	// Pinned is the environment of a session; an agent has none.
	Pinned *Environment `key:"-" json:"pinned,omitempty"`

	Repositories []Repository `key:"repositories" json:"repositories,omitempty" help:"Git repositories that sessions start with, within the limits of the sandbox's operator"`

	TurnLimits
	Extensions
}

// Extensions are what an agent brings besides the tools and profiles of the service.
type Extensions struct {
	MCPServers mcp.Servers `key:"mcp-servers" json:"mcp_servers,omitempty" help:"MCP servers whose tools the agent gets, by name, besides those of the operator that tools names"`
	Subagents  []Subagent  `key:"subagents" json:"subagents,omitempty" help:"the agents that the agent may give work to, with the tool Task"`

	Skills []string `key:"skills" json:"skills,omitempty" help:"the skills that sessions have, by name, such as pdf, or pdf@2 for one version; the user's skill of a name comes before the tenant's, and the tenant's before the one in session.skills.dir; * for every skill that the user has, up to 32"`
	// PinnedSkills are the skills of a session; an agent has none.
	PinnedSkills []Skill `key:"-" json:"pinned_skills,omitempty"`

	Runtime    string     `key:"runtime" json:"runtime,omitempty" help:"what drives the agent's turns: native, or claude-code for the Claude Code CLI; empty: native"`
	ClaudeCode ClaudeCode `key:"claude-code" json:"claude_code,omitzero"`

	Permissions Permissions `key:"permissions" json:"permissions,omitzero" help:"rules that narrow what the profile allows"`
	// MetadataJSON is kept for those who made the agent by the API.
	MetadataJSON string `key:"-" json:"metadata_json,omitempty"`

	// Further are the rules of the agents that a subagent names, its own and those above; an agent has none.
	Further []Permissions `key:"-" json:"further_permissions,omitempty"`
}

// TurnLimits are the limits of each turn of an agent. Zeros mean the server's.
type TurnLimits struct {
	MaxSteps        int           `key:"max-steps" json:"max_steps,omitempty" help:"the most model calls of a turn"`
	MaxWallTime     time.Duration `key:"max-wall-time" json:"max_wall_time,omitempty" help:"the most time of a turn"`
	MaxOutputTokens int64         `key:"max-output-tokens" json:"max_output_tokens,omitempty" help:"the most output tokens of a turn"`
}

// Names of the built-in agents.
const (
	Coder     = "coder"
	Assistant = "assistant"
)

// BuiltIn returns the agents that always exist; a configured one of the same
// name replaces it.
func BuiltIn() map[string]Spec {
	return map[string]Spec{
		Coder: {
			Description: "Writes and changes programs: reads, edits and runs what is in the workspace.",
			Profile:     "full",
			Models:      []string{Every},
			Extensions:  Extensions{Skills: []string{Every}},
			Tools:       []string{"Bash", "Edit", "Glob", "Grep", "LS", "MultiEdit", "Read", "TodoWrite", "Write", "cancel_operation", "check_operation"},
			Prompt: `You are a careful software engineer who works in the directory /workspace.
Look before you change: read the files and run the tests first. Make the smallest change that solves the problem,
then run the tests again and report what you did and what you saw. Commands run in a sandbox without a network.
Let commands that take minutes run in the background, and look at them with check_operation.
File paths are absolute below /workspace, or relative to it. Keep a list of things to do with TodoWrite when a task has several parts.`,
		},
		Assistant: {
			Description: "Answers questions about the workspace and cannot change it.",
			Profile:     "read-only",
			Models:      []string{Every},
			Extensions:  Extensions{Skills: []string{Every}},
			Tools:       []string{"Glob", "Grep", "LS", "Read"},
			Greeting:    "Hello! I can look through this workspace and answer questions about it. I cannot change anything in it. What would you like to know?",
			Prompt: `You answer questions about the files in /workspace. You can read and search them; you cannot change anything and cannot run commands.
Look things up before you answer, name the files and lines that support your answer, and say when something does not exist.`,
		},
	}
}

var validName = regexp.MustCompile(`^[a-z][a-z0-9-]{0,62}$`)

// Agent is an agent with its name and revision.
type Agent struct {
	ID       string // without `agents/`
	Revision string
	Version  int32 // 0: it is of the configuration
	Spec     Spec
}

// New returns the agent of a spec. The order of tools has no meaning.
func New(id string, spec Spec) Agent {
	spec.Tools = slices.Sorted(slices.Values(spec.Tools))
	return Agent{ID: id, Revision: spec.revision(), Spec: spec}
}

// Needs returns what the tools service must have for the agent.
func (a Agent) Needs() *toolsv1.AgentNeeds {
	return &toolsv1.AgentNeeds{
		Agent: a.ID, Profile: a.Spec.Profile, Tools: a.Spec.Tools, McpServers: a.Spec.MCPServers.Names(), Permissions: a.Spec.Permissions.Proto(),
	}
}

// Set has the agents of a server. It does not change.
type Set struct {
	agents map[string]Agent
	dflt   string
}

// NewSet joins the built-in agents with the configured ones. It reports every
// fault at once.
func NewSet(configured map[string]Spec, dflt string) (*Set, error) {
	specs := BuiltIn()
	maps.Copy(specs, configured)
	s := &Set{agents: map[string]Agent{}, dflt: dflt}
	var faults []string
	for id, spec := range specs {
		if !validName.MatchString(id) {
			faults = append(faults, fmt.Sprintf("agent %q: a name is lower-case letters, digits and dashes, and begins with a letter", id))
		}
		for _, fault := range spec.Faults() {
			faults = append(faults, fmt.Sprintf("agent %q: %s", id, fault.Text))
		}
		for _, a := range spec.Subagents {
			if _, ok := specs[strings.TrimPrefix(a.Agent, "agents/")]; a.Agent != "" && !ok {
				faults = append(faults, fmt.Sprintf("agent %q: subagent %q: there is no %s in the configuration", id, a.Name, a.Agent))
			}
		}
		s.agents[id] = New(id, spec)
	}
	if _, ok := s.agents[dflt]; !ok {
		faults = append(faults, fmt.Sprintf("default-agent %q does not exist; there are %s", dflt, strings.Join(s.names(), ", ")))
	}
	if len(faults) > 0 {
		slices.Sort(faults)
		return nil, fmt.Errorf("agents: %s", strings.Join(faults, "; "))
	}
	return s, nil
}

// revision returns a digest of the agent's whole configuration.
func (s Spec) revision() string {
	sum := sha256.Sum256(s.Marshal())
	return hex.EncodeToString(sum[:8])
}

// Marshal returns the stored form of a revision.
func (s Spec) Marshal() []byte {
	b, err := json.Marshal(s)
	if err != nil {
		panic(err) // strings and numbers always marshal
	}
	return b
}

// Unmarshal parses the output of Marshal.
func Unmarshal(b []byte) (Spec, error) {
	var s Spec
	if err := json.Unmarshal(b, &s); err != nil {
		return s, fmt.Errorf("read an agent's revision: %w", err)
	}
	return s, nil
}

// Get returns the agent named `agents/{agent}` or `{agent}`, or the default one
// for "".
func (s *Set) Get(name string) (Agent, bool) {
	id := strings.TrimPrefix(name, "agents/")
	if id == "" {
		id = s.dflt
	}
	a, ok := s.agents[id]
	return a, ok
}

// All lists the agents by name.
func (s *Set) All() []Agent {
	var all []Agent
	for _, id := range s.names() {
		all = append(all, s.agents[id])
	}
	return all
}

// Default returns the id of the agent for sessions that name none.
func (s *Set) Default() string { return s.dflt }

func (s *Set) names() []string { return slices.Sorted(maps.Keys(s.agents)) }

// Name returns the resource name.
func (a Agent) Name() string { return "agents/" + a.ID }

// Proto returns the public form. defaultModel is shown if the agent names no
// model.
func (a Agent) Proto(defaultModel string, isDefault bool) *sessionv1.Agent {
	model := a.Spec.Model
	if model == "" {
		model = defaultModel
	}
	schema := ""
	if a.Spec.OwesOutput() {
		schema = string(a.Spec.OutputSchema)
	}
	return &sessionv1.Agent{
		Name: a.Name(), Revision: a.Revision, Version: a.Version, Description: a.Spec.Description, Model: model,
		Tools: a.Spec.Tools, Profile: a.Spec.Profile, Greeting: a.Spec.Greeting, Default: isDefault,
		Verdict: cmp.Or(a.Spec.Verdict, VerdictNone), OutputSchemaJson: schema,
		Network: a.Spec.networkProto(), Limits: a.Spec.limitsProto(), Mounts: mountsProto(a.Spec.Mounts), Repositories: a.Spec.repositoriesProto(),
		Environment: a.Spec.Environment, Skills: a.Spec.Skills, Models: a.Spec.Models, Parameters: a.Spec.Parameters,
		Permissions: a.Spec.Permissions.Proto(), MetadataJson: a.Spec.MetadataJSON,
	}
}
