package managed

import (
	"net/http"
	"strings"
	"testing"

	"github.com/fairlead/fairlead/services/allinone/e2e/wiretest"
	"github.com/fairlead/fairlead/services/internal/kit/prove"
)

const (
	inPython = `quickstart: It says 9007199254740993 end_turn ['bash'] idle
follow-up: You said: and then? end_turn
failure: retries_exhausted
paging: True True
outputs: ['number.txt'] b'9007199254740993\n'
allowed: It says 9007199254740993
denied: True
custom tool: The weather: 21 in Berlin
question: The user answered:
- Which? B
interrupt: word  You said: stop?
reconnect: ['one two three four five six seven eight nine ten']
file: The note: remember the milk 17
not found: 404
vaults: 404
versions: [2, 1] {'Key Ü': 'v'} True
archived: terminated 6 session_deleted
`
	inTypeScript = `quickstart: It says 9007199254740993 end_turn bash
follow-up: You said: and then? true
failure: retries_exhausted
paging: true
allowed: It says 9007199254740993
custom tool: The weather: 21
interrupt: You said: stop?
not found: 404 true
`
)

func TestTheOfficialClients(t *testing.T) {
	t.Parallel()
	prove.Only(t, "it starts the official clients in two languages")
	s := serveUsers(t)
	asker := `{"model":"scripted:agents","profile":"full","tools":["AskUserQuestion"]}`
	if code, text := s.Call(t, "POST", "/v1/agents?agentId=asker", asker, "Authorization", "Bearer "+s.Keys["ann"]); code != http.StatusOK {
		t.Fatal(text)
	}
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
	script := strings.ReplaceAll(wiretest.Example(t, "managed-agents.md", "python", "# Claude Managed Agents", s.URL), "claude-sonnet-5-5", "scripted:agents")
	if got := wiretest.Program(t, s.URL, s.Keys["ann"], wiretest.Python(t), wiretest.File(t, "example.py", script)); got != "You said: Write a haiku into haiku.txt.\n" {
		t.Errorf("it prints\n%s", got)
	}
}
