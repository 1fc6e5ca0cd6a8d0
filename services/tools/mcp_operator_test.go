package tools

import (
	"slices"
	"strings"
	"testing"

	toolsv1 "github.com/fairlead/fairlead/gen/go/fairlead/tools/v1"
	"github.com/fairlead/fairlead/services/tools/internal/mcp"
)

func TestAnOperatorsServerIsForAgentsThatNameIt(t *testing.T) {
	r := newRemote(t, true)
	r.tool("one", object, says("one"))
	r.tool("two", object, says("two"))
	f := newFixture(t, func(c *Config) { c.MCPServers = map[string]mcp.Server{"corp": {URL: r.http.URL}} }) // at a private address
	for name, c := range map[string]struct{ allowed, want []string }{
		"all":     {[]string{"mcp__corp__*"}, []string{"mcp__corp__one", "mcp__corp__two"}},
		"one":     {[]string{"mcp__corp__two", "Bash"}, []string{"Bash", "mcp__corp__two"}},
		"none":    {[]string{"Bash"}, []string{"Bash"}},
		"another": {[]string{"mcp__cor__*", "mcp__corpo__*", "mcp__*"}, nil},
	} {
		names, _, _ := f.list(0, c.allowed)
		if !slices.Equal(names, c.want) {
			t.Errorf("%s: got %v, want %v", name, names, c.want)
		}
	}
	call := func(id, tool string, allowed ...string) *toolsv1.CallToolRequest {
		q := mcpCall(id, tool, `{}`)
		q.AllowedTools = allowed
		return q
	}
	if got := f.must(call("c1", "mcp__corp__one", "mcp__corp__*"), ok); got.text() != "one" {
		t.Errorf("got %q", got.text())
	}
	f.must(call("c2", "mcp__corp__one", "mcp__corp__two"), failed)
	f.must(call("c3", "mcp__corp__one", "Bash"), failed)
}

func TestAUsersServerDoesNotTakeTheOperatorsName(t *testing.T) {
	mine, corp := newRemote(t, true), newRemote(t, true)
	mine.tool("t", object, says("the user's"))
	corp.tool("t", object, says("the operator's"))
	f := newFixture(t, func(c *Config) { c.MCPServers = map[string]mcp.Server{"corp": {URL: corp.http.URL}} })
	_, _, states := f.list(0, []string{"mcp__corp__*"}, mine.as("corp"))
	if len(states) != 2 || !strings.Contains(states[0].GetMessage(), "the operator has an MCP server with the name corp") {
		t.Errorf("the statuses are %v", states)
	}
	q := mcpCall("c", "mcp__corp__t", `{}`, mine.as("corp"))
	q.AllowedTools = []string{"mcp__corp__*"}
	if got := f.must(q, ok); got.text() != "the operator's" {
		t.Errorf("got %q", got.text())
	}
	// The same address, named by a user, stays out of reach.
	if got := f.must(mcpCall("c2", "mcp__own__t", `{}`, corp.as("own")), failed); !strings.Contains(got.text(), "not public") {
		t.Errorf("got %q", got.text())
	}
}

func TestAnAgentNamesServersThatExist(t *testing.T) {
	f := newFixture(t, func(c *Config) { c.MCPServers = map[string]mcp.Server{"corp": {URL: "https://example.com/mcp"}} })
	resp, err := f.calls.CheckAgents(t.Context(), &toolsv1.CheckAgentsRequest{Agents: []*toolsv1.AgentNeeds{
		{Agent: "good", Tools: []string{"mcp__corp__*", "mcp__corp__t"}}, {Agent: "bad", Tools: []string{"mcp__cord__*"}}, {Agent: "taken", McpServers: []string{"corp"}},
	}})
	if err != nil || len(resp.GetFaults()) != 2 || resp.GetFaults()[0].GetAgent() != "bad" || resp.GetFaults()[1].GetAgent() != "taken" {
		t.Errorf("got %v, %v", resp, err)
	}
}

func TestFaultsOfAnOperatorsServers(t *testing.T) {
	c := Defaults()
	c.Data = t.TempDir()
	c.MCPServers = map[string]mcp.Server{"a__b": {URL: "https://example.com"}, "both": {URL: "https://example.com", Command: "x"}, "none": {}, "url": {URL: "ftp://x"}, "time": {Command: "x", Timeout: -1}}
	c.MCPAllowPrivate = []string{"10.0.0.0/33"}
	err := c.Validate()
	for _, text := range []string{"mcp-servers.a__b: the name", "mcp-servers.both: set either", "mcp-servers.none: set either", "mcp-servers.url: url:", "mcp-servers.time: timeout", "mcp-allow-private: \"10.0.0.0/33\""} {
		if err == nil || !strings.Contains(err.Error(), text) {
			t.Errorf("got %v, want %s", err, text)
		}
	}
}
