package e2e

import (
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fairlead/fairlead/services/internal/kit/prove"
)

// officialServers copies the official example servers to a folder that can be mounted.
func officialServers(t *testing.T) string {
	t.Helper()
	const modules = "../../../deploy/tools/mcp/node_modules"
	if _, err := os.Stat(filepath.Join(modules, "@modelcontextprotocol/server-everything")); err != nil {
		if os.Getenv("CI") != "" {
			t.Fatalf("the servers are missing: make deploy/tools/mcp/node_modules/.stamp: %v", err)
		}
		t.Skip("the servers are missing: make deploy/tools/mcp/node_modules/.stamp")
	}
	to := filepath.Join(sandboxDir(t), "mcp")
	// Node.js of the suite is large, and the servers use the sandbox's own.
	script := `mkdir -m 755 "$2" && tar -C "$1" --exclude='node_modules/node*' --exclude=.bin -cf - node_modules | tar -C "$2" --no-same-owner -xf - && chmod -R a+rX "$2"`
	if out, err := exec.CommandContext(t.Context(), "bash", "-c", script, "-", filepath.Dir(modules), to).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if os.Getuid() == 0 {
		if err := os.Chown(to, 4001, 4001); err != nil {
			t.Fatal(err)
		}
	}
	return to
}

// TestAModelUsesTheOfficialServers has turns of a model call the example servers of the protocol's authors, which run
// in the session's sandbox from a mounted folder, as docs/tools.md says.
func TestAModelUsesTheOfficialServers(t *testing.T) {
	t.Parallel()
	prove.Only(t, "it starts programs of Node.js")
	const at = "/workspace/mnt/mcp/node_modules/@modelcontextprotocol/"
	s := start(t, options{
		scenario: filepath.Join("testdata", "official.yaml"),
		sandbox:  fmt.Sprintf("mounts:\n  - {name: servers, source: %q, alias: mnt/mcp, on-request: true}\n", officialServers(t)),
		agents: "  clerk:\n    profile: full\n    tools: [Read]\n    mounts: [{name: servers}]\n    mcp-servers:\n" +
			"      everything: {command: node, args: [" + at + "server-everything/dist/index.js], required: true}\n" +
			"      files: {command: node, args: [" + at + "server-filesystem/dist/index.js, /workspace], required: true}\n",
	})
	session := s.session(t, "clerk")
	frames := s.turn(t, session, "use both")
	last(t, frames, "COMPLETE")
	got := results(frames)
	for i, want := range []struct{ begins, has string }{
		{"mcp__everything__echo OK", "hello, 9007199254740993"},
		{"mcp__everything__get-sum OK", "42"},
		{"mcp__everything__get-tiny-image OK", ""},
		{"mcp__everything__get-structured-content OK", "temperature"},
		{"mcp__everything__trigger-long-running-operation OK", "completed"},
		{"mcp__files__write_file OK", "made.txt"},
		{"mcp__files__read_text_file OK", "by the server"},
		{"mcp__files__read_text_file ERROR", "Access denied"},
		{"mcp__everything__get-sum ERROR", "do not fit the tool's input schema"},
		{"Read OK", "by the server"},
	} {
		if i >= len(got) || !strings.HasPrefix(got[i], want.begins) || !strings.Contains(got[i], want.has) {
			t.Errorf("result %d of %q is not %v", i, got, want)
		}
	}
	if count(frames, "tool_call.progress") == 0 {
		t.Errorf("the long call reports no progress: %s", events(frames))
	}

	turn := made(t, s.call(t, http.MethodPost, "/v1/"+session+"/turns", `{"text":"let a person answer"}`))
	w := s.waitsSoon(t, session)
	answer := fmt.Sprintf(`{"callId":%q,"questionId":%q,"action":"QUESTION_ACTION_ACCEPT","contentJson":"{\"name\":\"Ann\"}"}`, w.CallID, w.Question.ID)
	if r := s.call(t, http.MethodPost, "/v1/"+session+"/questions:answer", answer); r.code != http.StatusOK {
		t.Fatalf("the answer: %d %s", r.code, r.body)
	}
	until(t, "the end of the turn", func() bool { return s.waitFor(t, turn).State != "TURN_STATE_WAITING" })
	frames = s.stream(t, http.MethodGet, "/v1/"+session+"/events", "", func(f frame) bool { return f.event != "turn.finished" || f.field("turn") != turn })
	last(t, frames, "COMPLETE")
	if got = results(frames); !strings.HasPrefix(got[len(got)-1], "mcp__everything__trigger-elicitation-request OK") || !strings.Contains(got[len(got)-1], "Ann") {
		t.Errorf("the call ended %q", got[len(got)-1])
	}
}
