package tools

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"image"
	"image/png"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	toolsv1 "github.com/fairlead/fairlead/gen/go/fairlead/tools/v1"
)

const (
	ok     = toolsv1.CallOutcome_CALL_OUTCOME_OK
	failed = toolsv1.CallOutcome_CALL_OUTCOME_ERROR
)

func TestArgumentsReachAServerExactly(t *testing.T) {
	for era, modern := range eras {
		t.Run(era, func(t *testing.T) {
			r, f := newRemote(t, modern), local(t)
			r.tool("echo", object, echo)
			for i, c := range []struct{ args, gets string }{
				{`{"n":9007199254740993,"deep":[{"m":-123456789012345678901234567890}],"f":1.10,"e":1e300}`, ""},
				{`{"text":"\u00e9 <&> \u2028 \ud83d\ude00"}`, `{"text":"\u00e9 <&> \u2028 \ud83d\ude00"}`},
				{`{ "b" : 1 , "a" : null }`, `{"b":1,"a":null}`},
				{``, `{}`}, {`null`, `{}`}, {`  {}  `, `{}`},
			} {
				if c.gets == "" {
					c.gets = c.args
				}
				got := f.must(mcpCall(fmt.Sprint("c", i), "mcp__x__echo", c.args, r.as("x")), ok)
				if same, want := compact(t, got.text()), compact(t, c.gets); same != want {
					t.Errorf("%s arrived as %s", c.args, same)
				}
			}
			for i, c := range []struct{ args, says string }{
				{`{"a":1`, "not JSON"}, {`{"a":1,"a":2}`, "twice"}, {`[1]`, "object"}, {`{"a":1}{}`, "JSON"}, {`"text"`, "object"}, {`{"a":{"b":1,"b":1}}`, "twice"},
			} {
				if got := f.must(mcpCall(fmt.Sprint("bad", i), "mcp__x__echo", c.args, r.as("x")), failed); !strings.HasPrefix(got.text(), "The call of mcp__x__echo was not made: ") {
					t.Errorf("%s: got %q, want %q", c.args, got.text(), c.says)
				}
			}
		})
	}
}

// TestANumberBeyondAServersReachIsExactOrNamed covers numbers that float64 cannot hold. The SDK's
// server of 2026-07-28 does not read them; another one does.
func TestANumberBeyondAServersReachIsExactOrNamed(t *testing.T) {
	for era, modern := range eras {
		t.Run(era, func(t *testing.T) {
			r, f := newRemote(t, modern), local(t)
			r.tool("echo", object, echo)
			for i, n := range []string{"1e400", "-1e400", "0.1E+401"} {
				args := fmt.Sprintf(`{"deep":[{"n":%s}]}`, n)
				if !modern {
					if got := f.must(mcpCall(fmt.Sprint("c", i), "mcp__x__echo", args, r.as("x")), ok); got.text() != args {
						t.Errorf("%s arrived as %s", args, got.text())
					}
					continue
				}
				got := f.must(mcpCall(fmt.Sprint("c", i), "mcp__x__echo", args, r.as("x")), failed).text()
				if !strings.Contains(got, "refused the call") || !strings.Contains(got, "the number "+n+",") || strings.Contains(got, "header") {
					t.Errorf("%s: got %q", args, got)
				}
			}
			small := `{"n":1e-400,"big":9007199254740993}`
			if got := f.must(mcpCall("small", "mcp__x__echo", small, r.as("x")), ok); got.text() != small {
				t.Errorf("%s arrived as %s", small, got.text())
			}
		})
	}
}

// compact is JSON without white space and with its escapes undone, so that equal texts are equal.
func compact(t *testing.T, text string) string {
	t.Helper()
	d := json.NewDecoder(strings.NewReader(text))
	var b strings.Builder
	for {
		d.UseNumber()
		token, err := d.Token()
		if err == io.EOF {
			return b.String()
		}
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		fmt.Fprintf(&b, "%v ", token)
	}
}

func TestAnySchemaAtTheRoot(t *testing.T) {
	for name, c := range map[string]struct{ schema, good, bad string }{
		"definitions":     {`{"type":"object","properties":{"p":{"$ref":"#/$defs/point"}},"$defs":{"point":{"type":"object","required":["x"],"properties":{"x":{"type":"integer","maximum":9007199254740993}}}}}`, `{"p":{"x":9007199254740993}}`, `{"p":{"x":9007199254740994}}`},
		"draft 7":         {`{"$schema":"http://json-schema.org/draft-07/schema#","type":"object","definitions":{"n":{"type":"number"}},"properties":{"n":{"$ref":"#/definitions/n"}}}`, `{"n":1}`, `{"n":"1"}`},
		"a reference":     {`{"$ref":"#/$defs/all","$defs":{"all":{"type":"object","required":["a"]}},"type":"object"}`, `{"a":1}`, `{}`},
		"a choice":        {`{"type":"object","oneOf":[{"required":["a"]},{"required":["b"]}]}`, `{"b":1}`, `{"a":1,"b":1}`},
		"a tree":          {`{"type":"object","$defs":{"node":{"type":"object","properties":{"next":{"$ref":"#/$defs/node"}},"additionalProperties":false}},"properties":{"root":{"$ref":"#/$defs/node"}}}`, `{"root":{"next":{"next":{}}}}`, `{"root":{"next":{"other":1}}}`},
		"nothing":         {`{"type":"object"}`, `{"anything":[]}`, ``},
		"no property":     {`{"type":"object","additionalProperties":false}`, `{}`, `{"a":1}`},
		"unicode pattern": {`{"type":"object","properties":{"a":{"pattern":"^(?=x).*$"}}}`, `{"a":"x"}`, ``},
	} {
		t.Run(name, func(t *testing.T) {
			r, f := newRemote(t, true), local(t)
			r.tool("t", c.schema, echo)
			_, tools, _ := f.list(0, nil, r.as("x"))
			if len(tools) != 1 || tools[0].GetInputSchemaJson() != c.schema {
				t.Fatalf("the model gets %v, want %s", tools, c.schema)
			}
			f.must(mcpCall("good", "mcp__x__t", c.good, r.as("x")), ok)
			if c.bad != "" {
				if got := f.must(mcpCall("bad", "mcp__x__t", c.bad, r.as("x")), failed); !strings.Contains(got.text(), "do not fit the tool's input schema") {
					t.Errorf("got %q", got.text())
				}
			}
		})
	}
}

// rawServer answers tools/list and tools/call of the first era with fixed results.
func rawServer(t *testing.T, list, call string) *httptest.Server {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		var m struct {
			ID     json.RawMessage `json:"id"`
			Method string          `json:"method"`
		}
		if q.Method != http.MethodPost || json.NewDecoder(q.Body).Decode(&m) != nil {
			w.WriteHeader(http.StatusMethodNotAllowed)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		var result string
		switch m.Method {
		case "initialize":
			result = `{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"raw","version":"1"}}`
		case "tools/list":
			result = list
		case "tools/call":
			result = call
		case "notifications/initialized":
			w.WriteHeader(http.StatusAccepted)
			return
		default:
			fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"no such method"}}`, m.ID)
			return
		}
		fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":%s}`, m.ID, result)
	}))
	t.Cleanup(func() {
		s.CloseClientConnections()
		s.Close()
	})
	return s
}

func TestAToolThatCannotBeOfferedIsNamedAndTheRestStays(t *testing.T) {
	asked := make(chan string, 10)
	trap := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, q *http.Request) { asked <- q.URL.Path }))
	defer trap.Close()
	f := local(t)
	s := rawServer(t, `{"tools":[
		{"name":"good","inputSchema":{"type":"object"}},
		{"name":"elsewhere","inputSchema":{"type":"object","properties":{"a":{"$ref":"`+trap.URL+`/schema"}}}},
		{"name":"file","inputSchema":{"$ref":"file:///etc/passwd"}},
		{"name":"wrong","inputSchema":{"type":"nothing"}},
		{"name":"array","inputSchema":{"type":"array"}},
		{"name":"none"},
		{"name":"good","description":"another","inputSchema":{"type":"object"}},
		{"name":"long","inputSchema":{"type":"object","description":"`+strings.Repeat("x", 300<<10)+`"}}
	]}`, `{"content":[]}`)
	names, _, states := f.list(0, nil, webServer("x", s.URL))
	if !slices.Equal(names, []string{"mcp__x__good"}) {
		t.Errorf("got %v", names)
	}
	for _, text := range []string{`its tool "elsewhere" is left out`, `"file"`, `"wrong"`, `"array"`, `"none"`, "2 more of its tools are left out"} {
		if !strings.Contains(states[0].GetMessage(), text) {
			t.Errorf("the status does not say %s: %s", text, states[0].GetMessage())
		}
	}
	if len(asked) > 0 {
		t.Errorf("the schema's reference %s was fetched", <-asked)
	}
}

func TestNamesThatModelsTake(t *testing.T) {
	long := strings.Repeat("long", 40)
	r, f := newRemote(t, true), local(t)
	for _, name := range []string{"a.b", "a_b", "c.d", long, long + "2", "e-f"} {
		r.tool(name, object, says(name))
	}
	names, _, _ := f.list(0, nil, r.as("x"))
	if len(names) != 6 {
		t.Fatalf("got %v", names)
	}
	var own []string
	for i, name := range names {
		if len(name) > 64 {
			t.Errorf("%s has %d bytes", name, len(name))
		}
		own = append(own, f.must(mcpCall(fmt.Sprint("c", i), name, `{}`, r.as("x")), ok).text())
	}
	slices.Sort(own)
	if want := []string{"a.b", "a_b", "c.d", "e-f", long, long + "2"}; !slices.Equal(own, want) {
		t.Errorf("the names lead to %v", own)
	}
	if !slices.Contains(names, "mcp__x__a_b") || !slices.Contains(names, "mcp__x__c_d") || !slices.Contains(names, "mcp__x__e-f") {
		t.Errorf("got %v", names)
	}
	if got := f.must(mcpCall("exact", "mcp__x__a_b", `{}`, r.as("x")), ok); got.text() != "a_b" {
		t.Errorf("mcp__x__a_b leads to %s", got.text())
	}
}

func picture(t *testing.T) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := png.Encode(&b, image.NewGray(image.Rect(0, 0, 2, 2))); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestContentOfEveryKind(t *testing.T) {
	r, f := newRemote(t, true), local(t)
	seven := int64(7)
	r.tool("all", object, func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return &mcp.CallToolResult{Content: []mcp.Content{
			&mcp.TextContent{Text: "text"},
			&mcp.ImageContent{MIMEType: "image/png", Data: picture(t)},
			&mcp.ImageContent{MIMEType: "image/png", Data: []byte("no picture")},
			&mcp.AudioContent{MIMEType: "audio/wav", Data: []byte("sound")},
			&mcp.ResourceLink{URI: "file:///a", Name: "a", Title: "A", MIMEType: "text/plain", Description: "an a", Size: &seven},
			&mcp.EmbeddedResource{Resource: &mcp.ResourceContents{URI: "file:///b", MIMEType: "text/x-b", Text: "inside"}},
			&mcp.EmbeddedResource{Resource: &mcp.ResourceContents{URI: "file:///c", MIMEType: "application/x-thing", Blob: []byte{1, 2}}},
			&mcp.ResourceLink{Name: "nowhere"},
		}}, nil
	})
	got := f.must(mcpCall("c", "mcp__x__all", `{}`, r.as("x")), ok)
	var kinds []string
	for _, c := range got.result.GetContent() {
		switch {
		case c.GetImage() != nil:
			kinds = append(kinds, "image "+c.GetImage().GetMediaType())
		case c.GetDocument() != nil:
			kinds = append(kinds, "a document")
		case c.GetAudio() != nil:
			kinds = append(kinds, "audio "+c.GetAudio().GetMediaType()+" "+string(c.GetAudio().GetData()))
		case c.GetResourceLink() != nil:
			l := c.GetResourceLink()
			kinds = append(kinds, fmt.Sprintf("link %s %s %s %s %s %d", l.GetUri(), l.GetName(), l.GetTitle(), l.GetMediaType(), l.GetDescription(), l.GetSize()))
		case c.GetResource() != nil:
			x := c.GetResource()
			kinds = append(kinds, fmt.Sprintf("resource %s %s %s %v", x.GetUri(), x.GetMediaType(), x.GetText(), x.GetData()))
		default:
			kinds = append(kinds, c.GetText().GetText())
		}
	}
	want := []string{
		"text", "image image/png", "[a part of type image/png was left out: it is said to be image/png, but begins as text/plain; charset=utf-8]",
		"audio audio/wav sound", "link file:///a a A text/plain an a 7", "resource file:///b text/x-b inside []",
		"resource file:///c application/x-thing  [1 2]", "[a link to a resource was left out: its address has 0 bytes, and the most is 8192]",
	}
	if !slices.Equal(kinds, want) {
		t.Errorf("got %q\nwant %q", kinds, want)
	}
}

func TestTheSchemaOfResults(t *testing.T) {
	f := local(t)
	const output = `{"type":"object","properties":{"z":{"type":"integer"},"a":{"maximum":9007199254740993}}}`
	s := rawServer(t, `{"tools":[
		{"name":"has","inputSchema":{"type":"object"},"outputSchema":`+output+`},
		{"name":"list","inputSchema":{"type":"object"},"outputSchema":{"type":"array"}},
		{"name":"none","inputSchema":{"type":"object"}},
		{"name":"wrong","inputSchema":{"type":"object"},"outputSchema":{"type":"object","required":7}}
	]}`, `{"content":[]}`)
	_, tools, _ := f.list(0, nil, webServer("x", s.URL))
	got := map[string]string{}
	for _, x := range tools {
		got[x.GetName()] = x.GetOutputSchemaJson()
	}
	want := map[string]string{"tools/mcp__x__has": output, "tools/mcp__x__list": "", "tools/mcp__x__none": "", "tools/mcp__x__wrong": ""}
	if !maps.Equal(got, want) {
		t.Errorf("got %v", got)
	}
}

func TestAResultAsJSONIsExact(t *testing.T) {
	for name, stream := range map[string]bool{"in one message": false, "in a stream": true} {
		t.Run(name, func(t *testing.T) {
			f := local(t)
			const structured = `{"n":9007199254740993,"z":1,"a":[1.10,null]}`
			s := rawServer(t, `{"tools":[{"name":"t","inputSchema":{"type":"object"}}]}`, `{"content":[],"structuredContent":`+structured+`}`)
			if stream {
				s = streamed(t, s)
			}
			got := f.must(mcpCall("c", "mcp__x__t", `{}`, webServer("x", s.URL)), ok)
			if got.result.GetStructuredJson() != structured || got.text() != structured {
				t.Errorf("got %s and %q", got.result.GetStructuredJson(), got.text())
			}
		})
	}
}

// streamed answers as another server does, in streams of events.
func streamed(t *testing.T, s *httptest.Server) *httptest.Server {
	t.Helper()
	out := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		rec := httptest.NewRecorder()
		s.Config.Handler.ServeHTTP(rec, q)
		if rec.Code != http.StatusOK {
			w.WriteHeader(rec.Code)
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprintf(w, ": a comment\n\nevent: message\ndata: %s\n\n", rec.Body.String())
	}))
	t.Cleanup(out.Close)
	return out
}

func TestLargeResultsAreCut(t *testing.T) {
	for name, c := range map[string]struct{ content, says string }{
		"text":       {`{"content":[{"type":"text","text":"` + strings.Repeat("é", 1<<20) + `"}]}`, "bytes of text were left out: a result may have 131072]"},
		"texts":      {`{"content":[` + strings.Repeat(`{"type":"text","text":"`+strings.Repeat("x", 1000)+`"},`, 199) + `{"type":"text","text":"end"}]}`, "bytes of text were left out"},
		"parts":      {`{"content":[` + strings.Repeat(`{"type":"text","text":"x"},`, 500) + `{"type":"text","text":"end"}]}`, "301 more parts of the result were left out"},
		"structured": {`{"content":[{"type":"text","text":"x"}],"structuredContent":"` + strings.Repeat("x", 2<<20) + `"}`, "the structured result has 2097154 bytes and was left out"},
		"images":     {`{"content":[` + strings.Repeat(`{"type":"audio","mimeType":"audio/wav","data":"AAAA"},`, 30) + `{"type":"text","text":"end"}]}`, "the result has too many"},
	} {
		t.Run(name, func(t *testing.T) {
			f := local(t)
			s := rawServer(t, `{"tools":[{"name":"t","inputSchema":{"type":"object"}}]}`, c.content)
			got := f.must(mcpCall("c", "mcp__x__t", `{}`, webServer("x", s.URL)), ok)
			if len(got.text()) > 132<<10 || !strings.Contains(got.text(), c.says) {
				t.Errorf("got %d bytes, that end in %q", len(got.text()), got.text()[max(0, len(got.text())-300):])
			}
		})
	}
}

func TestAFailureOfAToolIsAResult(t *testing.T) {
	r, f := newRemote(t, true), local(t)
	r.tool("fails", object, func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return &mcp.CallToolResult{IsError: true, Content: []mcp.Content{&mcp.TextContent{Text: "it does not work"}}}, nil
	})
	if got := f.must(mcpCall("c", "mcp__x__fails", `{}`, r.as("x")), failed); got.text() != "it does not work" {
		t.Errorf("got %q", got.text())
	}
}
