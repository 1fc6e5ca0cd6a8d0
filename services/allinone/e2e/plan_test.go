package e2e

import (
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// planner is an agent whose changes a person is asked about. Its tools do not name ExitPlanMode.
const planner = "  planner: {profile: ask-writes, prompt: Plan., tools: [Read, Write, Task], subagents: [{name: helper, description: helps, prompt: p}]}\n"

// modes are the changes of the permission mode in a log.
func modes(frames []frame) (all []string) {
	for _, f := range frames {
		if f.event == "permission_mode.changed" {
			all = append(all, f.field("permissionModeChanged", "before")+" "+f.field("permissionModeChanged", "mode")+" "+f.field("permissionModeChanged", "user"))
		}
	}
	return all
}

// TestAPlanIsApprovedAfterRestarts has a turn in the mode plan show two plans. Every process is killed while one waits,
// and after its answer.
func TestAPlanIsApprovedAfterRestarts(t *testing.T) {
	t.Parallel()
	shapes(t, func(t *testing.T, o options) {
		o.scenario, o.agents = filepath.Join("testdata", "plan.yaml"), planner
		o.env = append(o.env, "FAIRLEAD_SESSION_LEASE_TTL=1s", "FAIRLEAD_SESSION_MAX_CLAIMS=40")
		s := start(t, o)
		session := s.session(t, "planner")
		turn := made(t, s.call(t, http.MethodPost, "/v1/"+session+"/turns", `{"text":"plan it","options":{"permissionMode":"PERMISSION_MODE_PLAN"}}`))
		first := s.waitsSoon(t, session)
		list := s.call(t, http.MethodGet, "/v1/approvals?session="+session, "").body
		if !strings.Contains(list, "APPROVAL_KIND_PLAN") || !strings.Contains(list, `"message":"1. Write b.txt"`) {
			t.Errorf("the list has %s", list)
		}
		for field, further := range map[string]string{
			"scope": `,"scope":"APPROVAL_SCOPE_SESSION"`, "mode": `,"mode":"PERMISSION_MODE_BYPASS"`, "updated_arguments_json": `,"updatedArgumentsJson":"{\"plan\":1}"`,
		} {
			if r := s.resolve(t, session, first.approval(true, further)); r.code != http.StatusBadRequest || !strings.Contains(r.body, field) {
				t.Errorf("%s: %d %s", further, r.code, r.body)
			}
		}
		s.kill()
		s = s.restart(t)
		if r := s.resolve(t, session, first.approval(false, `,"comment":"name it a.txt"`)); r.code != http.StatusOK {
			t.Fatalf("the refusal: %d %s", r.code, r.body)
		}
		var second *waiting
		until(t, "the second plan", func() bool { second = s.waits(t, session); return second != nil && second.CallID != first.CallID })
		s.kill()
		s = s.restart(t)
		if r := s.resolve(t, session, second.approval(true, `,"mode":"PERMISSION_MODE_ACCEPT_EDITS","comment":"good"`)); r.code != http.StatusOK {
			t.Fatalf("the approval: %d %s", r.code, r.body)
		}
		s.kill()
		s = s.restart(t)
		s.waitFor(t, turn)
		frames := s.whole(t, session)
		last(t, frames, "COMPLETE")
		got := results(frames)
		for i, want := range []struct{ end, text string }{
			{"Write DENIED ", "the mode plan denies changes"},
			{"ExitPlanMode REFUSED ", "The user did not approve the plan, and the mode plan still holds: nothing may be changed. Change the plan and show it again. The user says: name it a.txt"},
			{"ExitPlanMode OK ", "carry the plan out now. Changes of files in the workspace are not asked about. The user says: good"},
			{"Write OK ", "a.txt"},
			{"ExitPlanMode DENIED ", "no rule of the profile ask-writes allows ExitPlanMode"}, // the mode plan is over
		} {
			if i >= len(got) || !strings.HasPrefix(got[i], want.end) || !strings.Contains(got[i], want.text) {
				t.Errorf("result %d of %q is not %v", i, got, want)
			}
		}
		if count(frames, "approval.requested") != 2 || count(frames, "approval.resolved") != 2 {
			t.Errorf("the log is %s", events(frames))
		}
		if got := modes(frames); !slices.Equal(got, []string{"PERMISSION_MODE_PLAN PERMISSION_MODE_ACCEPT_EDITS default"}) {
			t.Errorf("the mode changed %q", got)
		}
		if text := s.call(t, http.MethodGet, "/v1/"+session+"/files/a.txt", ""); text.body != "as planned" {
			t.Errorf("the file has %q", text.body)
		}
	})
}

// TestNoPlanOutsideOfTheModePlan has a model show a plan that no person is asked about.
func TestNoPlanOutsideOfTheModePlan(t *testing.T) {
	t.Parallel()
	s := start(t, options{scenario: filepath.Join("testdata", "plan.yaml"), agents: planner})
	frames := s.turn(t, s.session(t, "planner"), "do it")
	last(t, frames, "COMPLETE")
	if got := strings.Join(results(frames), "\n"); count(frames, "approval.requested") != 0 || !strings.Contains(got, `There is no tool "ExitPlanMode"`) {
		t.Errorf("got %s in %s", got, events(frames))
	}
}
