package calls

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	commonv1 "github.com/fairlead/fairlead/gen/go/fairlead/common/v1"
	toolsv1 "github.com/fairlead/fairlead/gen/go/fairlead/tools/v1"
	"github.com/fairlead/fairlead/services/internal/kit/prove"
)

// python is an MCP server of the first revision, in a few lines.
const python = `
import json, os, sys
print("Greetings from the server, which is no message.", flush=True)
print("started", file=sys.stderr, flush=True)
def reply(id, result): print(json.dumps({"jsonrpc": "2.0", "id": id, "result": result}), flush=True)
for line in sys.stdin:
    m = json.loads(line)
    if m.get("method") == "initialize":
        reply(m["id"], {"protocolVersion": "2024-11-05", "capabilities": {"tools": {}}, "serverInfo": {"name": "py", "version": "1"}})
    elif m.get("method") == "tools/list":
        reply(m["id"], {"tools": [{"name": n, "inputSchema": {"type": "object"}} for n in ("env", "write", "die", "hang", "flood", "pid")]})
    elif m.get("method") == "tools/call":
        name, args = m["params"]["name"], m["params"].get("arguments", {})
        if name == "die": print("last words", file=sys.stderr, flush=True); os._exit(7)
        if name == "hang": continue
        if name == "write": open("made.txt", "w").write("by the server")
        text = {"env": os.environ.get("OWN", "") + " in " + os.getcwd(), "pid": str(os.getpid()), "flood": "x" * (1 << 22)}.get(name, "done")
        reply(m["id"], {"content": [{"type": "text", "text": text}]})
    elif "id" in m:
        print(json.dumps({"jsonrpc": "2.0", "id": m["id"], "error": {"code": -32601, "message": "no such method"}}), flush=True)
`

func command(name string, argv ...string) *commonv1.McpServer {
	return &commonv1.McpServer{Name: name, Transport: &commonv1.McpServer_Stdio{Stdio: &commonv1.McpStdio{Command: argv[0], Args: argv[1:], Env: map[string]string{"OWN": "own value"}}}}
}

// mcp calls a tool of a server.
func (f *fixture) mcp(s *commonv1.McpServer, tool string, args map[string]any) answer {
	f.Helper()
	q := f.request("full", "mcp__"+s.GetName()+"__"+tool, args)
	q.Servers = []*commonv1.McpServer{s}
	return f.send(q)
}

func (f *fixture) status(s *commonv1.McpServer) *commonv1.McpServerStatus {
	f.Helper()
	r, err := f.calls.ListSessionTools(f.Context(), &toolsv1.ListSessionToolsRequest{
		Call: &commonv1.CallRef{Session: session, Epoch: 1, CallId: "list"}, Servers: []*commonv1.McpServer{s},
	})
	if err != nil {
		f.Fatal(err)
	}
	return r.GetServers()[0]
}

func (f *fixture) server(script string) *commonv1.McpServer {
	f.Helper()
	if err := os.WriteFile(filepath.Join(f.workspace, "server.py"), []byte(script), 0o666); err != nil {
		f.Fatal(err)
	}
	return command("py", "python3", "server.py")
}

func TestAServerInTheSandboxIsCalled(t *testing.T) {
	f := start(t, nil)
	s := f.server(python)
	if st := f.status(s); st.GetState() != commonv1.McpServerState_MCP_SERVER_STATE_CONNECTED || st.GetServer() != "py 1" || st.GetProtocolVersion() != "2024-11-05" || len(st.GetTools()) != 6 {
		t.Fatalf("the status is %v", st)
	}
	if a := f.mcp(s, "env", nil); a.outcome != "OK" || a.text != "own value in /workspace" {
		t.Errorf("got %+v", a)
	}
	if a := f.mcp(s, "write", nil); a.outcome != "OK" || f.bash("cat made.txt") != "by the server" {
		t.Errorf("got %+v", a)
	}
	one, two := f.mcp(s, "pid", nil), f.mcp(s, "pid", nil)
	if one.text != two.text || one.outcome != "OK" {
		t.Errorf("the server has the ids %q and %q: it was started twice", one.text, two.text)
	}
	if a := f.mcp(s, "flood", nil); a.outcome != "OK" || !strings.Contains(a.text, "bytes of text were left out") || len(a.text) > 200_000 {
		t.Errorf("got %s with %d bytes", a.outcome, len(a.text))
	}
	// It is gone with the session.
	if _, err := f.calls.DeleteSessionCalls(t.Context(), &toolsv1.DeleteSessionCallsRequest{Session: session, NextEpoch: 2}); err != nil {
		t.Fatal(err)
	}
	if alive(one.text) {
		t.Error("the server runs on after its session")
	}
}

// alive reports whether a process of this machine runs the server's script.
func alive(string) bool {
	all, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, p := range all {
		if b, err := os.ReadFile(p); err == nil && string(b) == "python3\x00server.py\x00" {
			return true
		}
	}
	return false
}

func TestAServerThatDiesInACallLeavesItsEndUnknown(t *testing.T) {
	f := start(t, nil)
	s := f.server(python)
	a := f.mcp(s, "die", nil)
	if a.outcome != "UNKNOWN" || !strings.Contains(a.text, "may have taken effect") {
		t.Errorf("got %+v", a)
	}
	if a := f.mcp(s, "env", nil); a.outcome != "OK" {
		t.Errorf("after the server's end: got %+v", a)
	}
}

func TestAServerThatCannotRunSaysWhy(t *testing.T) {
	for name, c := range map[string]struct {
		argv []string
		says []string
	}{
		"dies at once":      {[]string{"bash", "-c", "echo my last words >&2; exit 3"}, []string{"exit code 3", "my last words"}},
		"does not exist":    {[]string{"no-such-program"}, []string{"no-such-program"}},
		"prints nonsense":   {[]string{"bash", "-c", "yes nonsense"}, []string{"no message of the protocol"}},
		"prints a fraction": {[]string{"bash", "-c", `echo '{"jsonrpc":"2.0","id":1,"result":'; exit 1`}, []string{"exit code 1"}},
	} {
		t.Run(name, func(t *testing.T) {
			f := start(t, nil)
			st := f.status(command("bad", c.argv...))
			for _, text := range c.says {
				if st.GetState() != commonv1.McpServerState_MCP_SERVER_STATE_FAILED || !strings.Contains(st.GetMessage(), text) {
					t.Errorf("the status is %v, want %q", st, text)
				}
			}
		})
	}
}

func TestACallThatHangsEndsAtItsTime(t *testing.T) {
	f := start(t, nil)
	s := f.server(python)
	s.Timeout = durationpb.New(time.Second)
	a := f.mcp(s, "hang", nil)
	if a.outcome != "UNKNOWN" || !strings.Contains(a.text, "took longer") {
		t.Errorf("got %+v", a)
	}
	if a := f.mcp(s, "env", nil); a.outcome != "OK" {
		t.Errorf("afterwards: got %+v", a)
	}
}

// official copies the official example servers into the workspace.
func (f *fixture) official() {
	f.Helper()
	const modules = "../../../../deploy/tools/mcp/node_modules"
	if _, err := os.Stat(filepath.Join(modules, "@modelcontextprotocol/server-everything")); err != nil {
		if os.Getenv("CI") != "" {
			f.Fatalf("the servers are missing: make deploy/tools/mcp/node_modules/.stamp: %v", err)
		}
		f.Skip("the servers are missing: make deploy/tools/mcp/node_modules/.stamp")
	}
	// Node.js of the suite is large, and the servers use the sandbox's own.
	copied, err := exec.CommandContext(f.Context(), "tar", "-C", filepath.Dir(modules), "--exclude=node_modules/node*", "--exclude=.bin", "--no-same-owner", "-cf", filepath.Join(f.workspace, "modules.tar"), "node_modules").CombinedOutput()
	if err != nil {
		f.Fatalf("%v: %s", err, copied)
	}
	if err := os.Chmod(filepath.Join(f.workspace, "modules.tar"), 0o644); err != nil {
		f.Fatal(err)
	}
	f.bash("tar xf modules.tar && rm modules.tar")
}

func TestTheOfficialServers(t *testing.T) {
	prove.Only(t, "it starts programs of Node.js")
	f := start(t, nil)
	f.official()
	everything := command("everything", "node", "node_modules/@modelcontextprotocol/server-everything/dist/index.js")
	st := f.status(everything)
	for n := 0; st.GetState() == commonv1.McpServerState_MCP_SERVER_STATE_CONNECTING && n < 10; n++ {
		st = f.status(everything)
	}
	if st.GetState() != commonv1.McpServerState_MCP_SERVER_STATE_CONNECTED || len(st.GetTools()) < 5 {
		t.Fatalf("the status is %v", st)
	}
	t.Log(st.GetServer(), st.GetProtocolVersion(), st.GetTools())
	if a := f.mcp(everything, "echo", map[string]any{"message": "hello"}); a.outcome != "OK" || !strings.Contains(a.text, "hello") {
		t.Errorf("got %+v", a)
	}
	if a := f.mcp(everything, "get-sum", map[string]any{"a": 2, "b": 3}); a.outcome != "OK" || !strings.Contains(a.text, "5") {
		t.Errorf("got %+v", a)
	}
	files := command("files", "node", "node_modules/@modelcontextprotocol/server-filesystem/dist/index.js", "/workspace")
	f.bash("echo inside > a.txt")
	if a := f.mcp(files, "read_text_file", map[string]any{"path": "/workspace/a.txt"}); a.outcome != "OK" || !strings.Contains(a.text, "inside") {
		t.Errorf("got %+v", a)
	}
	if a := f.mcp(files, "read_text_file", map[string]any{"path": "/etc/passwd"}); a.outcome != "ERROR" {
		t.Errorf("got %+v", a)
	}
}
