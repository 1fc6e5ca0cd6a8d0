package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	commonv1 "github.com/fairlead/fairlead/gen/go/fairlead/common/v1"
	sandboxv1 "github.com/fairlead/fairlead/gen/go/fairlead/sandbox/v1"
	"github.com/fairlead/fairlead/services/internal/kit/apierr"
	"github.com/fairlead/fairlead/services/internal/kit/principal"
)

// fleet is a Fairlead with two sandbox nodes and an object store, in processes.
type fleet struct {
	*system
	objects string
	nodes   map[string]*process
}

// startFleet starts it. further are options of session.
func startFleet(t *testing.T, further ...string) *fleet {
	t.Helper()
	scenario, err := filepath.Abs(filepath.Join("testdata", "nodes.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	o := options{data: sandboxDir(t), scenario: scenario, addrs: map[string]string{}}
	for _, name := range []string{"http", "session", "tools", "session-peer", "session-ops", "tools-peer", "node-a", "node-b"} {
		o.addrs[name] = freeAddress(t)
	}
	f := &fleet{system: &system{http: o.addrs["http"], grpc: o.addrs["session"], toolsGRPC: o.addrs["tools"], options: o}, nodes: map[string]*process{}}
	f.objects = filepath.Join(o.data, "objects")
	t.TempDir() // it has the logs, and goes after they were shown
	t.Cleanup(func() { f.stop(t) })
	for _, n := range []string{"a", "b"} {
		f.startNode(t, n)
	}
	a := o.addrs
	for _, n := range []string{"a", "b"} { // or session counts one that takes a second to start as lost
		until(t, "node "+n+" listens", func() bool {
			conn, err := net.Dial("tcp", a["node-"+n])
			if err != nil {
				return false
			}
			return conn.Close() == nil
		})
	}
	list := "a=" + a["node-a"] + ",b=" + a["node-b"]
	f.spawn(t, "tools", []string{"--public", a["tools"], "--peer", a["tools-peer"], "--ops", "", "--data", filepath.Join(o.data, "tools"), "--sandbox-nodes", list, "--session", a["session-peer"]})
	f.spawn(t, "session", append([]string{"--public", a["session"], "--peer", a["session-peer"], "--ops", a["session-ops"], "--data", filepath.Join(o.data, "session"),
		"--sandbox-nodes", list, "--sandbox-lost-after", "1s", "--tools", a["tools-peer"], "--config", writeConfig(t, f.sessionConfig())}, further...))
	f.spawn(t, "gateway", []string{"--public=", "--http", a["http"], "--session", a["session-peer"], "--tools", a["tools-peer"]})
	f.waitReady(t)
	return f
}

func (f *fleet) startNode(t *testing.T, name string) {
	t.Helper()
	f.spawn(t, "sandbox", []string{"--peer", f.options.addrs["node-"+name], "--ops", "", "--node", name, "--data", filepath.Join(f.options.data, name),
		"--object-store.url", "file://" + f.objects})
	f.nodes[name] = f.processes[len(f.processes)-1]
}

// killNode ends a node without a warning.
func (f *fleet) killNode(t *testing.T, name string) {
	t.Helper()
	p := f.nodes[name]
	if err := p.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = <-p.done //nolint:staticcheck // only the end matters
	f.processes = slices.DeleteFunc(f.processes, func(o *process) bool { return o == p })
}

// dir is where a node has a session's workspace, or would have it.
func (f *fleet) dir(node, session string) string {
	return filepath.Join(f.options.data, node, "default", strings.TrimPrefix(session, "sessions/"))
}

// home is the node that has the workspace, and the other one.
func (f *fleet) home(t *testing.T, session string) (node, other string) {
	t.Helper()
	for _, n := range [][2]string{{"a", "b"}, {"b", "a"}} {
		if exists(f.dir(n[0], session)) {
			return n[0], n[1]
		}
	}
	t.Fatal("no node has the workspace")
	return "", ""
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// until waits for something that happens in another process.
func until(t *testing.T, what string, holds func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	for !holds() {
		if ctx.Err() != nil {
			t.Fatalf("it never was so: %s", what)
		}
		pause(ctx)
	}
}

// exports matches how many workspaces session has noted as exported.
var exports = regexp.MustCompile(`fairlead_jobs_total\{[^}]*kind="export"[^}]*outcome="done"[^}]*\} (\d+)`)

// exported waits until the object store has snapshots of a place, and session knows of the
// fleet's so many exports: who is killed in between has the next one told of another.
func (f *fleet) exported(t *testing.T, session, generation string, snapshots, noted int) {
	t.Helper()
	until(t, "an export of generation "+generation, func() bool {
		got, _ := filepath.Glob(filepath.Join(f.objects, "default", strings.TrimPrefix(session, "sessions/"), "00000000000"+generation, "snapshots", "*"))
		known := 0
		if count := exports.FindStringSubmatch(f.metrics(t, "session")); count != nil {
			known, _ = strconv.Atoi(count[1])
		}
		return len(got) >= snapshots && known >= noted
	})
}

// moved is the event of the move, which there must be once.
func moved(t *testing.T, frames []frame) frame {
	t.Helper()
	var found []frame
	for _, f := range frames {
		if f.event == "workspace.moved" {
			found = append(found, f)
		}
	}
	if len(found) != 1 {
		t.Fatalf("the workspace moved %d times: %s", len(found), events(frames))
	}
	return found[0]
}

// cli runs the command line against session's peer listener.
func (f *fleet) cli(t *testing.T, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), filepath.Join(programs, "fairlead"), args...)
	cmd.Env = []string{"FAIRLEAD_SESSION_PEER=" + f.options.addrs["session-peer"], "FAIRLEAD_INTERNAL_KEY=" + internalKey, "HOME=" + t.TempDir()}
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("fairlead %v: %v: %s", args, err, out)
	}
	return string(out)
}

// refuses checks that a node has nothing for the place that it once had, nor for the
// one that there is now.
func (f *fleet) refuses(t *testing.T, node, session string, generation int64) {
	t.Helper()
	conn := dialPeer(t, f.options.addrs["node-"+node])
	files := sandboxv1.NewFileServiceClient(conn)
	ask := func() error {
		_, err := files.ListFiles(principal.With(t.Context(), principal.Service("default", "default")), &sandboxv1.ListFilesRequest{Session: session, WorkspaceGeneration: generation})
		return err
	}
	until(t, "node "+node+" answers", func() bool { return !strings.Contains(apierr.Code(ask()).String(), "Unavailable") })
	switch got := apierr.As[sandboxv1.ErrorReason](ask()); got {
	case sandboxv1.ErrorReason_ERROR_REASON_STALE_GENERATION, sandboxv1.ErrorReason_ERROR_REASON_WORKSPACE_NOT_FOUND:
	default:
		t.Errorf("node %s answers with %q", node, got)
	}
	until(t, "node "+node+" has cleaned up", func() bool { return !exists(f.dir(node, session)) })
}

func TestASessionOutlivesItsNodes(t *testing.T) {
	t.Parallel()
	f := startFleet(t)
	if r := f.call(t, http.MethodPut, "/v1/users/default/variables/REGION", `{"value":"`+secret+`"}`); r.code != http.StatusOK || strings.Contains(r.body, secret) {
		t.Errorf("setting a variable: %d %s", r.code, r.body)
	}
	if r := f.call(t, http.MethodGet, "/v1/users/default/variables", ""); !strings.Contains(r.body, "users/default/variables/REGION") || strings.Contains(r.body, secret) {
		t.Errorf("the variables are %d %s", r.code, r.body)
	}
	session := f.session(t, "coder")
	last(t, f.turn(t, session, "keep this"), "COMPLETE")
	f.exported(t, session, "1", 2, 1) // one from before the change, one from the end
	first, second := f.home(t, session)

	f.killNode(t, first)
	frames := f.turn(t, session, "look now")
	end := last(t, frames, "COMPLETE")
	event := moved(t, frames)
	for _, c := range []struct{ name, want string }{
		{"fromNode", first}, {"toNode", second}, {"generation", "2"}, {"cause", "WORKSPACE_MOVE_CAUSE_NODE_LOST"}, {"empty", ""},
	} {
		if got := event.field("workspaceMoved", c.name); got != c.want {
			t.Errorf("%s of the move is %q, want %q", c.name, got, c.want)
		}
	}
	if event.field("workspaceMoved", "restoredTurn") == "" || event.field("workspaceMoved", "restoredTime") == "" {
		t.Errorf("the move does not say what is lost: %s", event.data)
	}
	if got := end.field("turnFinished", "finalText"); !strings.Contains(got, "one") || !strings.Contains(got, "empty") || !strings.Contains(got, "region="+secret) || strings.Contains(got, "two") {
		t.Errorf("after the move there is %q", got)
	}
	f.exported(t, session, "2", 1, 2)

	f.startNode(t, first)
	f.refuses(t, first, session, 2)

	f.testCallUnderWay(t, session, second, first)
	f.testDeletion(t, session, second)
	f.quietAbout(t, secret)
}

// quietAbout checks that no process's log has a secret.
func (f *fleet) quietAbout(t *testing.T, secret string) {
	t.Helper()
	for _, p := range f.processes {
		if raw, err := os.ReadFile(p.log.Name()); err != nil || strings.Contains(string(raw), secret) {
			t.Errorf("the log %s has the secret, or cannot be read: %v", p.log.Name(), err)
		}
	}
}

// copyMore copies what a node has in the middle of a turn, as an export does of the
// checkpoints that were made since.
func (f *fleet) copyMore(t *testing.T, session, node string, generation int64) {
	t.Helper()
	var meta struct{ Epoch int64 }
	raw, err := os.ReadFile(filepath.Join(f.dir(node, session), "workspace.json"))
	if err := errors.Join(err, json.Unmarshal(raw, &meta)); err != nil {
		t.Fatal(err)
	}
	conn := dialPeer(t, f.options.addrs["node-"+node])
	snapshots, ctx := sandboxv1.NewSnapshotServiceClient(conn), principal.With(t.Context(), principal.Service("default", "default"))
	call := &commonv1.CallRef{Session: session, Epoch: meta.Epoch, CallId: "more", Node: node, WorkspaceGeneration: generation}
	_, err = snapshots.CreateSnapshot(ctx, &sandboxv1.CreateSnapshotRequest{Call: call})
	if err == nil {
		_, err = snapshots.ExportSnapshots(ctx, &sandboxv1.ExportSnapshotsRequest{Call: call})
	}
	if err != nil {
		t.Fatal(err)
	}
}

// testCallUnderWay loses the node while a command runs on it, after more was copied than
// the end of the turn before.
func (f *fleet) testCallUnderWay(t *testing.T, session, node, other string) {
	killed := false
	frames := f.stream(t, http.MethodPost, "/v1/"+session+"/turns:stream", `{"text":"hang on"}`, func(e frame) bool {
		if e.event == "tool_call.decision" && !killed {
			killed = true
			until(t, "the command runs", func() bool {
				text, _ := os.ReadFile(filepath.Join(f.dir(node, session), "workspace", "kept"))
				return strings.Contains(string(text), "lost")
			})
			f.copyMore(t, session, node, 2)
			f.killNode(t, node)
		}
		return true
	})
	end := last(t, frames, "COMPLETE")
	if e := moved(t, frames); e.field("workspaceMoved", "toNode") != other || e.field("workspaceMoved", "generation") != "3" || e.field("workspaceMoved", "restoredTurn") == "" {
		t.Errorf("it moved to %s", e.data)
	}
	got := results(frames)
	if len(got) != 3 || !strings.HasPrefix(got[0], "Bash UNKNOWN") || !strings.HasPrefix(got[1], "Bash UNAVAILABLE") || !strings.HasPrefix(got[2], "Bash OK") {
		t.Errorf("the calls ended %q", got)
	}
	if text := end.field("turnFinished", "finalText"); !strings.Contains(text, "one") || strings.Contains(text, "lost") || strings.Contains(text, "never") {
		t.Errorf("after the second move there is %q", text)
	}
}

// testDeletion deletes the session while a node that once had it is dead.
func (f *fleet) testDeletion(t *testing.T, session, dead string) {
	if r := f.call(t, http.MethodDelete, "/v1/"+session, ""); r.code != http.StatusOK {
		t.Fatalf("delete: %d %s", r.code, r.body)
	}
	until(t, "nothing is left of the session elsewhere", func() bool {
		left, _ := os.ReadDir(f.objects)
		return len(left) == 0 && !exists(f.dir(map[string]string{"a": "b", "b": "a"}[dead], session))
	})
	if !exists(f.dir(dead, session)) {
		t.Error("the dead node has no copy that could come back")
	}
	f.startNode(t, dead)
	f.refuses(t, dead, session, 9)
}

func TestARewoundWorkspaceIsNotUndoneByALostNode(t *testing.T) {
	t.Parallel()
	f := startFleet(t)
	session := f.session(t, "coder")
	last(t, f.turn(t, session, "keep this"), "COMPLETE")
	f.exported(t, session, "1", 2, 1)
	last(t, f.turn(t, session, "look now"), "COMPLETE")
	f.exported(t, session, "1", 3, 2)
	if r := f.call(t, http.MethodPost, "/v1/"+session+":rewind", `{"checkpoint":"`+f.newestCheckpoint(t, session)+`"}`); r.code != http.StatusOK {
		t.Fatalf("rewind: %d %s", r.code, r.body)
	}
	f.exported(t, session, "1", 2, 3)
	first, second := f.home(t, session)
	f.killNode(t, first)
	frames := f.turn(t, session, "look now")
	last(t, frames, "COMPLETE")
	if event := moved(t, frames); event.field("workspaceMoved", "toNode") != second || strings.Contains(event.data, "has nothing") {
		t.Errorf("the move tells %s", event.data)
	}
	if text, err := os.ReadFile(filepath.Join(f.dir(second, session), "workspace", "kept")); err != nil || string(text) != "one\n" {
		t.Errorf("the new node has %q, %v", text, err)
	}
}

// newestCheckpoint is the name of a session's last one.
func (f *fleet) newestCheckpoint(t *testing.T, session string) string {
	t.Helper()
	var all struct{ Checkpoints []struct{ Name string } }
	if r := f.call(t, http.MethodGet, "/v1/"+session+"/checkpoints", ""); json.Unmarshal([]byte(r.body), &all) != nil || len(all.Checkpoints) == 0 {
		t.Fatalf("the checkpoints are %d %s", r.code, r.body)
	}
	return all.Checkpoints[0].Name
}

func TestASessionThatWasNeverExportedIsToldThatItsFilesAreGone(t *testing.T) {
	t.Parallel()
	f := startFleet(t, "--workspace-export", "off")
	session := f.session(t, "coder")
	last(t, f.turn(t, session, "keep this"), "COMPLETE")
	first, second := f.home(t, session)
	f.killNode(t, first)
	frames := f.turn(t, session, "look now")
	last(t, frames, "COMPLETE")
	event := moved(t, frames)
	if event.field("workspaceMoved", "empty") != "true" || event.field("workspaceMoved", "restoredTurn") != "" || !strings.Contains(event.field("workspaceMoved", "message"), "it is empty now") {
		t.Errorf("the move tells %s", event.data)
	}
	if text, err := os.ReadFile(filepath.Join(f.dir(second, session), "workspace", "kept")); err == nil {
		t.Errorf("the new node has %q", text)
	}
	// Its node is dead for good: the deletion ends all the same.
	f.killNode(t, second)
	if r := f.call(t, http.MethodDelete, "/v1/"+session, ""); r.code != http.StatusOK {
		t.Fatalf("delete: %d %s", r.code, r.body)
	}
	f.startNode(t, first)
	f.refuses(t, first, session, 9)
}

// loseDisk has a node come back under its name, without what was on its disk.
func (f *fleet) loseDisk(t *testing.T, name string) {
	t.Helper()
	f.killNode(t, name)
	if err := os.RemoveAll(filepath.Join(f.options.data, name)); err != nil {
		t.Fatal(err)
	}
	until(t, "it is missed", func() bool { return !f.allAnswer(t) })
	f.startNode(t, name)
	until(t, "it answers", func() bool { return f.allAnswer(t) })
}

// allAnswer tells whether session knows of no node that does not answer.
func (f *fleet) allAnswer(t *testing.T) bool {
	t.Helper()
	nodes := f.cli(t, "nodes")
	return !strings.Contains(nodes, "LOST") && !strings.Contains(nodes, "SILENT")
}

func TestALostDiskIsNoticedWithoutAnyExport(t *testing.T) {
	t.Parallel()
	f := startFleet(t, "--workspace-export", "off")
	session := f.session(t, "coder")
	last(t, f.turn(t, session, "keep this"), "COMPLETE")
	first, _ := f.home(t, session)
	f.loseDisk(t, first)
	for what, r := range map[string]reply{
		"adding a repository": f.call(t, http.MethodPost, "/v1/"+session+"/repositories", `{"repositoryId":"mine"}`),
		"a fork":              f.call(t, http.MethodPost, "/v1/"+session+":fork", `{"sessionId":"forked"}`),
	} {
		if r.code != http.StatusBadRequest || !strings.Contains(r.body, "NODE_LOST") {
			t.Errorf("%s is answered with %d %s", what, r.code, r.body)
		}
	}
	frames := f.turn(t, session, "look now")
	last(t, frames, "COMPLETE")
	if e := moved(t, frames); e.field("workspaceMoved", "empty") != "true" || e.field("workspaceMoved", "fromNode") != first || e.field("workspaceMoved", "toNode") != first ||
		!strings.Contains(e.field("workspaceMoved", "message"), "has lost it") {
		t.Errorf("it is told %s", e.data)
	}
	if r := f.call(t, http.MethodPost, "/v1/"+session+"/repositories", `{"repositoryId":"mine"}`); r.code != http.StatusOK {
		t.Errorf("adding a repository afterwards: %d %s", r.code, r.body)
	}
}

func TestANodeThatHasLostItsDiskIsNotTakenForOneThatHasTheWorkspace(t *testing.T) {
	t.Parallel()
	f := startFleet(t)
	session := f.session(t, "coder")
	last(t, f.turn(t, session, "keep this"), "COMPLETE")
	f.exported(t, session, "1", 2, 1)
	first, _ := f.home(t, session)
	f.loseDisk(t, first)
	for what, r := range map[string]reply{
		"adding a repository": f.call(t, http.MethodPost, "/v1/"+session+"/repositories", `{"repositoryId":"mine"}`),
		"their list":          f.call(t, http.MethodGet, "/v1/"+session+"/repositories", ""),
		"a fork":              f.call(t, http.MethodPost, "/v1/"+session+":fork", `{"sessionId":"forked"}`),
	} {
		if r.code != http.StatusBadRequest || !strings.Contains(r.body, "NODE_LOST") {
			t.Errorf("%s while the files are to be restored is answered with %d %s", what, r.code, r.body)
		}
	}

	frames := f.turn(t, session, "look now")
	end := last(t, frames, "COMPLETE")
	if e := moved(t, frames); e.field("workspaceMoved", "empty") != "" || e.field("workspaceMoved", "generation") != "2" || e.field("workspaceMoved", "restoredTurn") == "" {
		t.Errorf("it moved %s", e.data)
	}
	if got := end.field("turnFinished", "finalText"); !strings.Contains(got, "one") || !strings.Contains(got, "empty") {
		t.Errorf("after its disk was lost there is %q", got)
	}
	f.exported(t, session, "2", 1, 2)
	last(t, f.turn(t, session, "look now"), "COMPLETE") // stays where it is
	f.exported(t, session, "2", 1, 3)
}

// objectsAway takes the object store away, until the returned function brings it back.
func (f *fleet) objectsAway(t *testing.T) (back func()) {
	t.Helper()
	away := f.objects + ".away"
	if err := errors.Join(os.Rename(f.objects, away), os.WriteFile(f.objects, nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	return func() {
		if err := errors.Join(os.Remove(f.objects), os.Rename(away, f.objects)); err != nil {
			t.Fatal(err)
		}
	}
}

// The node is lost in the middle of a turn, and the copy cannot be had then: the turn fails
// and nothing else does. Until a turn has restored the files, the workspace does not count as empty.
func TestAWorkspaceThatIsStillToBeRestoredIsNotTakenForAnEmptyOne(t *testing.T) {
	t.Parallel()
	f := startFleet(t, "--peer-patience", "2s")
	session := f.session(t, "coder")
	last(t, f.turn(t, session, "keep this"), "COMPLETE")
	f.exported(t, session, "1", 2, 1)
	first, second := f.home(t, session)
	var back func()
	frames := f.stream(t, http.MethodPost, "/v1/"+session+"/turns:stream", `{"text":"hang on"}`, func(e frame) bool {
		if e.event == "tool_call.decision" && back == nil {
			until(t, "the command runs", func() bool {
				text, _ := os.ReadFile(filepath.Join(f.dir(first, session), "workspace", "kept"))
				return strings.Contains(string(text), "lost")
			})
			back = f.objectsAway(t)
			f.killNode(t, first)
		}
		return true
	})
	last(t, frames, "FAILED")

	for what, r := range map[string]reply{
		"adding a repository": f.call(t, http.MethodPost, "/v1/"+session+"/repositories", `{"repositoryId":"mine"}`),
		"their list":          f.call(t, http.MethodGet, "/v1/"+session+"/repositories", ""),
		"a fork":              f.call(t, http.MethodPost, "/v1/"+session+":fork", `{"sessionId":"forked"}`),
	} {
		if r.code != http.StatusBadRequest || !strings.Contains(r.body, "NODE_LOST") || !strings.Contains(r.body, "Send a message") {
			t.Errorf("%s while the files are to be restored is answered with %d %s", what, r.code, r.body)
		}
	}
	if r := f.call(t, http.MethodGet, "/v1/sessions/forked", ""); r.code != http.StatusNotFound {
		t.Errorf("the fork is there: %d %s", r.code, r.body)
	}

	back()
	frames = f.turn(t, session, "look now")
	end := last(t, frames, "COMPLETE")
	if e := moved(t, frames); e.field("workspaceMoved", "empty") != "" || e.field("workspaceMoved", "toNode") != second {
		t.Errorf("it moved %s", e.data)
	}
	if got := end.field("turnFinished", "finalText"); !strings.Contains(got, "one") {
		t.Errorf("after the move there is %q", got)
	}
	if r := f.call(t, http.MethodPost, "/v1/"+session+"/repositories", `{"repositoryId":"mine"}`); r.code != http.StatusOK {
		t.Errorf("adding a repository afterwards: %d %s", r.code, r.body)
	}
}
