package check_test

import (
	"strings"
	"testing"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"

	"github.com/fairlead/fairlead/services/allinone/chaos/internal/check"
	"github.com/fairlead/fairlead/services/allinone/chaos/internal/record"
	"github.com/fairlead/fairlead/services/allinone/chaos/internal/script"
)

const (
	complete    = sessionv1.TurnState_TURN_STATE_COMPLETE
	interrupted = sessionv1.TurnState_TURN_STATE_INTERRUPTED
	queue       = sessionv1.OnActive_ON_ACTIVE_QUEUE
	steer       = sessionv1.OnActive_ON_ACTIVE_STEER
	interrupt   = sessionv1.OnActive_ON_ACTIVE_INTERRUPT
	rollback    = sessionv1.OnActive_ON_ACTIVE_ROLLBACK
)

// The turns of the story of arrivals, by number.
const (
	whole    = iota // goes well, with joiner's message in it
	joiner          // joins whole after its first step
	broken          // is stopped by breaker in its second step
	patient         // waits behind broken, and then behind breaker
	breaker         // goes first
	undone          // is rolled back by undoer after its first step
	undoer          //
	theTurns        // how many there are
)

// arrivals is the recording of a run in which messages arrive during turns.
func arrivals(t *testing.T) (*record.Run, *script.Script) {
	t.Helper()
	sc := script.New(seed)
	plan := long(t, sc)
	texts := [theTurns]string{}
	for i := range texts {
		texts[i] = script.Text(plan, string(rune('a'+i)))
	}
	s := &story{session: &record.Session{Name: "sessions/s"}}
	s.add(&event{Body: &sessionv1.Event_SessionCreated{SessionCreated: &sessionv1.SessionCreated{Agent: "agents/chaos"}}})
	first := func(text string) {
		want, _ := sc.Expect(text)
		s.step++
		s.playStep(want.Steps[0])
	}
	a := s.accept(texts[whole], sessionv1.OnActive_ON_ACTIVE_UNSPECIFIED)
	s.begin(a, texts[whole])
	first(texts[whole])
	b := s.accept(texts[joiner], steer)
	s.join(b, a, texts[joiner])
	final := s.playSteps(t, sc, texts[joiner])
	s.finish(a, complete, "", final)
	s.finish(b, complete, "", final)

	c := s.accept(texts[broken], sessionv1.OnActive_ON_ACTIVE_UNSPECIFIED)
	s.begin(c, texts[broken])
	first(texts[broken])
	d := s.accept(texts[patient], queue)
	want, _ := sc.Expect(texts[broken])
	s.step++
	s.add(&event{Body: &sessionv1.Event_TextDelta{TextDelta: &sessionv1.TextDelta{Text: want.Steps[1].Text[0]}}})
	e := s.accept(texts[breaker], interrupt)
	s.finish(c, interrupted, "INTERRUPTED", "")
	for _, next := range []struct{ turn, text string }{{e, texts[breaker]}, {d, texts[patient]}} {
		s.begin(next.turn, next.text)
		s.finish(next.turn, complete, "", s.playSteps(t, sc, next.text))
	}

	f := s.accept(texts[undone], sessionv1.OnActive_ON_ACTIVE_UNSPECIFIED)
	kept, files := s.session.Messages, s.session.Effects
	s.begin(f, texts[undone])
	begun := s.seq
	first(texts[undone])
	g := s.accept(texts[undoer], rollback)
	s.finish(f, interrupted, "ROLLED_BACK", "")
	s.turn = ""
	s.add(&event{Body: &sessionv1.Event_SessionRewound{SessionRewound: &sessionv1.SessionRewound{VoidFirstSeq: begun, VoidLastSeq: s.seq, UndoneTurn: f}}})
	s.session.Messages, s.session.Effects = kept, files
	s.begin(g, texts[undoer])
	s.finish(g, complete, "", s.playSteps(t, sc, texts[undoer]))
	return s.recording(), sc
}

// join writes that a message was put into another turn.
func (s *story) join(turn, into, text string) {
	step := s.step
	s.turn, s.step = turn, 0
	s.add(&event{Body: &sessionv1.Event_TurnSteered{TurnSteered: &sessionv1.TurnSteered{Into: into}}})
	s.say(sessionv1.Role_ROLE_USER, textBlock(text))
	s.turn, s.step = into, step
}

// long finds a plan of several steps whose first step has a command without an approval.
func long(t *testing.T, sc *script.Script) int {
	for i := range sc.Plans {
		want, _ := sc.Expect(script.Text(i, ""))
		if calls := want.Steps[0].Calls; len(want.Steps) > 2 && len(calls) == 1 && calls[0].Effect != "" && !calls[0].Asked {
			return i
		}
	}
	t.Fatal("no plan has several steps")
	return 0
}

func TestMessagesArriveDuringTurns(t *testing.T) {
	run, sc := arrivals(t)
	rep := check.Run(run, sc, limits)
	for _, v := range rep.Violations {
		t.Error(v)
	}
	if st := rep.Stats; st.Turns != theTurns || st.Complete != 4 || st.Joined != 1 || st.Interrupted != 1 || st.RolledBack != 1 {
		t.Errorf("the figures are %+v", st)
	}
}

// of finds the events of a turn that fit.
func of(s *record.Session, turn int, fits func(*event) bool) []*event {
	var found []*event
	for _, e := range s.Log {
		if e.Turn == s.Accepted[turn].Turn && fits(e) {
			found = append(found, e)
		}
	}
	return found
}

func isQueued(e *event) bool  { return e.GetTurnQueued() != nil }
func isStarted(e *event) bool { return e.GetTurnStarted() != nil }
func isRewound(e *event) bool { return e.GetSessionRewound() != nil }

// swap lets two events change places.
func swap(a, b *event) { a.Body, b.Body, a.Turn, b.Turn = b.Body, a.Body, b.Turn, a.Turn }

func TestPlantedFaultsAboutArrivalsAreFound(t *testing.T) {
	for _, c := range []struct {
		name  string
		rule  check.Rule
		plant func(t *testing.T, s *record.Session)
	}{
		{"a turn was interrupted and nobody asked for it", check.Arrivals, func(_ *testing.T, s *record.Session) {
			s.Accepted[breaker].OnActive = queue
		}},
		{"a turn was undone and nobody asked for it", check.Arrivals, func(_ *testing.T, s *record.Session) {
			s.Accepted[undoer].OnActive = interrupt
		}},
		{"a turn was interrupted and another one began than that which asked for it", check.Arrivals, func(_ *testing.T, s *record.Session) {
			swap(of(s, breaker, isStarted)[0], of(s, patient, isStarted)[0])
		}},
		{"two messages were taken up in the wrong order", check.Arrivals, func(_ *testing.T, s *record.Session) {
			s.Accepted[patient].OnActive = interrupt // it came before breaker, and began after it
		}},
		{"the log has two messages the other way round", check.Arrivals, func(_ *testing.T, s *record.Session) {
			swap(of(s, patient, isQueued)[0], of(s, breaker, isQueued)[0])
		}},
		{"a message that joined a turn ended otherwise", check.Arrivals, func(_ *testing.T, s *record.Session) {
			of(s, joiner, isFinished)[0].GetTurnFinished().FinalText = "Done."
			s.Turns[joiner].FinalText = "Done."
		}},
		{"a message that joined a turn was never answered", check.Once, func(_ *testing.T, s *record.Session) {
			of(s, joiner, isFinished)[0].Body = &sessionv1.Event_Warning{Warning: &sessionv1.Warning{}}
		}},
		{"a message that joined a turn ran besides", check.Once, func(_ *testing.T, s *record.Session) {
			of(s, joiner, isQueued)[0].Body = &sessionv1.Event_TurnStarted{TurnStarted: &sessionv1.TurnStarted{}}
		}},
		{"a message that joined a turn was not seen by the model", check.Completes, func(_ *testing.T, s *record.Session) {
			for _, e := range of(s, joiner, func(e *event) bool { return e.GetTurnSteered() != nil }) {
				e.GetTurnSteered().Into = s.Accepted[broken].Turn
			}
		}},
		{"an interrupted turn ended for another reason", check.Arrivals, func(_ *testing.T, s *record.Session) {
			of(s, broken, isFinished)[0].GetTurnFinished().Error.Reason = "MAX_STEPS"
		}},
		{"an interrupted turn ended twice", check.Once, func(_ *testing.T, s *record.Session) {
			of(s, broken, isDelta)[0].Body = of(s, broken, isFinished)[0].Body
		}},
		{"an interrupted turn said something else", check.Completes, func(_ *testing.T, s *record.Session) {
			all := of(s, broken, isDelta)
			all[len(all)-1].GetTextDelta().Text = "something else "
		}},
		{"a call of an interrupted turn had its effect twice", check.EffectOnce, func(_ *testing.T, s *record.Session) {
			s.Effects = append(s.Effects, effectOf(s, broken))
		}},
		{"a call of an interrupted turn went well and had no effect", check.EffectOnce, func(_ *testing.T, s *record.Session) {
			s.Effects = without(s.Effects, effectOf(s, broken))
		}},
		{"an undone turn left its effect in the files", check.Files, func(_ *testing.T, s *record.Session) {
			s.Effects = append(s.Effects, s.Accepted[undone].Text+"/1.1")
		}},
		{"the files were kept, and have an undone effect twice", check.EffectOnce, func(t *testing.T, s *record.Session) {
			i, _ := find(t, s.Log, isRewound)
			s.Log[i+1].Body = &sessionv1.Event_Warning{Warning: &sessionv1.Warning{Reason: "FILES_KEPT"}}
			s.Effects = append(s.Effects, s.Accepted[undone].Text+"/1.1", s.Accepted[undone].Text+"/1.1")
		}},
		{"an undone turn still counts", check.Voids, func(_ *testing.T, s *record.Session) {
			for _, e := range s.Log {
				if isRewound(e) {
					e.GetSessionRewound().VoidLastSeq -= 3
				}
			}
		}},
		{"a rollback undoes more than its turn", check.Voids, func(_ *testing.T, s *record.Session) {
			for _, e := range s.Log {
				if isRewound(e) {
					e.GetSessionRewound().VoidFirstSeq -= 2
				}
			}
		}},
		{"a restarted step names an invalid range", check.Voids, func(t *testing.T, s *record.Session) {
			_, e := find(t, s.Log, isDelta)
			e.Body = &sessionv1.Event_StepRestarted{StepRestarted: &sessionv1.StepRestarted{VoidFirstSeq: e.Seq, VoidLastSeq: e.Seq - 1}}
		}},
		{"an undone message is still in the conversation", check.Transcript, func(_ *testing.T, s *record.Session) {
			s.Messages = append(s.Messages, s.Messages[len(s.Messages)-1])
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			run, sc := arrivals(t)
			c.plant(t, run.Sessions[0])
			rep := check.Run(run, sc, limits)
			if !rules(rep)[c.rule] {
				t.Errorf("not found; found: %v", rep.Violations)
			}
		})
	}
}

// effectOf is an effect of a turn.
func effectOf(s *record.Session, turn int) string {
	for _, line := range s.Effects {
		if strings.HasPrefix(line, s.Accepted[turn].Text+"/") {
			return line
		}
	}
	return "no effect"
}

func without(lines []string, line string) []string {
	var out []string
	for _, l := range lines {
		if l != line {
			out = append(out, l)
		}
	}
	return out
}
