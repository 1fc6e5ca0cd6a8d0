// Package toolset lists the tools that a session's model may ask for, and knows what they are like.
package toolset

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	toolsv1 "github.com/fairlead/fairlead/gen/go/fairlead/tools/v1"
	"github.com/fairlead/fairlead/services/internal/kit/schema"
	"github.com/fairlead/fairlead/services/session/internal/model"
	"github.com/fairlead/fairlead/services/session/internal/turn/state"
	"github.com/fairlead/fairlead/services/session/internal/verdict"
)

// AnyObject is the schema of a tool without one.
const AnyObject = `{"type":"object"}`

// Toolset has the tools of one session.
type Toolset struct {
	list     Lister
	parallel map[string]bool // tools whose calls may run at the same time; nil: not listed yet
	readOnly map[string]bool // tools that change nothing
}

// Lister lists all tools of the tools service.
type Lister func(context.Context) ([]*toolsv1.Tool, error)

// New returns the tools of a session, which are not listed yet.
func New(list Lister) *Toolset { return &Toolset{list: list} }

// Listed reports whether the tools have been listed. Until then no tool is known to be read-only
// or parallel.
func (s *Toolset) Listed() bool { return s.parallel != nil }

// Parallel reports whether calls of a tool may run at the same time.
func (s *Toolset) Parallel(tool string) bool { return s.parallel[tool] }

// MayChange reports whether a call of a tool may change something.
func (s *Toolset) MayChange(t *state.Turn, tool string) bool {
	return tool != state.TodoTool && !s.readOnly[tool] && t.Client[tool] == nil
}

// List returns the tools that the model may ask for: the agent's and the client's, by name, so
// that the beginning of each request stays the same.
func (s *Toolset) List(sc state.Scope) ([]model.Tool, error) {
	var listed []*toolsv1.Tool
	err := sc.Patiently(sc.WarnAway("The list of tools cannot be read now"), func() (err error) {
		listed, err = s.list(sc)
		return err
	})
	if err != nil {
		return nil, err
	}
	var tools []model.Tool
	parallel, readOnly := map[string]bool{}, map[string]bool{}
	for _, t := range listed {
		name := strings.TrimPrefix(t.Name, "tools/")
		if !slices.Contains(sc.Spec.Tools, name) || sc.Active.Client[name] != nil {
			continue
		}
		parallel[name], readOnly[name] = t.Parallel, t.ReadOnly
		if tools, err = appendTool(tools, name, t.Description, t.InputSchemaJson); err != nil {
			return nil, err
		}
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

// appendTool adds a tool whose schema is JSON text; an empty schema stands for any object. The
// bytes are the same in every request.
func appendTool(tools []model.Tool, name, description, input string) ([]model.Tool, error) {
	text, err := schema.Typed(cmp.Or(input, AnyObject))
	if err != nil {
		return nil, fmt.Errorf("the schema of tool %s is %w", name, err)
	}
	return append(tools, model.Tool{Name: name, Description: description, InputSchema: json.RawMessage(text)}), nil
}
