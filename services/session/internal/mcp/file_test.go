package mcp

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/testing/protocmp"

	commonv1 "github.com/fairlead/fairlead/gen/go/fairlead/common/v1"
)

func lookup(name string) (string, bool) { return "https://" + strings.ToLower(name), name == "HOST" }

func TestAFileOfServersIsRead(t *testing.T) {
	got, err := ParseFile([]byte(`{"other":1,"mcpServers":{
		"files":{"command":"npx","args":["-y","@modelcontextprotocol/server-filesystem","${DIR:-.}"],"env":{"KEY":"${KEY}"}},
		"wiki":{"type":"http","url":"${HOST}/mcp?k=${KEY}","headers":{"Authorization":"Bearer ${TOKEN}"}},
		"old":{"type":"sse","url":"${BASE:-https://old.example.com}/sse"}}}`), lookup)
	if err != nil {
		t.Fatal(err)
	}
	want := []*commonv1.McpServer{
		server(t, `{"name":"files","stdio":{"command":"npx","args":["-y","@modelcontextprotocol/server-filesystem","${DIR:-.}"],"env":{"KEY":"${KEY}"}}}`),
		server(t, `{"name":"old","http":{"url":"https://old.example.com/sse","sse":true}}`),
		server(t, `{"name":"wiki","http":{"url":"https://host/mcp?k=${KEY}","headers":{"Authorization":"Bearer ${TOKEN}"}}}`),
	}
	if d := cmp.Diff(want, got, protocmp.Transform()); d != "" {
		t.Error(d)
	}
}

func TestFilesThatCannotBeConverted(t *testing.T) {
	for name, c := range map[string]struct{ text, fault string }{
		"not JSON":                 {`{`, "not JSON"},
		"no servers":               {`{"servers":{}}`, `no object "mcpServers"`},
		"a URL without a type":     {`{"mcpServers":{"a":{"url":"https://x"}}}`, `a: a server with a url needs "type"`},
		"another type":             {`{"mcpServers":{"a":{"type":"ws","url":"wss://x"}}}`, `a: the type "ws"`},
		"a key without effect":     {`{"mcpServers":{"a":{"type":"http","url":"https://x","headersHelper":"./h"}}}`, `a: unknown field "headersHelper"`},
		"no command":               {`{"mcpServers":{"a":{"args":["x"]}}}`, "a: a server of type stdio has a command"},
		"a bad name":               {`{"mcpServers":{"a b":{"command":"x"}}}`, "a b: a name is"},
		"a variable that is not":   {`{"mcpServers":{"a":{"type":"http","url":"${NONE}/mcp"}}}`, "the environment has no variable NONE"},
		"a header with line break": {`{"mcpServers":{"a":{"type":"http","url":"https://x","headers":{"A":"b\r\nC: d"}}}}`, "line break"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := ParseFile([]byte(c.text), lookup); err == nil || !strings.Contains(err.Error(), c.fault) {
				t.Errorf("the fault is %v, not %q", err, c.fault)
			}
		})
	}
}

func FuzzParseFile(f *testing.F) {
	f.Add([]byte(`{"mcpServers":{"a":{"type":"http","url":"${HOST}","headers":{"A":"${B}"}}}}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		all, err := ParseFile(text, lookup)
		if err != nil {
			return
		}
		if err := CheckProtos(all); err != nil {
			t.Errorf("read, but not allowed: %v", err)
		}
	})
}
