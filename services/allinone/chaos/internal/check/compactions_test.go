package check_test

import (
	"testing"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"

	"github.com/fairlead/fairlead/services/allinone/chaos/internal/check"
	"github.com/fairlead/fairlead/services/allinone/chaos/internal/record"
	"github.com/fairlead/fairlead/services/allinone/chaos/internal/script"
)

// compacted is the recording of a session of two turns, between which the model's view was shortened.
func compacted(t *testing.T) (*record.Run, *script.Script) {
	t.Helper()
	sc := script.New(seed)
	plan := long(t, sc)
	s := &story{session: &record.Session{Name: "sessions/s"}}
	s.add(&event{Body: &sessionv1.Event_SessionCreated{SessionCreated: &sessionv1.SessionCreated{Agent: "agents/chaos"}}})
	s.play(t, sc, script.Text(plan, "a"))
	s.turn, s.step = "", 0
	s.say(sessionv1.Role_ROLE_USER, textBlock("in short"))
	summary := s.session.Messages[len(s.session.Messages)-1].Name
	s.add(&event{Body: &sessionv1.Event_SessionCompacted{SessionCompacted: &sessionv1.SessionCompacted{TokensBefore: 9, TokensAfter: 3, Message: summary, Trigger: "requested"}}})
	s.add(&event{Body: &sessionv1.Event_Warning{Warning: &sessionv1.Warning{Reason: "NOT_COMPACTED"}}})
	s.play(t, sc, script.Text(plan, "b"))
	s.session.Tree = s.session.Messages
	s.session.Compactions = []record.Compaction{{RequestID: "a"}, {RequestID: "b"}}
	return s.recording(), sc
}

func isCompacted(e *event) bool { return e.GetSessionCompacted() != nil }

func TestTheViewIsShortened(t *testing.T) {
	run, sc := compacted(t)
	rep := check.Run(run, sc, limits)
	for _, v := range rep.Violations {
		t.Error(v)
	}
	if st := rep.Stats; st.Complete != 2 || st.Compacted != 1 {
		t.Errorf("the figures are %+v", st)
	}
}

func TestPlantedFaultsAboutCompactionsAreFound(t *testing.T) {
	for _, c := range []struct {
		name  string
		rule  check.Rule
		plant func(t *testing.T, s *record.Session)
	}{
		{"a wish came to nothing", check.Compactions, func(t *testing.T, s *record.Session) {
			_, e := find(t, s.Log, isCompacted)
			e.Body = &sessionv1.Event_Warning{Warning: &sessionv1.Warning{}}
		}},
		{"a wish was done twice", check.Compactions, func(_ *testing.T, s *record.Session) { s.Compactions = s.Compactions[1:] }},
		{"the view got no shorter", check.Compactions, func(t *testing.T, s *record.Session) {
			_, e := find(t, s.Log, isCompacted)
			e.GetSessionCompacted().TokensAfter = 9
		}},
		{"nobody wished it", check.Compactions, func(t *testing.T, s *record.Session) {
			_, e := find(t, s.Log, isCompacted)
			e.GetSessionCompacted().Trigger = "automatic"
		}},
		{"the summary is lost", check.Compactions, func(t *testing.T, s *record.Session) {
			_, e := find(t, s.Log, isCompacted)
			e.GetSessionCompacted().Message += "0"
		}},
		{"what was said before is lost", check.Transcript, func(t *testing.T, s *record.Session) { s.Messages = s.Messages[2:] }},
	} {
		t.Run(c.name, func(t *testing.T) {
			run, sc := compacted(t)
			c.plant(t, run.Sessions[0])
			rep := check.Run(run, sc, limits)
			if !rules(rep)[c.rule] {
				t.Errorf("not found; found: %v", rep.Violations)
			}
		})
	}
}
