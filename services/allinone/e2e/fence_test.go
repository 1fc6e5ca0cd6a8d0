package e2e

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	commonv1 "github.com/fairlead/fairlead/gen/go/fairlead/common/v1"
	sandboxv1 "github.com/fairlead/fairlead/gen/go/fairlead/sandbox/v1"
	toolsv1 "github.com/fairlead/fairlead/gen/go/fairlead/tools/v1"
	"github.com/fairlead/fairlead/services/internal/kit/apierr"
	"github.com/fairlead/fairlead/services/internal/kit/pg/pgtest"
	"github.com/fairlead/fairlead/services/internal/kit/principal"
)

// pair is two session replicas on one Postgres, each with gates before tools and the
// sandbox; the second is started later.
type pair struct {
	*system
	tools, sandbox       *gate // of the first replica
	otherTools, otherBox *gate // of the second
	first                *process
}

func startPair(t *testing.T) *pair {
	t.Helper()
	scenario, err := filepath.Abs(filepath.Join("testdata", "fence.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	o := options{data: sandboxDir(t), scenario: scenario, database: pgtest.New(t), addrs: map[string]string{}}
	for _, name := range []string{"http", "session", "session-peer", "session2", "session2-peer", "tools", "tools-peer", "sandbox-peer"} {
		o.addrs[name] = freeAddress(t)
	}
	p := &pair{system: &system{http: o.addrs["http"], grpc: o.addrs["session"], toolsGRPC: o.addrs["tools"], options: o}}
	t.TempDir() // it has the logs, and goes after they were shown
	t.Cleanup(func() { p.stop(t) })
	a := o.addrs
	p.spawn(t, "sandbox", []string{"--peer", a["sandbox-peer"], "--ops", "", "--data", filepath.Join(o.data, "sandbox")})
	p.spawn(t, "tools", []string{"--public", a["tools"], "--peer", a["tools-peer"], "--ops", "", "--data", filepath.Join(o.data, "tools"), "--sandbox", a["sandbox-peer"], "--session", a["session-peer"]})
	p.tools, p.sandbox = startGate(t, a["tools-peer"], "CallTool"), startGate(t, a["sandbox-peer"], "")
	p.otherTools, p.otherBox = startGate(t, a["tools-peer"], "CallTool"), startGate(t, a["sandbox-peer"], "EnsureWorkspace")
	p.first = p.replica(t, "session", p.tools, p.sandbox)
	p.spawn(t, "gateway", []string{"--public=", "--http", a["http"], "--session", a["session-peer"], "--tools", a["tools-peer"]})
	p.waitReady(t)
	return p
}

// replica starts a session service.
func (p *pair) replica(t *testing.T, name string, tools, sandbox *gate) *process {
	t.Helper()
	a := p.options.addrs
	p.spawn(t, "session", []string{"--public", a[name], "--peer", a[name+"-peer"], "--ops", "", "--data", filepath.Join(p.options.data, name),
		"--lease-ttl", "1s", "--poll-interval", "100ms", "--tools", tools.addr, "--sandbox", sandbox.addr, "--config", writeConfig(t, p.sessionConfig())})
	return p.processes[len(p.processes)-1]
}

func (p *pair) signal(t *testing.T, s syscall.Signal) {
	t.Helper()
	if err := p.first.cmd.Process.Signal(s); err != nil {
		t.Fatal(err)
	}
}

// effects is what calls have left in the workspace.
func (p *pair) effects(session string) string {
	text, _ := os.ReadFile(filepath.Join(p.options.data, "sandbox", "default", strings.TrimPrefix(session, "sessions/"), "workspace", "effects"))
	return string(text)
}

// TestAReplicaThatWakesUpStartsNothing stops a replica that has committed a call and
// not yet made it. Another one takes over, and has done nothing but to say so when the
// call arrives: tools and the sandbox refuse it.
func TestAReplicaThatWakesUpStartsNothing(t *testing.T) {
	t.Parallel()
	p := startPair(t)
	session := p.session(t, "coder")
	if r := p.call(t, http.MethodPost, "/v1/"+session+"/turns", `{"text":"work"}`); r.code != http.StatusOK {
		t.Fatalf("send: %d %s", r.code, r.body)
	}
	<-p.tools.reached // the call's start is committed, and its request is on the way
	p.signal(t, syscall.SIGSTOP)
	t.Cleanup(func() { _ = p.first.cmd.Process.Signal(syscall.SIGCONT) })
	p.replica(t, "session2", p.otherTools, p.otherBox)
	<-p.otherBox.reached // the first thing of the turn that the new holder does
	until(t, "both know of the takeover", func() bool {
		return p.otherTools.answered("FenceSession", "") && p.otherBox.answered("FenceWorkspace", "")
	})

	close(p.tools.open)
	until(t, "the late call is refused", func() bool { return p.tools.answered("CallTool", "STALE_EPOCH") })
	p.signal(t, syscall.SIGCONT)
	p.refusesTheFirst(t, session)
	if got := p.effects(session); got != "" {
		t.Errorf("the call of the replica that had lost the session left %q", got)
	}

	close(p.otherBox.open)
	close(p.otherTools.open)
	until(t, "the turn ends", func() bool {
		r := p.call(t, http.MethodGet, "/v1/"+session+"/turns", "")
		return strings.Contains(r.body, "TURN_STATE_COMPLETE")
	})
	if got := p.effects(session); got != "once\n" {
		t.Errorf("the call has left %q", got)
	}
	if p.tools.answered("CallTool", "") {
		t.Error("the replica that woke up made a call")
	}
}

// refusesTheFirst sends what the first replica could send to each of them.
func (p *pair) refusesTheFirst(t *testing.T, session string) {
	t.Helper()
	ctx := principal.With(t.Context(), principal.Service("default", "default"))
	ref := &commonv1.CallRef{Session: session, Epoch: 1, CallId: "late"}
	conn := dialPeer(t, p.options.addrs["sandbox-peer"])
	exec, err := sandboxv1.NewExecServiceClient(conn).Exec(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if err := exec.Send(&sandboxv1.ExecRequest{Kind: &sandboxv1.ExecRequest_Start{Start: &sandboxv1.ExecStart{Call: ref, Argv: []string{"sh", "-c", "echo late >> effects"}}}}); err != nil {
		t.Fatal(err)
	}
	if _, err := exec.Recv(); !apierr.Is(err, sandboxv1.ErrorReason_ERROR_REASON_STALE_EPOCH) {
		t.Errorf("the sandbox answers a late command with %v", err)
	}
	tools := dialPeer(t, p.options.addrs["tools-peer"])
	if _, err := toolsv1.NewCallServiceClient(tools).CancelCall(ctx, &toolsv1.CancelCallRequest{Call: ref}); !apierr.Is(err, toolsv1.ErrorReason_ERROR_REASON_STALE_EPOCH) {
		t.Errorf("tools answers a late cancel with %v", err)
	}
}
