package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestMCPServersAreAddedListedImportedAndRemoved(t *testing.T) {
	t.Parallel()
	needSandbox(t)
	data := dataOf(t)
	address := serverOf(t, data)
	command := func(args ...string) (out, errs string, code int) {
		at := append([]string{"mcp", args[0], "--server", address}, args[1:]...)
		return fairlead(t.Context(), "", map[string]string{"PATH": os.Getenv("PATH"), "HOME": data, "BASE": "https://old.example.com"}, at...)
	}
	good := func(want string, args ...string) {
		t.Helper()
		if out, errs, code := command(args...); code != 0 || !strings.Contains(out, want) {
			t.Fatalf("%v: exit code %d: %s%s", args, code, out, errs)
		}
	}
	good("wiki is one of your MCP servers", "add", "--header", "Authorization=Bearer hush", "wiki", "https://wiki.example.com/mcp")
	good("files is one of", "add", "--env", "KEY=${KEY}", "files", "--", "npx", "-y", "some-server", "--verbose")
	good("npx -y some-server --verbose", "list")
	if out, _, _ := command("list", "--json"); strings.Contains(out, "hush") || !strings.Contains(out, `${KEY}`) {
		t.Errorf("listed %s", out)
	}
	file := filepath.Join(t.TempDir(), ".mcp.json")
	if err := os.WriteFile(file, []byte(`{"mcpServers":{"old":{"type":"sse","url":"${BASE}/sse"}}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	good("old is one of", "import", file)
	good("https://old.example.com/sse", "list")
	good("", "remove", "old")
	if out, _, _ := command("list"); strings.Contains(out, "old") {
		t.Errorf("it is still there: %s", out)
	}
	if out, errs, code := command("add", "bad", "ftp://x"); code != 2 || !strings.Contains(errs, "begins with https:// or http://, not with ftp://") {
		t.Errorf("a URL of another scheme: exit code %d: %s%s", code, out, errs)
	}
	for name, args := range map[string][]string{
		"a command with a header": {"add", "--header", "A=b", "x", "--", "cat"},
		"a URL with arguments":    {"add", "x", "https://x.example.com", "more"},
		"a bad name":              {"add", "a__b", "https://x.example.com"},
		"no such file":            {"import", file + ".none"},
		"no such server":          {"remove", "old"},
	} {
		if out, errs, code := command(args...); code == 0 || errs == "" {
			t.Errorf("%s: exit code %d: %s%s", name, code, out, errs)
		}
	}
}
