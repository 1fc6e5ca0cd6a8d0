package openaiagents

import (
	"net/http"
	"strings"
	"testing"

	"github.com/fairlead/fairlead/services/allinone/e2e/wiretest"
	"github.com/fairlead/fairlead/services/internal/kit/prove"
)

// careful makes the agent that asks a person, and returns its id.
func (s *server) careful(t *testing.T, header ...string) string {
	t.Helper()
	return s.agent(t, "careful", `{"model":"scripted:agents","profile":"full","tools":["Bash"],"permissions":{"ask":["Bash"]}}`, header...)
}

// asker makes the agent that asks questions, and returns its id.
func (s *server) asker(t *testing.T, header ...string) string {
	t.Helper()
	return s.agent(t, "asker", `{"model":"scripted:agents","profile":"full","tools":["AskUserQuestion"]}`, header...)
}

func (s *server) agent(t *testing.T, id, body string, header ...string) string {
	t.Helper()
	if code, text := s.Call(t, "POST", "/v1/agents?agentId="+id, body, header...); code != http.StatusOK {
		t.Fatal(text)
	}
	return id
}

const (
	inPython = `quickstart: It says 9007199254740993 completed
items: ['message', 'message', 'command_execution', 'message']
artifact: /workspace/artifacts/number.txt b'9007199254740993\n'
handler: The weather: 21 in Berlin
turns: ['completed', 'completed'] ['message', 'message', 'function_call', 'function_call_output', 'message']
streamed create: The weather: 21 in Berlin
asks: mcp_approval_request fairlead Bash
denied: failed None
question: The user answered:
- Which? B
failure: AgentTurnResultError failed authentication_error
update: {'Key Ü': 'v'} True
not found: 404 False
not found: 404 True
not found: 404 True
refused: environment.type
`
	inTypeScript = `quickstart: It says 9007199254740993 completed
items: message message command_execution message
artifact: /workspace/artifacts/number.txt "9007199254740993\n"
handler: The weather: 21 in Berlin | I ask you.The weather: 21 in Berlin
streamed create: The weather: 21 in Berlin completed
asks: mcp_approval_request fairlead Bash
approved: It says 9007199254740993
question: The user answered:
- Which? A
failure: AgentTurnResultError failed authentication_error
cancelled: cancelled
schema: {"n":3}
agents: Count true true
deleted: true true
not found: 404 true
automations: 404 true
`
)

func TestTheOfficialClients(t *testing.T) {
	t.Parallel()
	prove.Only(t, "it starts the official clients in two languages")
	s := serveUsers(t)
	s.careful(t, "Authorization", "Bearer "+s.Keys["ann"])
	s.asker(t, "Authorization", "Bearer "+s.Keys["ann"])
	t.Run("Python", func(t *testing.T) {
		if got := wiretest.Program(t, s.URL, s.Keys["ann"], wiretest.Python(t), wiretest.Script(t, "loop.py")); got != inPython {
			t.Errorf("it prints\n%s", got)
		}
	})
	t.Run("TypeScript", func(t *testing.T) {
		node := wiretest.Node(t)
		if got := wiretest.Program(t, s.URL, s.Keys["ann"], node, wiretest.Script(t, "loop.mjs")); got != inTypeScript {
			t.Errorf("it prints\n%s", got)
		}
	})
}

func TestAnOfficialClientComesBackToAServerThatWasKilled(t *testing.T) {
	t.Parallel()
	prove.Only(t, "it starts an official client in two languages")
	t.Run("Python", func(t *testing.T) {
		s := spawn(t)
		s.ComesBack(t, wiretest.Python(t), wiretest.Script(t, "killed.py"), "streaming", "cut off: True", "['slow', 'one two three four five six seven eight nine ten']")
	})
	t.Run("TypeScript", func(t *testing.T) {
		s := spawn(t)
		s.ComesBack(t, wiretest.Node(t), wiretest.Script(t, "killed.mjs"), "streaming", "cut off", "slow|one two three four five six seven eight nine ten")
	})
}

func TestTheExampleOfThePage(t *testing.T) {
	t.Parallel()
	prove.Only(t, "it starts an official client")
	s := serveUsers(t)
	example := wiretest.Example(t, "openai-agents.md", "python", "# OpenAI Agents", s.URL)
	example = strings.ReplaceAll(example, "gpt-5.2", "scripted:agents")
	example = strings.ReplaceAll(example, "What is the weather in Berlin?", "client")
	if got := wiretest.Program(t, s.URL, s.Keys["ann"], wiretest.Python(t), wiretest.File(t, "example.py", example)); got != "I ask you.The weather: 21 degrees in Berlin\nThe weather: 21 degrees in Berlin\n" {
		t.Errorf("it prints\n%s", got)
	}
}
