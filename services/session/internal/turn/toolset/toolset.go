// Package toolset lists the tools that a session's model may ask for, and knows what they are like.
package toolset

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	commonv1 "github.com/fairlead/fairlead/gen/go/fairlead/common/v1"
	toolsv1 "github.com/fairlead/fairlead/gen/go/fairlead/tools/v1"
	"github.com/fairlead/fairlead/services/internal/kit/schema"
	"github.com/fairlead/fairlead/services/session/internal/agent"
	"github.com/fairlead/fairlead/services/session/internal/mcp"
	"github.com/fairlead/fairlead/services/session/internal/model"
	"github.com/fairlead/fairlead/services/session/internal/turn/state"
	"github.com/fairlead/fairlead/services/session/internal/verdict"
)

// AnyObject is the schema of a tool without one.
const AnyObject = `{"type":"object"}`

// Toolset has the tools of one session.
type Toolset struct {
	list Lister

	mu      sync.Mutex
	turn    string // whose servers are loaded
	servers mcp.Loaded

	parallel map[string]bool // tools whose calls may run at the same time; nil: not listed yet
	readOnly map[string]bool // tools that change nothing
}

// Lister lists the tools of a session, and what works of its MCP servers.
type Lister func(context.Context, *toolsv1.ListSessionToolsRequest) ([]*toolsv1.Tool, []*commonv1.McpServerStatus, error)

const (
	// requiredPatience is how long a turn waits for a server that it needs and that is being connected.
	requiredPatience = 30 * time.Second
	// requiredPause is the wait before the list is read again then.
	requiredPause = 500 * time.Millisecond
)

// New returns the tools of a session, which are not listed yet.
func New(list Lister) *Toolset { return &Toolset{list: list} }

// Listed reports whether the tools have been listed. Until then no tool is known to be read-only
// or parallel.
func (s *Toolset) Listed() bool { return s.parallel != nil }

// Parallel reports whether calls of a tool may run at the same time.
func (s *Toolset) Parallel(tool string) bool { return s.parallel[tool] }

// MayChange reports whether a call of a tool may change something in the workspace or outside of the service.
func (s *Toolset) MayChange(t *state.Turn, tool string) bool {
	return tool != state.TodoTool && tool != state.PlanTool && tool != agent.SkillTool && tool != agent.CreateTool && tool != agent.EditTool && !s.readOnly[tool] && t.Client[tool] == nil
}

// List returns the tools that the model may ask for: the agent's, the MCP servers' and the
// client's, by name, so that the beginning of each request stays the same. It reports changes of
// the servers in the log. The error is an *UnavailableError if a server that the turn needs cannot
// be used.
func (s *Toolset) List(sc state.Scope) ([]model.Tool, error) {
	listed, err := s.listed(sc)
	if err != nil {
		return nil, err
	}
	var tools []model.Tool
	parallel, readOnly := map[string]bool{}, map[string]bool{}
	for _, t := range listed {
		name := strings.TrimPrefix(t.Name, "tools/")
		if sc.Active.Client[name] != nil || name == agent.SkillTool && len(sc.Spec.PinnedSkills) == 0 || name == state.PlanTool && !state.Plans(sc.Session) {
			continue
		}
		description := t.Description + sc.Spec.DescribeNetwork(name)
		if name == agent.TaskTool {
			description += sc.Spec.DescribeSubagents()
		}
		with, err := appendTool(tools, name, description, t.InputSchemaJson)
		if err != nil && OfServer(name) {
			sc.Logger.InfoContext(sc, "the model does not get a tool of an mcp server", "session", sc.Lease.Session, "tool", name, "error", err)
			continue // what a server brings must not end the turn
		}
		if err != nil {
			return nil, err
		}
		tools, parallel[name], readOnly[name] = with, t.Parallel, t.ReadOnly
	}
	for name, t := range sc.Active.Client {
		if tools, err = appendTool(tools, name, t.Description, t.InputSchemaJson); err != nil {
			return nil, err
		}
	}
	if sc.Spec.Finishes() {
		output, err := verdict.Compile(string(sc.Spec.OutputSchema))
		if err != nil {
			return nil, err
		}
		tools = append(tools, model.Tool{Name: verdict.Tool, Description: verdict.ToolDescription, InputSchema: verdict.ToolSchema(output)})
	}
	slices.SortFunc(tools, func(a, b model.Tool) int { return strings.Compare(a.Name, b.Name) })
	s.parallel, s.readOnly = parallel, readOnly
	return tools, nil
}

// listed reads the list of tools. It waits for servers that the turn needs.
func (s *Toolset) listed(sc state.Scope) (tools []*toolsv1.Tool, _ error) {
	for begun := time.Now(); ; {
		var servers []*commonv1.McpServerStatus
		err := sc.Patiently(sc.WarnAway("The list of tools cannot be read now"), func() (err error) {
			tools, servers, err = s.request(sc)
			return err
		})
		if err != nil {
			return nil, err
		}
		if err := s.report(sc, servers); err != nil {
			return nil, err
		}
		sc.MCPInstructions = instructionsOf(servers)
		patient := time.Since(begun) < requiredPatience
		if err := missing(servers, patient); err != nil || !patient || !waits(servers) {
			return tools, err
		}
		pause := time.NewTimer(requiredPause)
		select {
		case <-pause.C:
		case <-sc.Done():
			pause.Stop()
			return nil, context.Cause(sc)
		}
	}
}

// request asks once for the list of tools.
func (s *Toolset) request(sc state.Scope) ([]*toolsv1.Tool, []*commonv1.McpServerStatus, error) {
	loaded, err := s.loaded(sc)
	if err != nil {
		return nil, nil, err
	}
	tools, servers, err := s.list(sc, &toolsv1.ListSessionToolsRequest{
		Call: sc.CallRef(sc.Active.ID + ".tools"), Servers: loaded.Servers, AllowedTools: state.AllowedTools(sc.Session),
		Profile: sc.Spec.Profile, Filters: sc.Filters(),
	})
	return tools, slices.Concat(servers, loaded.Broken), err
}

// appendTool adds a tool whose schema is JSON text; an empty schema stands for any object. The
// bytes are the same in every request.
func appendTool(tools []model.Tool, name, description, input string) ([]model.Tool, error) {
	text, err := schema.Typed(cmp.Or(input, AnyObject))
	if err != nil {
		return nil, fmt.Errorf("the schema of tool %s is %w", name, err)
	}
	return append(tools, model.Tool{Name: name, Description: description, InputSchema: json.RawMessage(text)}), nil
}
