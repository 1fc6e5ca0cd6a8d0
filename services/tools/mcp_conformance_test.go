package tools

import (
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	toolsv1 "github.com/fairlead/fairlead/gen/go/fairlead/tools/v1"
	"github.com/fairlead/fairlead/services/internal/kit/prove"
)

const suite = "../../deploy/tools/mcp/node_modules"

// scenarios are those of the official suite for clients that this service has to pass: all but those of
// authorization and of extensions.
var scenarios = map[string][]string{
	"2025-11-25": {"initialize", "tools_call", "elicitation-sep1034-client-defaults", "sse-retry", "json-schema-2020-12-preservation"},
	"2026-07-28": {
		"tools_call", "request-metadata", "sep-2322-client-request-state", "http-standard-headers", "http-custom-headers", "http-invalid-tool-headers",
		"json-schema-ref-no-deref", "json-schema-2020-12-preservation",
	},
}

func TestTheClientConforms(t *testing.T) {
	prove.Only(t, "each scenario of the official suite starts this test as a program of its own")
	node, err := filepath.Abs(filepath.Join(suite, "node/bin/node"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(node); err != nil {
		if os.Getenv("CI") != "" {
			t.Fatalf("the suite is missing: make deploy/tools/mcp/node_modules/.stamp: %v", err)
		}
		t.Skip("the suite is missing: make deploy/tools/mcp/node_modules/.stamp")
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for version, names := range scenarios {
		for _, name := range names {
			t.Run(version+" "+name, func(t *testing.T) {
				cmd := exec.CommandContext(t.Context(), node, filepath.Join(suite, "@modelcontextprotocol/conformance/dist/index.js"), "client",
					"--command", self+" -test.run=^TestAsAConformingClient$ -test.v", "--scenario", name, "--spec-version", version, "--timeout", "60000")
				out, err := cmd.CombinedOutput()
				if err != nil {
					t.Errorf("%v\n%s", err, out)
					return
				}
				for line := range strings.Lines(string(out)) {
					if strings.Contains(line, "Passed:") {
						t.Log(strings.TrimSpace(line))
					}
				}
			})
		}
	}
}

// TestAsAConformingClient is the program that the suite runs, with the address of its server.
func TestAsAConformingClient(t *testing.T) {
	scenario := os.Getenv("MCP_CONFORMANCE_SCENARIO")
	if scenario == "" {
		t.Skip("the suite runs it")
	}
	f := local(t)
	s := webServer("s", flag.Arg(flag.NArg()-1))
	names, listed, states := f.list(0, nil, s)
	t.Log(states, names)
	calls := 0
	call := func(name, args string) {
		calls++
		q := mcpCall(fmt.Sprint("c", calls), name, args, s)
		a, err := f.call(q)
		for err == nil && a.question != nil {
			content := `{}`
			if strings.HasPrefix(scenario, "sep-2322") {
				content = `{"confirmed":true}`
			}
			a, err = f.call(answered(q, a.question.GetId(), accept, content))
		}
		t.Log(name, a.result.GetOutcome(), a.text(), err)
	}
	switch scenario {
	case "tools_call":
		call("mcp__s__add_numbers", `{"a":5,"b":3}`)
	case "http-custom-headers":
		var c struct {
			ToolCalls []struct {
				Name      string
				Arguments json.RawMessage
			}
		}
		if err := json.Unmarshal([]byte(os.Getenv("MCP_CONFORMANCE_CONTEXT")), &c); err != nil {
			t.Fatal(err)
		}
		for _, one := range c.ToolCalls {
			call("mcp__s__"+one.Name, withoutNulls(t, one.Arguments))
		}
	case "json-schema-2020-12-preservation":
		call("mcp__s__json_schema_echo", `{"schema":`+schemaOf(listed, "json_schema_2020_12_tool")+`}`)
	case "http-invalid-tool-headers":
		for _, name := range names {
			call(name, `{"region":"us-west1"}`)
		}
	case "initialize", "request-metadata", "json-schema-ref-no-deref":
	default:
		for _, name := range names {
			call(name, `{}`)
		}
	}
}

// withoutNulls leaves out what is null: the tool's schema refuses it, as the model is told, and then the model
// leaves it out.
func withoutNulls(t *testing.T, args json.RawMessage) string {
	t.Helper()
	var all map[string]json.RawMessage
	if err := json.Unmarshal(args, &all); err != nil {
		t.Fatal(err)
	}
	maps.DeleteFunc(all, func(_ string, v json.RawMessage) bool { return string(v) == "null" })
	text, err := json.Marshal(all)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func schemaOf(all []*toolsv1.Tool, name string) string {
	for _, t := range all {
		if strings.HasSuffix(t.GetName(), "__"+name) {
			return t.GetInputSchemaJson()
		}
	}
	return "null"
}
