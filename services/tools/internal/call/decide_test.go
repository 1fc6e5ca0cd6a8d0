package call

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	toolsv1 "github.com/fairlead/fairlead/gen/go/fairlead/tools/v1"
	"github.com/fairlead/fairlead/services/tools/internal/permission"
	"github.com/fairlead/fairlead/services/tools/internal/registry"
	"github.com/fairlead/fairlead/services/tools/internal/tool"
)

// pathRunner is a runner whose path leads where a test says.
type pathRunner struct {
	*runner
	leads string
	fault error
	asked int
}

func (r *pathRunner) Resolve(context.Context, tool.Call, string) (leads, doubt string, err error) {
	r.asked++
	return r.leads, "", r.fault
}

func newPathWorld(t *testing.T) (*world, *pathRunner) {
	w := newWorld(t, done)
	r := &pathRunner{runner: w.runner, leads: "a"}
	made, err := tool.New(tool.Spec{Name: "Write", InputSchema: `{"type":"object"}`}, r)
	if err != nil {
		t.Fatal(err)
	}
	if w.Tools, err = registry.New(made); err != nil {
		t.Fatal(err)
	}
	for name, rules := range map[string]permission.Rules{
		"plain": {Allow: []string{"Write"}}, "paths": {Allow: []string{"Write"}, Ask: []string{"Edit(./private/**)"}, Deny: []string{"Edit(./secret/**)"}},
	} {
		if w.Policies.Profiles[name], err = permission.Compile(name, rules); err != nil {
			t.Fatal(err)
		}
	}
	return w, r
}

func writing(profile string) Request {
	q := request1(1)
	q.Tool, q.Allowed, q.Policy.Profile, q.Arguments = "Write", []string{"Write"}, profile, `{"file_path":"link"}`
	return q
}

func TestAToolGetsThePathThatWasDecidedOn(t *testing.T) {
	w, r := newPathWorld(t)
	if _, err := w.result(t, writing("paths")); err != nil || len(r.runs) != 1 || r.runs[0].Leads != "a" || !slices.Contains(r.runs[0].Withheld, "secret/**") {
		t.Errorf("%v after %+v", err, r.runs)
	}
	w, r = newPathWorld(t)
	if _, err := w.result(t, writing("plain")); err != nil || r.asked != 0 || r.runs[0].Leads != "" {
		t.Errorf("without a rule on paths: %v after %d questions and %+v", err, r.asked, r.runs)
	}
	w, r = newPathWorld(t)
	r.fault = tool.ErrUnavailable
	if _, err := w.result(t, writing("paths")); !errors.Is(err, tool.ErrUnavailable) || len(r.runs) != 0 {
		t.Errorf("a sandbox that is away: %v after %d runs", err, len(r.runs))
	}
	r.fault = nil
	if got, err := w.result(t, writing("paths")); err != nil || tool.Text(got) != "done" {
		t.Errorf("once it is back: %v, %v", got, err)
	}
}

func TestAnInterruptedCallDoesNotGoOnWhereItMayNot(t *testing.T) {
	for leads, want := range map[string]struct {
		runs    int
		outcome toolsv1.CallOutcome
	}{
		"a":         {2, toolsv1.CallOutcome_CALL_OUTCOME_OK},
		"secret/k":  {1, toolsv1.CallOutcome_CALL_OUTCOME_UNKNOWN},
		"private/k": {1, toolsv1.CallOutcome_CALL_OUTCOME_UNKNOWN},
	} {
		w, r := newPathWorld(t)
		w.store.before = []error{errors.New("broken")}
		if _, err := w.result(t, writing("paths")); err == nil {
			t.Fatal("the first run was recorded")
		}
		r.leads = leads
		got, err := w.result(t, writing("paths"))
		if err != nil || got.GetOutcome() != want.outcome || len(r.runs) != want.runs {
			t.Errorf("%s: %v, %v after %d runs", leads, got, err, len(r.runs))
		}
	}
}

func TestAnInterruptedCallThatWasApprovedGoesOn(t *testing.T) {
	w, r := newPathWorld(t)
	r.leads = "private/k"
	q := writing("paths")
	var asked *toolsv1.CallAsk
	if err := w.Call(t.Context(), q, func(m *toolsv1.CallToolResponse) error { asked = m.GetAsk(); return nil }); err != nil || !strings.Contains(asked.GetRule(), "private/k") {
		t.Fatalf("%v, %v", asked, err)
	}
	q.Approval = &toolsv1.Approval{Approved: true, Digest: asked.GetDigest()}
	w.store.before = []error{errors.New("broken")}
	if _, err := w.result(t, q); err == nil {
		t.Fatal("the first run was recorded")
	}
	if got, err := w.result(t, q); err != nil || tool.Text(got) != "done" || len(r.runs) != 2 {
		t.Errorf("%v, %v after %d runs", got, err, len(r.runs))
	}
}
