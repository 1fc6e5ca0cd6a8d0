package mcp

import (
	"bytes"
	"encoding/json"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/fairlead/fairlead/services/allinone/e2e/wiretest"
	"github.com/fairlead/fairlead/services/internal/kit/prove"
)

// tools is where the official clients are installed: npm ci --prefix deploy/tools/mcp, and bin/mcp for Python.
const (
	modules = "../../../../deploy/tools/mcp/node_modules"
	python  = "../../../../bin/mcp/bin/python"
	page    = "../../../../docs/mcp.md"
)

// example returns the examples of a language on the page for users, for this server.
func (s *server) example(t *testing.T, language string) string {
	t.Helper()
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	found := regexp.MustCompile("(?s)```"+language+"\n(.*?)```").FindAllSubmatch(text, -1)
	if len(found) != 1 {
		t.Fatalf("the page has %d examples in %s", len(found), language)
	}
	if !bytes.Contains(found[0][1], []byte("http://127.0.0.1:8080/mcp")) {
		t.Fatalf("the example in %s does not name the server", language)
	}
	return strings.ReplaceAll(string(found[0][1]), "http://127.0.0.1:8080", s.url)
}

// run runs a program of a client and returns what it prints.
func (s *server) run(t *testing.T, program string, arguments ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), program, arguments...)
	cmd.Env = append(os.Environ(), "FAIRLEAD_API_KEY="+s.keys["ann"], "SERVER="+s.url)
	var errs bytes.Buffer
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v\n%s\n%s", err, out, &errs)
	}
	return string(out)
}

// script writes a script where it finds the modules.
func script(t *testing.T, name, text string) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.Symlink(wiretest.Have(t, modules, "npm ci --prefix deploy/tools/mcp"), filepath.Join(dir, "node_modules")); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, name)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

const greeted = "Bash Read Write\nhello from /workspace\n"

// The example of the page is the official TypeScript client of version 2.
func TestTheTypeScriptClients(t *testing.T) {
	t.Parallel()
	node := wiretest.Have(t, modules+"/node/bin/node", "npm ci --prefix deploy/tools/mcp")
	s := serve(t, nil)
	t.Run("version 2, as on the page", func(t *testing.T) {
		for _, mode := range prove.Sample([]string{`"auto"`, `"legacy"`, `{ pin: "` + modern + `" }`}, 3) {
			text := s.example(t, "js")
			changed := strings.Replace(text, `"auto"`, mode, 1)
			if mode != `"auto"` && changed == text {
				t.Fatal("the example does not choose a revision")
			}
			if got := s.run(t, node, script(t, "example.mjs", changed)); strings.TrimSpace(got) != strings.TrimSpace(greeted) {
				t.Errorf("%s: it prints\n%s", mode, got)
			}
		}
	})
	t.Run("version 1", func(t *testing.T) {
		text, err := os.ReadFile("testdata/v1.mjs")
		if err != nil {
			t.Fatal(err)
		}
		got := s.run(t, node, script(t, "v1.mjs", string(text)))
		if lines := strings.Fields(got); strings.Join(lines, " ") != strings.Join(strings.Fields(greeted+"true 1 true -32602"), " ") {
			t.Errorf("it prints\n%s", got)
		}
	})
}

func TestThePythonClient(t *testing.T) {
	t.Parallel()
	interpreter := wiretest.Have(t, python, "make bin/mcp/.stamp")
	s := serve(t, nil)
	file := filepath.Join(t.TempDir(), "example.py")
	if err := os.WriteFile(file, []byte(s.example(t, "python")), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := s.run(t, interpreter, file); strings.TrimSpace(got) != strings.TrimSpace(greeted) {
		t.Errorf("it prints\n%s", got)
	}
}

// The other examples configure programs: their requests are what those programs send.
func TestTheConfigurationsOnThePage(t *testing.T) {
	t.Parallel()
	s := serve(t, nil)
	var code struct {
		Servers map[string]struct {
			Type, URL string
			Headers   map[string]string
		}
		Inputs []struct{ ID string }
	}
	if err := json.Unmarshal([]byte(s.example(t, "json")), &code); err != nil {
		t.Fatal(err)
	}
	server := code.Servers["fairlead"]
	if server.Type != "http" || server.URL != s.url+"/mcp" || server.Headers["Authorization"] != "Bearer ${input:"+code.Inputs[0].ID+"}" {
		t.Errorf("VS Code: %+v", code)
	}
	words := regexp.MustCompile(`"[^"]*"|\S+`).FindAllString(s.example(t, "sh"), -1)
	if len(words) != 9 || words[6] != s.url+"/mcp" || words[8] != `"Authorization: Bearer $FAIRLEAD_API_KEY"` {
		t.Errorf("Claude Code: %q", words)
	}
	list := `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"` + legacy + `","capabilities":{},"clientInfo":{"name":"x","version":"1"}}}`
	if resp := s.send(t.Context(), t, "", "POST", strings.TrimPrefix(server.URL, s.url), list, "Authorization", "Bearer "+s.keys["ann"]); resp.StatusCode != http.StatusOK {
		t.Errorf("%d %s", resp.StatusCode, read(t, resp))
	}
}
