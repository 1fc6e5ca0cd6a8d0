package mcp

import (
	"strings"
	"testing"

	commonv1 "github.com/fairlead/fairlead/gen/go/fairlead/common/v1"
	"github.com/fairlead/fairlead/services/tools/internal/store"
)

// The sandbox keeps the epochs of a workspace's session and of subagents in it apart: one under the other's name would
// fence it out.
func TestACommandRunsUnderTheEpochOfItsCaller(t *testing.T) {
	root := Caller{User: "ann", Ref: store.Ref{Session: "sessions/root", Epoch: 5}}
	child := Caller{User: "ann", Ref: store.Ref{Session: "sessions/root", Holder: "sessions/sub-1", Epoch: 1}}
	late := root
	late.Ref.Epoch = 4
	s := offer{McpServer: &commonv1.McpServer{Transport: &commonv1.McpServer_Stdio{Stdio: &commonv1.McpStdio{Command: "c"}}}}
	l := newLink(t.Context(), &Pool{}, strings.Repeat("k", 64), root, s)
	defer l.stop(nil)
	for i, c := range []struct{ holds, want Caller }{{root, root}, {late, root}, {child, child}, {root, root}} {
		l.hold(c.holds)
		if got := l.newProcess().call; got.Holder != c.want.Ref.Holder || got.Epoch != c.want.Ref.Epoch || got.Session != "sessions/root" {
			t.Errorf("%d: the command runs for %v", i, got)
		}
	}
}
