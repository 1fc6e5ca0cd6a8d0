package mcp

import (
	"encoding/json"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	commonv1 "github.com/fairlead/fairlead/gen/go/fairlead/common/v1"
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

func TestAnOptionalFieldIsAskedInTheFormOfTheProtocol(t *testing.T) {
	for name, c := range map[string]struct{ form, want string }{
		"a type or null": {
			`{"type":"object","properties":{"n":{"anyOf":[{"type":"integer","minimum":1},{"type":"null"}],"default":null,"title":"N"}}}`,
			`{"properties":{"n":{"minimum":1,"title":"N","type":"integer"}},"type":"object"}`,
		},
		"that must be there":   {`{"properties":{"s":{"anyOf":[{"type":"string"},{"type":"null"}]}},"required":["s"]}`, `{"properties":{"s":{"type":"string"}}}`},
		"null comes first":     {`{"properties":{"s":{"oneOf":[{"type":"null"},{"type":"boolean"}],"default":true}},"required":["t","s"]}`, `{"properties":{"s":{"default":true,"type":"boolean"}},"required":["t"]}`},
		"a list of types":      {`{"properties":{"s":{"type":["string","null"]}}}`, `{"properties":{"s":{"type":"string"}}}`},
		"a list of values":     {`{"properties":{"s":{"type":["string","null"],"enum":["a",null]}}}`, `{"properties":{"s":{"enum":["a"],"type":"string"}}}`},
		"several types":        {`{"properties":{"s":{"anyOf":[{"type":"string"},{"type":"integer"},{"type":"null"}]}}}`, `{"properties":{"s":{"anyOf":[{"type":"string"},{"type":"integer"}]}}}`},
		"its own title counts": {`{"properties":{"s":{"title":"Own","anyOf":[{"type":"string","title":"Inner"},{"type":"null"}]}}}`, `{"properties":{"s":{"title":"Own","type":"string"}}}`},
		"null alone":           {`{"properties":{"s":{"anyOf":[{"type":"null"}]}}}`, `{"properties":{"s":{"anyOf":[{"type":"null"}]}}}`},
		"no optional field":    {`{"properties":{"s":{"type":"string","default":""}},"required":["s"]}`, `{"properties":{"s":{"default":"","type":"string"}},"required":["s"]}`},
		"no fields":            {`{"type":"object","properties":{}}`, `{"properties":{},"type":"object"}`},
		"odd parts":            {`{"properties":{"s":7,"t":null,"u":{"anyOf":"x"}},"required":"s"}`, `{"properties":{"s":7,"t":null,"u":{"anyOf":"x"}},"required":"s"}`},
		"no form":              {`null`, ``},
	} {
		p := &mcp.ElicitParams{Message: "m", RequestedSchema: decoded(t, c.form)}
		q, err := questionOf("x", 1, p)
		if err != nil || q.GetSchemaJson() != c.want {
			t.Errorf("%s: got %s, %v", name, q.GetSchemaJson(), err)
		}
		if left, _ := json.Marshal(p.RequestedSchema); string(left) != string(marshal(decoded(t, c.form))) {
			t.Errorf("%s: the server's form became %s", name, left)
		}
	}
}

func decoded(t *testing.T, text string) (v any) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		t.Fatal(err)
	}
	return v
}

func TestAnAcceptedFormHasAContent(t *testing.T) {
	const accept, decline, cancel = commonv1.QuestionAction_QUESTION_ACTION_ACCEPT, commonv1.QuestionAction_QUESTION_ACTION_DECLINE, commonv1.QuestionAction_QUESTION_ACTION_CANCEL
	for name, c := range map[string]struct {
		asked  mcp.ElicitParams
		action commonv1.QuestionAction
		answer string
		want   string
	}{
		"no fields, no answer":     {mcp.ElicitParams{RequestedSchema: decoded(t, `{"type":"object","properties":{}}`)}, accept, "", `{"action":"accept","content":{}}`},
		"no fields, empty answer":  {mcp.ElicitParams{RequestedSchema: decoded(t, `{"type":"object","properties":{}}`)}, accept, "{}", `{"action":"accept","content":{}}`},
		"no form":                  {mcp.ElicitParams{}, accept, "", `{"action":"accept","content":{}}`},
		"a page":                   {mcp.ElicitParams{Mode: "url", URL: "https://x"}, accept, "", `{"action":"accept"}`},
		"declined":                 {mcp.ElicitParams{RequestedSchema: decoded(t, `{"properties":{}}`)}, decline, "", `{"action":"decline"}`},
		"closed":                   {mcp.ElicitParams{RequestedSchema: decoded(t, `{"properties":{}}`)}, cancel, "", `{"action":"cancel"}`},
		"an optional field":        {mcp.ElicitParams{RequestedSchema: decoded(t, `{"properties":{"n":{"anyOf":[{"type":"integer"},{"type":"null"}],"default":null}}}`)}, accept, "", `{"action":"accept","content":{}}`},
		"one that must be there":   {mcp.ElicitParams{RequestedSchema: decoded(t, `{"properties":{"n":{"anyOf":[{"type":"integer"},{"type":"null"}]}},"required":["n"]}`)}, accept, "{}", `{"action":"accept","content":{"n":null}}`},
		"a default":                {mcp.ElicitParams{RequestedSchema: decoded(t, `{"properties":{"n":{"type":"string","default":""},"b":{"type":"boolean","default":false}}}`)}, accept, `{"n":"x"}`, `{"action":"accept","content":{"b":false,"n":"x"}}`},
		"every digit":              {mcp.ElicitParams{RequestedSchema: decoded(t, `{"properties":{"n":{"type":"integer"}}}`)}, accept, `{"n":9007199254740993}`, `{"action":"accept","content":{"n":9007199254740993}}`},
		"empty and false are kept": {mcp.ElicitParams{RequestedSchema: decoded(t, `{"properties":{"a":{"type":"string"},"b":{"type":"boolean"},"c":{"type":"array"}}}`)}, accept, `{"a":"","b":false,"c":[]}`, `{"action":"accept","content":{"a":"","b":false,"c":[]}}`},
	} {
		r, err := resultOf(&c.asked, &commonv1.QuestionAnswer{Action: c.action, ContentJson: c.answer})
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if got, err := json.Marshal(r); err != nil || string(got) != c.want {
			t.Errorf("%s: %s, %v; want %s", name, got, err, c.want)
		}
		d := dialog{Answers: map[string]*elicited{"k": r}} // as the journal keeps it
		var kept dialog
		if text, err := json.Marshal(d); err != nil || json.Unmarshal(text, &kept) != nil {
			t.Errorf("%s: %v", name, err)
		}
		if got, err := json.Marshal(kept.responses()); err != nil || string(got) != `{"k":`+c.want+`}` {
			t.Errorf("%s: after the journal %s, %v", name, got, err)
		}
	}
}
