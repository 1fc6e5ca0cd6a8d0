package agent

import (
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/testing/protocmp"

	commonv1 "github.com/fairlead/fairlead/gen/go/fairlead/common/v1"
	sandboxv1 "github.com/fairlead/fairlead/gen/go/fairlead/sandbox/v1"
	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/session/internal/store"
)

func TestAWorkspaceIsAskedForWithTheMountsOfBoth(t *testing.T) {
	kept, err := Unmarshal(Spec{Mounts: []Mount{{Name: "tools", Path: "a", Alias: "mnt/t", Mode: "ro", Optional: true}, {Name: "books"}}}.Marshal())
	if err != nil {
		t.Fatal(err)
	}
	call := &commonv1.CallRef{Session: "sessions/s"}
	tools := &commonv1.Mount{Name: "tools", Path: "a", Alias: "mnt/t", Mode: "ro", Optional: true}
	books, drafts, other := &commonv1.Mount{Name: "books"}, &commonv1.Mount{Name: "drafts"}, &commonv1.Mount{Name: "tools", Mode: "rw"}
	for name, x := range map[string]struct {
		spec    Spec
		session []*commonv1.Mount
		want    []*commonv1.Mount
	}{
		"neither names any": {},
		"the agent's":       {spec: kept, want: []*commonv1.Mount{books, tools}},
		"the session's":     {session: []*commonv1.Mount{drafts}, want: []*commonv1.Mount{drafts}},
		"both, each once":   {kept, []*commonv1.Mount{other, drafts}, []*commonv1.Mount{books, drafts, other}},
	} {
		t.Run(name, func(t *testing.T) {
			want := &sandboxv1.EnsureWorkspaceRequest{
				Call: call, Network: &sandboxv1.NetworkPolicy{}, Limits: &sandboxv1.WorkspaceLimits{}, Mounts: &sandboxv1.WorkspaceMounts{Mounts: x.want},
				Trees: &sandboxv1.WorkspaceTrees{},
			}
			if d := cmp.Diff(want, x.spec.Workspace(&sessionv1.Session{Mounts: x.session}, call, Native), protocmp.Transform()); d != "" {
				t.Error(d)
			}
		})
	}
	if strings.Contains(string(Spec{}.Marshal()), "mounts") {
		t.Error("an agent without mounts has another revision than before there were any")
	}
}

func TestAnEnvironmentWithoutVariablesIsNotNone(t *testing.T) {
	for name, x := range map[string]struct {
		variables []store.Variable
		want      map[string]string
	}{
		"of one variable": {[]store.Variable{{Name: "A", Value: "1"}}, map[string]string{"A": "1"}},
		"of no variables": {},
	} {
		if d := cmp.Diff(&sandboxv1.WorkspaceEnvironment{Variables: x.want}, Spec{}.Variables(x.variables), protocmp.Transform()); d != "" {
			t.Errorf("%s: %s", name, d)
		}
	}
}

func TestFaultyMountsOfAgentsAreExplained(t *testing.T) {
	many := make([]Mount, 33)
	for i := range many {
		many[i].Name = "m" + strconv.Itoa(i)
	}
	for want, mounts := range map[string][]Mount{
		`mount "a/b": `: {{Name: "a/b"}}, `mount "a" is named twice`: {{Name: "a"}, {Name: "a", Path: "x"}}, "33 mounts are more than 32": many,
		`mounts "a" and "b" have the same alias mnt/x`: {{Name: "a", Alias: "mnt/x"}, {Name: "b", Alias: "mnt/x"}},
		"an alias is a path below mnt":                 {{Name: "a", Alias: "x"}}, "a path leads to a folder": {{Name: "a", Path: "../b"}}, "ro, rw": {{Name: "a", Mode: "x"}},
	} {
		_, err := NewSet(map[string]Spec{"a": {Profile: "full", Mounts: mounts}}, Coder)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: %v, want %q", mounts, err, want)
		}
	}
	if _, err := NewSet(map[string]Spec{"a": {Profile: "full", Mounts: many[:32]}}, Coder); err != nil {
		t.Error(err)
	}
}
