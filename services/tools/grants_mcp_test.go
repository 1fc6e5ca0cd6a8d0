package tools

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	toolsv1 "github.com/fairlead/fairlead/gen/go/fairlead/tools/v1"
)

// TestAGrantHoldsForTheDefinitionOfAToolAndItsServer changes a tool of a server, and its server, after a person allowed it
// always.
func TestAGrantHoldsForTheDefinitionOfAToolAndItsServer(t *testing.T) {
	plain := func() *mcp.Tool {
		return &mcp.Tool{Name: "list", Description: "lists", InputSchema: json.RawMessage(`{"type":"object","properties":{"a":{"type":"string"}}}`)}
	}
	yes := true
	for name, c := range map[string]struct {
		change func(*mcp.Tool) // nil: another server
		says   string          // empty: the grant holds
	}{
		"nothing": {func(*mcp.Tool) {}, ""},
		"the order of the schema": {func(t *mcp.Tool) {
			t.InputSchema = json.RawMessage(`{"properties": {"a": {"type": "string"}}, "type": "object"}`)
		}, ""},
		"the description":             {func(t *mcp.Tool) { t.Description = "lists and sends" }, "its description has changed"},
		"the title":                   {func(t *mcp.Tool) { t.Title = "List" }, "its description has changed"},
		"the schema of the arguments": {func(t *mcp.Tool) { t.InputSchema = json.RawMessage(`{"type":"object"}`) }, "its arguments have changed"},
		"a description in the schema": {func(t *mcp.Tool) {
			t.InputSchema = json.RawMessage(`{"type":"object","properties":{"a":{"type":"string","description":"x"}}}`)
		}, "its arguments have changed"},
		"the schema of the results":     {func(t *mcp.Tool) { t.OutputSchema = json.RawMessage(`{"type":"object"}`) }, "its results have changed"},
		"a hint":                        {func(t *mcp.Tool) { t.Annotations = &mcp.ToolAnnotations{ReadOnlyHint: true} }, "its hints have changed"},
		"a hint of destruction":         {func(t *mcp.Tool) { t.Annotations = &mcp.ToolAnnotations{DestructiveHint: &yes} }, "its hints have changed"},
		"the description and the hints": {func(t *mcp.Tool) { t.Description, t.Annotations = "x", &mcp.ToolAnnotations{IdempotentHint: true} }, "its description and hints have changed"},
		"the server":                    {nil, "its server has changed"},
	} {
		t.Run(name, func(t *testing.T) {
			r, other, f := newRemote(t, false), newRemote(t, false), local(t)
			r.sdk.AddTool(plain(), echo)
			call := func(id string, of *sdkServer) *toolsv1.CallToolRequest {
				q := mcpCall(id, "mcp__github__list", `{}`, of.as("github"))
				q.Profile = "ask-writes"
				return q
			}
			f.must(granting(call("c1", r), forAlways, ""), outcomeOK)
			f.must(call("c2", r), outcomeOK)
			e, err := f.profiles().ExplainCall(t.Context(), &toolsv1.ExplainCallRequest{Name: "profiles/ask-writes", Tool: "mcp__github__list"})
			if err != nil || e.GetDecision() != toolsv1.CallDecisionKind_CALL_DECISION_KIND_ALLOW || len(e.GetGrants()) != 1 {
				t.Errorf("it is explained as %v, %v", e, err)
			}
			f.stop()
			used := r
			if c.change == nil {
				other.sdk.AddTool(plain(), echo)
				used = other
			} else {
				changed := plain()
				c.change(changed)
				r.sdk.AddTool(changed, echo)
			}
			f.start()
			if c.says == "" {
				f.must(call("c3", used), outcomeOK)
				return
			}
			a, err := f.call(call("c3", used))
			if err != nil || a.ask == nil || !strings.Contains(a.ask.GetRule(), c.says) || !strings.Contains(a.ask.GetRule(), "ann always") {
				t.Fatalf("got %v, %v, %v", a.ask, a.decision, err)
			}
			f.must(granting(call("c3", used), forAlways, "mcp__github__list"), outcomeOK)
			f.must(call("c4", used), outcomeOK)
		})
	}
}
