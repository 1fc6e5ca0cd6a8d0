package proxy

import (
	"strings"
	"testing"

	"github.com/fairlead/fairlead/services/allinone/e2e/wiretest"
	"github.com/fairlead/fairlead/services/internal/kit/prove"
	"github.com/fairlead/fairlead/services/session/modeltest"
)

// busy refuses every other question about the stock exchange.
func busy(next modeltest.Script) modeltest.Script {
	refused := false
	return func(r modeltest.Request) modeltest.Step {
		if !strings.Contains(r.UserText, "stock") {
			return next(r)
		}
		if refused = !refused; refused {
			return modeltest.Step{Status: 429, ErrorType: "rate_limit_error", ErrorMessage: "slow down", Header: map[string]string{"retry-after": "0"}}
		}
		return next(r)
	}
}

// each is what both clients print for the loop of tools, with every wire.
const each = `streamed: Let me look. weather(Berlin) weather(Paris)
answered: It is 21 degrees in Paris.
usage: 45 12 5
whole: It is 21 degrees in Paris.
retried: Let me look.
not found: 404
refused: 400
models: true
`

func TestTheOfficialClients(t *testing.T) {
	prove.Only(t, "it starts the official clients of both vendors, in two languages")
	s := serve(t, "required", busy(weather), nil)
	for _, c := range []struct {
		name    string
		program func(*testing.T) string
		file    string
	}{
		{"Python", wiretest.Python, "loop.py"},
		{"TypeScript", wiretest.Node, "loop.mjs"},
	} {
		t.Run(c.name, func(t *testing.T) {
			program := c.program(t)
			for _, m := range []struct{ wire, model string }{
				{"messages", "openai:gpt-5.6-terra"}, {"chat", "anthropic:claude-sonnet-5-5"}, {"responses", "anthropic:claude-sonnet-5-5"},
				{"responses", "openai:gpt-5.6-terra"},
			} {
				got := wiretest.Program(t, s.url, s.keys["ann"], program, wiretest.Script(t, c.file), m.wire, m.model)
				if got != each {
					t.Errorf("%s in front of %s: it prints\n%s", m.wire, m.model, got)
				}
			}
		})
	}
	if refused := append(s.anthropic.Refused(), s.openai.Refused()...); len(refused) > 0 {
		t.Error(refused)
	}
}

func TestTheExamplesOfThePage(t *testing.T) {
	prove.Only(t, "it starts the official clients of both vendors")
	const calls = "Let me look. weather Berlin\nweather Paris\n"
	s := serve(t, "required", weather, nil)
	t.Run("Python", func(t *testing.T) {
		program := wiretest.Python(t)
		want := calls + "Let me look. weather {\"city\":\"Berlin\"}\nweather {\"city\":\"Paris\"}\n"
		if got := wiretest.Program(t, s.url, s.keys["ann"], program, wiretest.File(t, "example.py", wiretest.Example(t, "model-proxy.md", "python", "", s.url))); got != want {
			t.Errorf("it prints\n%s", got)
		}
	})
	t.Run("TypeScript", func(t *testing.T) {
		program := wiretest.Node(t)
		if got := wiretest.Program(t, s.url, s.keys["ann"], program, wiretest.File(t, "example.mjs", wiretest.Example(t, "model-proxy.md", "js", "", s.url))); got != calls+"Let me look. \n" {
			t.Errorf("it prints\n%s", got)
		}
	})
}
