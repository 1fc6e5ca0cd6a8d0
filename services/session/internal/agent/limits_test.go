package agent

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/testing/protocmp"
	"google.golang.org/protobuf/types/known/durationpb"

	sandboxv1 "github.com/fairlead/fairlead/gen/go/fairlead/sandbox/v1"
	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
)

func TestAnAgentsLimitsAreAskedForAndShown(t *testing.T) {
	s := Spec{Profile: "full", Limits: Limits{Memory: 1 << 30, CPUs: 0.5, OpenFiles: 64, WorkspaceInodes: 1000, MaxTimeout: time.Minute}}
	want := &sandboxv1.WorkspaceLimits{MemoryBytes: 1 << 30, CpuMillis: 500, OpenFiles: 64, WorkspaceInodes: 1000, MaxTimeout: durationpb.New(time.Minute)}
	if d := cmp.Diff(want, s.WorkspaceLimits(), protocmp.Transform()); d != "" {
		t.Error(d)
	}
	kept, err := Unmarshal(s.Marshal())
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(want, kept.WorkspaceLimits(), protocmp.Transform()); d != "" {
		t.Errorf("as it is kept: %s", d)
	}
	shown := &sessionv1.AgentLimits{MemoryBytes: 1 << 30, CpuMillis: 500, OpenFiles: 64, WorkspaceInodes: 1000, MaxTimeout: durationpb.New(time.Minute)}
	if d := cmp.Diff(shown, Agent{ID: "a", Spec: s}.Proto("m", false).GetLimits(), protocmp.Transform()); d != "" {
		t.Error(d)
	}
	if (Spec{}).WorkspaceLimits() == nil {
		t.Error("an agent without limits asks for no change, which would leave it what another one had")
	}
	if strings.Contains(string(Spec{}.Marshal()), "limits") {
		t.Error("an agent without limits has another revision than before there were any")
	}
}

func TestFaultyLimitsOfAgentsAreExplained(t *testing.T) {
	for want, l := range map[string]Limits{
		"limits.memory is negative": {Memory: -1}, "limits.max-timeout is negative": {MaxTimeout: -time.Second}, "less than 0.01": {CPUs: 0.001},
	} {
		_, err := NewSet(map[string]Spec{"a": {Profile: "full", Limits: l}}, Coder)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want %q", l, err, want)
		}
	}
}
