package mcp

import (
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

func TestAChoiceAmongTitledValuesIsAskedInTheFormOfTheProtocol(t *testing.T) {
	items := map[string]any{"type": "string", "anyOf": []any{map[string]any{"const": "a", "title": "A"}}}
	plain := map[string]any{"type": "string", "enum": []any{"a"}}
	q, err := questionOf("x", 1, &mcp.ElicitParams{Message: "which?", RequestedSchema: map[string]any{"type": "object", "properties": map[string]any{
		"titled": map[string]any{"type": "array", "items": items}, "untitled": map[string]any{"type": "array", "items": plain},
	}}})
	const want = `{"properties":{"titled":{"items":{"anyOf":[{"const":"a","title":"A"}]},"type":"array"},"untitled":{"items":{"enum":["a"],"type":"string"},"type":"array"}},"type":"object"}`
	if err != nil || q.GetSchemaJson() != want {
		t.Errorf("got %s, %v", q.GetSchemaJson(), err)
	}
}
