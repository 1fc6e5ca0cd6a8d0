package tools

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	commonv1 "github.com/fairlead/fairlead/gen/go/fairlead/common/v1"
	toolsv1 "github.com/fairlead/fairlead/gen/go/fairlead/tools/v1"
)

// listingServer is an MCP server of an early revision with these results, by method.
func listingServer(t *testing.T, results map[string]string) (url string, asked *atomic.Int64) {
	t.Helper()
	asked = &atomic.Int64{}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		body, err := io.ReadAll(q.Body)
		var m struct {
			ID     json.RawMessage `json:"id"`
			Method string          `json:"method"`
		}
		if err != nil || q.Method != http.MethodPost || json.Unmarshal(body, &m) != nil {
			w.WriteHeader(http.StatusMethodNotAllowed)
			return
		}
		if m.ID == nil {
			w.WriteHeader(http.StatusAccepted)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		result := results[m.Method]
		if m.Method == "initialize" {
			result = `{"protocolVersion":"2025-06-18","capabilities":{"tools":{},"resources":{},"prompts":{}},"serverInfo":{"name":"raw","version":"1"}}`
		}
		if strings.HasSuffix(m.Method, "/list") && asked.Add(1) > 2000 {
			result = ""
		}
		if result == "" {
			fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"no such method"}}`, m.ID)
			return
		}
		fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":%s}`, m.ID, result)
	}))
	t.Cleanup(s.Close)
	return s.URL, asked
}

func TestAFaultyListOfAServerIsReadAsFarAsItGoes(t *testing.T) {
	const good = `{"name":"good","inputSchema":{"type":"object"}}`
	for name, c := range map[string]struct {
		tools string
		says  string // in the status; empty: nothing is wrong
		asked int64  // the most requests for lists
	}{
		"a whole list":             {`{"tools":[` + good + `]}`, "", 4},
		"an empty cursor":          {`{"tools":[` + good + `],"nextCursor":""}`, "", 4},
		"a cursor of null":         {`{"tools":[` + good + `],"nextCursor":null}`, "", 4},
		"a cursor of a number":     {`{"tools":[` + good + `],"nextCursor":7}`, "", 4},
		"a cursor that stays":      {`{"tools":[` + good + `],"nextCursor":"x"}`, `the cursor "x" comes back`, 5},
		"an entry of null":         {`{"tools":[null,` + good + `]}`, "1 of its tools cannot be read", 4},
		"entries of other types":   {`{"tools":["a",` + good + `,7,[]]}`, "3 of its tools cannot be read", 4},
		"a name of a number":       {`{"tools":[{"name":5,"inputSchema":{"type":"object"}},` + good + `]}`, "1 of its tools cannot be read", 4},
		"annotations of text":      {`{"tools":[{"name":"a","annotations":"x","inputSchema":{"type":"object"}},` + good + `]}`, "1 of its tools cannot be read", 4},
		"a tool without a schema":  {`{"tools":[{"name":"a"},` + good + `]}`, `its tool "a" is left out: it has no schema`, 4},
		"a schema that is no JSON": {`{"tools":[{"name":"a","inputSchema":"x"},` + good + `]}`, `its tool "a" is left out`, 4},
		"metadata beside it":       {`{"_meta":{"k":1},"tools":[null,` + good + `]}`, "1 of its tools cannot be read", 4},
	} {
		t.Run(name, func(t *testing.T) {
			url, asked := listingServer(t, map[string]string{
				"tools/list": c.tools, "resources/list": `{"resources":[]}`, "resources/templates/list": `{"resourceTemplates":[]}`, "prompts/list": `{"prompts":[]}`,
			})
			x := listStatus(t, local(t), webServer("x", url))
			if !slices.Equal(x.Tools, []string{"mcp__x__good"}) || !strings.Contains(x.Message, c.says) || c.says == "" && x.Message != "" || asked.Load() > c.asked {
				t.Errorf("%d requests for lists; the status is %v", asked.Load(), x)
			}
		})
	}
}

func TestAFaultyListOfResourcesOrPromptsStopsNoTools(t *testing.T) {
	url, asked := listingServer(t, map[string]string{
		"tools/list":               `{"tools":[{"name":"good","inputSchema":{"type":"object"}}]}`,
		"resources/list":           `{"resources":[null,{"uri":"a:b","name":"r"},{"uri":7}],"nextCursor":"x"}`,
		"resources/templates/list": `{"resourceTemplates":[],"nextCursor":"y"}`,
		"prompts/list":             `{"prompts":[{"name":"p","arguments":"x"},{"name":"q"}],"nextCursor":"z"}`,
	})
	x := listStatus(t, local(t), webServer("x", url))
	if len(x.Tools) != 1 || len(x.Resources) == 0 || x.Resources[0].Uri != "a:b" || len(x.Prompts) == 0 || x.Prompts[0].Name != "q" || asked.Load() > 10 {
		t.Errorf("%d requests for lists; the status is %v", asked.Load(), x)
	}
	for _, want := range []string{"2 of its resources cannot be read", `resources/list has no end`, `resources/templates/list has no end`, "1 of its prompts cannot be read", "prompts/list has no end"} {
		if !strings.Contains(x.Message, want) {
			t.Errorf("%q is missing in %q", want, x.Message)
		}
	}
}

func listStatus(t *testing.T, f *fixture, s *commonv1.McpServer) *commonv1.McpServerStatus {
	t.Helper()
	resp, err := f.calls.ListSessionTools(t.Context(), &toolsv1.ListSessionToolsRequest{Call: ref("list"), Servers: []*commonv1.McpServer{s}, Contents: true})
	if err != nil || len(resp.Servers) != 1 {
		t.Fatalf("got %v, %v", resp, err)
	}
	return resp.Servers[0]
}
