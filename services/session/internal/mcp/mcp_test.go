package mcp

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/testing/protocmp"

	commonv1 "github.com/fairlead/fairlead/gen/go/fairlead/common/v1"
)

// server parses a server from JSON.
func server(t *testing.T, text string) *commonv1.McpServer {
	t.Helper()
	s := &commonv1.McpServer{}
	if err := protojson.Unmarshal([]byte(text), s); err != nil {
		t.Fatal(err)
	}
	return s
}

const all = `{"name":"wiki","required":true,"trusted":true,"tools":["a"],"disabledTools":["b"],"timeout":"30s","http":{"url":"https://x/mcp","headers":{"A":"b"},"sse":true,
	"oauth":{"clientId":"c","clientSecret":"${S}","scopes":["read"]}}}`

func TestAServerSurvivesConversion(t *testing.T) {
	for _, text := range []string{all, `{"name":"files","stdio":{"command":"npx","args":["-y","x"],"env":{"A":"b"}}}`} {
		want := []*commonv1.McpServer{server(t, text)}
		if d := cmp.Diff(want, From(want).Protos(), protocmp.Transform()); d != "" {
			t.Error(d)
		}
		if err := CheckProtos(want); err != nil {
			t.Error(err)
		}
	}
}

func TestServersThatBreakARule(t *testing.T) {
	for name, c := range map[string]struct{ text, fault string }{
		"no transport":                {`{"name":"a"}`, "either a command or a url"},
		"two underscores":             {`{"name":"a__b","stdio":{"command":"x"}}`, "two underscores"},
		"not a URL":                   {`{"name":"a","http":{"url":"ftp://x"}}`, "url: the endpoint begins"},
		"no host":                     {`{"name":"a","http":{"url":"https:///x"}}`, "url: the endpoint begins"},
		"a header of the protocol":    {`{"name":"a","http":{"url":"https://x","headers":{"mcp-Session-Id":"1"}}}`, "set by the client itself"},
		"a header with a line break":  {`{"name":"a","http":{"url":"https://x","headers":{"A":"1\nB: 2"}}}`, "line break"},
		"a header that is no name":    {`{"name":"a","http":{"url":"https://x","headers":{"A B":"1"}}}`, "not the name of a header"},
		"a hidden header sent back":   {`{"name":"a","http":{"url":"https://x","headers":{"A":"(hidden)"}}}`, "headers.A: (hidden) stands for"},
		"a hidden variable sent back": {`{"name":"a","stdio":{"command":"x","env":{"A":"(hidden)"}}}`, "env.A: (hidden) stands for"},
		"a reserved variable":         {`{"name":"a","stdio":{"command":"x","env":{"LD_PRELOAD":"x"}}}`, "reserved"},
	} {
		t.Run(name, func(t *testing.T) {
			err := CheckProtos([]*commonv1.McpServer{server(t, c.text)})
			if err == nil || !strings.Contains(err.Error(), c.fault) {
				t.Errorf("the fault is %v, not %q", err, c.fault)
			}
		})
	}
	twice := server(t, `{"name":"a","stdio":{"command":"x"}}`)
	if err := CheckProtos([]*commonv1.McpServer{twice, twice}); err == nil || !strings.Contains(err.Error(), "two servers are named a") {
		t.Errorf("the same name twice: %v", err)
	}
}

func TestReferencesAreReplaced(t *testing.T) {
	s := server(t, `{"name":"a","http":{"url":"https://${HOST:-x.example.com}/${PATH_OF_IT:-}mcp","headers":{"Authorization":"Bearer ${TOKEN}","B":"$TOKEN ${ TOKEN} ${TOKEN:-z}"}}}`)
	got, err := Resolve(s, map[string]string{"TOKEN": "${HOST}t"})
	if err != nil {
		t.Fatal(err)
	}
	want := server(t, `{"name":"a","http":{"url":"https://x.example.com/mcp","headers":{"Authorization":"Bearer ${HOST}t","B":"$TOKEN ${ TOKEN} ${HOST}t"}}}`)
	if d := cmp.Diff(want, got, protocmp.Transform()); d != "" {
		t.Error(d)
	}
	_, err = Resolve(s, nil)
	var missing *MissingError
	if !errors.As(err, &missing) || !cmp.Equal(missing.Names, []string{"TOKEN"}) {
		t.Errorf("without the variable: %v", err)
	}
	stdio, err := Resolve(server(t, `{"name":"a","stdio":{"command":"${A}","args":["--x=${A}"],"env":{"E":"${A}${A}"}}}`), map[string]string{"A": "1"})
	if err != nil || !cmp.Equal(stdio, server(t, `{"name":"a","stdio":{"command":"1","args":["--x=1"],"env":{"E":"11"}}}`), protocmp.Transform()) {
		t.Errorf("a command: %v, %v", stdio, err)
	}
}

func TestOnlyReferencesAreShown(t *testing.T) {
	in := []*commonv1.McpServer{
		server(t, `{"name":"a","http":{"url":"https://x","headers":{"A":"Bearer ${T}","B":"Bearer abc","C":"key-${T}","D":"${T:-abc}","E":""},"oauth":{"clientSecret":"abc"}}}`),
		server(t, `{"name":"b","stdio":{"command":"x","env":{"A":"${T}","B":"abc"}}}`),
	}
	want := []*commonv1.McpServer{
		server(t, `{"name":"a","http":{"url":"https://x","headers":{"A":"Bearer ${T}","B":"(hidden)","C":"(hidden)","D":"(hidden)","E":""},"oauth":{"clientSecret":"(hidden)"}}}`),
		server(t, `{"name":"b","stdio":{"command":"x","env":{"A":"${T}","B":"(hidden)"}}}`),
	}
	if d := cmp.Diff(want, Show(in), protocmp.Transform()); d != "" {
		t.Error(d)
	}
	if in[1].GetStdio().Env["B"] != "abc" {
		t.Error("the servers themselves were changed")
	}
}

func TestTheSessionsServersComeFirst(t *testing.T) {
	at := func(name, url string) *commonv1.McpServer {
		return server(t, `{"name":"`+name+`","http":{"url":"https://`+url+`"}}`)
	}
	got := Merge([]*commonv1.McpServer{at("b", "session")}, []*commonv1.McpServer{at("b", "agent"), at("c", "agent")}, []*commonv1.McpServer{at("b", "user"), at("c", "user"), at("a", "user")})
	want := []*commonv1.McpServer{at("a", "user"), at("b", "session"), at("c", "agent")}
	if d := cmp.Diff(want, got, protocmp.Transform()); d != "" {
		t.Error(d)
	}
}
