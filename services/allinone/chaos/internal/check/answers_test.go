package check_test

import (
	"testing"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"

	"github.com/fairlead/fairlead/services/allinone/chaos/internal/check"
	"github.com/fairlead/fairlead/services/allinone/chaos/internal/record"
	"github.com/fairlead/fairlead/services/allinone/chaos/internal/script"
)

// askedAbout finds a plan whose first call is one that a person decides.
func askedAbout(t *testing.T, sc *script.Script) int {
	for i := range sc.Plans {
		if want, _ := sc.Expect(script.Text(i, "")); len(want.Steps[0].Calls) > 0 && want.Steps[0].Calls[0].Asked {
			return i
		}
	}
	t.Fatal("no plan begins with a call that a person decides")
	return 0
}

func isAsked(e *event) bool    { return e.GetApprovalRequested() != nil }
func isResolved(e *event) bool { return e.GetApprovalResolved() != nil }

// deny makes the recording one in which the first call was refused.
func deny(t *testing.T, s *record.Session) {
	t.Helper()
	s.Answers[0].Approved = false
	for _, log := range [][]*event{s.Log, s.Again, append(s.Followers[0].Streams[0].Events, s.Followers[0].Streams[1].Events...)} {
		_, e := find(t, log, isResolved)
		e.GetApprovalResolved().Approved = false
		_, e = find(t, log, isResult)
		e.GetToolCallFinished().Outcome = sessionv1.ToolOutcome_TOOL_OUTCOME_REFUSED
	}
	s.Effects = s.Effects[1:]
}

func TestPersonsAllowAndRefuse(t *testing.T) {
	run, sc := recorded(t, askedAbout)
	s := run.Sessions[0]
	deny(t, s)
	s.Answers = append(s.Answers, record.Answer{RequestID: "other", CallID: s.Answers[0].CallID, Approved: true, TooLate: "CALL_ANSWERED"})
	rep := check.Run(run, sc, limits)
	for _, v := range rep.Violations {
		t.Error(v)
	}
	if st := rep.Stats; st.Denied != 1 || st.Approved == 0 || st.TooLate != 1 {
		t.Errorf("the figures are %+v", st)
	}
}

// edit makes the recording one in which the first call ran with other arguments.
func edit(t *testing.T, s *record.Session) {
	t.Helper()
	was := s.Effects[0]
	s.Effects[0] = was + "~a"
	arguments := "echo '" + was + "~a' >> effects"
	s.Answers[0].Arguments = arguments
	for _, log := range [][]*event{s.Log, s.Again, append(s.Followers[0].Streams[0].Events, s.Followers[0].Streams[1].Events...)} {
		_, e := find(t, log, isResolved)
		e.GetApprovalResolved().UpdatedArgumentsJson = arguments
	}
}

func TestPersonsChangeArguments(t *testing.T) {
	run, sc := recorded(t, askedAbout)
	edit(t, run.Sessions[0])
	rep := check.Run(run, sc, limits)
	for _, v := range rep.Violations {
		t.Error(v)
	}
	if st := rep.Stats; st.Edited != 1 {
		t.Errorf("the figures are %+v", st)
	}
}

// asksFirst finds a plan whose first call asks a question.
func asksFirst(t *testing.T, sc *script.Script) int {
	for i := range sc.Plans {
		if want, _ := sc.Expect(script.Text(i, "")); len(want.Steps[0].Calls) > 0 && want.Steps[0].Calls[0].Asks {
			return i
		}
	}
	t.Fatal("no plan begins with a question")
	return 0
}

func isReply(e *event) bool { return e.GetQuestionResolved() != nil }

func TestPlantedFaultsAboutQuestionsAreFound(t *testing.T) {
	for name, plant := range map[string]func(t *testing.T, s *record.Session){
		"the log has another answer": func(_ *testing.T, s *record.Session) { s.Replies[0].Content = `{"answers":{"Which?":"right"}}` },
		"two different answers were accepted": func(_ *testing.T, s *record.Session) {
			s.Replies = append(s.Replies, record.Reply{RequestID: "other", CallID: s.Replies[0].CallID})
		},
		"the answer that counts was called too late": func(_ *testing.T, s *record.Session) { s.Replies[0].TooLate = "CALL_ANSWERED" },
		"the log has no answer": func(t *testing.T, s *record.Session) {
			_, e := find(t, s.Log, isReply)
			e.Body = &sessionv1.Event_Warning{Warning: &sessionv1.Warning{}}
		},
		"the log has it twice": func(t *testing.T, s *record.Session) {
			i, e := find(t, s.Log, isReply)
			s.Log[i+1].Body = e.Body
		},
		"the model got another answer": func(t *testing.T, s *record.Session) {
			_, e := find(t, s.Log, isResult)
			e.GetToolCallFinished().Content = nil
		},
		"an answer was accepted that nothing asked for": func(_ *testing.T, s *record.Session) {
			s.Replies = append(s.Replies, record.Reply{RequestID: "other", CallID: "t9.1.0"})
		},
	} {
		t.Run(name, func(t *testing.T) {
			run, sc := recorded(t, asksFirst)
			plant(t, run.Sessions[0])
			rep := check.Run(run, sc, limits)
			if !rules(rep)[check.Asked] {
				t.Errorf("not found; found: %v", rep.Violations)
			}
		})
	}
}

func TestPlantedFaultsAboutAnswersAreFound(t *testing.T) {
	for _, c := range []struct {
		name  string
		rule  check.Rule
		plant func(t *testing.T, s *record.Session)
	}{
		{"a refused call had its effect", check.Asked, func(t *testing.T, s *record.Session) {
			effect := s.Effects[0]
			deny(t, s)
			s.Effects = append(s.Effects, effect)
		}},
		{"a refused call went well", check.Completes, func(t *testing.T, s *record.Session) {
			deny(t, s)
			_, e := find(t, s.Log, isResult)
			e.GetToolCallFinished().Outcome = sessionv1.ToolOutcome_TOOL_OUTCOME_OK
		}},
		{"an allowed call was refused", check.Completes, func(t *testing.T, s *record.Session) {
			_, e := find(t, s.Log, isResult)
			e.GetToolCallFinished().Outcome = sessionv1.ToolOutcome_TOOL_OUTCOME_REFUSED
		}},
		{"an allowed call had its effect twice", check.EffectOnce, func(_ *testing.T, s *record.Session) { s.Effects = append(s.Effects, s.Effects[0]) }},
		{"an allowed call had no effect", check.EffectOnce, func(_ *testing.T, s *record.Session) { s.Effects = s.Effects[1:] }},
		{"the model's arguments ran, and not the person's", check.Asked, func(t *testing.T, s *record.Session) {
			was := s.Effects[0]
			edit(t, s)
			s.Effects[0] = was
		}},
		{"the model's arguments ran, too", check.Asked, func(t *testing.T, s *record.Session) {
			was := s.Effects[0]
			edit(t, s)
			s.Effects = append(s.Effects, was)
		}},
		{"the person's arguments ran twice", check.EffectOnce, func(t *testing.T, s *record.Session) {
			edit(t, s)
			s.Effects = append(s.Effects, s.Effects[0])
		}},
		{"the log has other arguments", check.Asked, func(t *testing.T, s *record.Session) {
			edit(t, s)
			s.Answers[0].Arguments = ""
		}},
		{"no person was asked", check.Asked, func(t *testing.T, s *record.Session) {
			_, e := find(t, s.Log, isAsked)
			e.Body = &sessionv1.Event_Warning{Warning: &sessionv1.Warning{}}
		}},
		{"a person was asked twice", check.Asked, func(t *testing.T, s *record.Session) {
			i, e := find(t, s.Log, isAsked)
			s.Log[i+1].Body = e.Body
		}},
		{"the log has another answer", check.Asked, func(_ *testing.T, s *record.Session) { s.Answers[0].Approved = false }},
		{"the log has no answer", check.Asked, func(t *testing.T, s *record.Session) {
			_, e := find(t, s.Log, isResolved)
			e.Body = &sessionv1.Event_Warning{Warning: &sessionv1.Warning{}}
		}},
		{"two different answers were accepted", check.Asked, func(_ *testing.T, s *record.Session) {
			s.Answers = append(s.Answers, record.Answer{RequestID: "other", CallID: s.Answers[0].CallID})
		}},
		{"the answer that counts was called too late", check.Asked, func(_ *testing.T, s *record.Session) { s.Answers[0].TooLate = "CALL_ANSWERED" }},
		{"an answer was accepted about a call that nobody knows", check.Asked, func(_ *testing.T, s *record.Session) {
			s.Answers = append(s.Answers, record.Answer{RequestID: "other", CallID: "t9.1.0"})
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			run, sc := recorded(t, askedAbout)
			c.plant(t, run.Sessions[0])
			rep := check.Run(run, sc, limits)
			if !rules(rep)[c.rule] {
				t.Errorf("not found; found: %v", rep.Violations)
			}
		})
	}
}
