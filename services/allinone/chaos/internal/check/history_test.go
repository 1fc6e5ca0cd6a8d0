package check_test

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"

	"github.com/fairlead/fairlead/services/allinone/chaos/internal/check"
	"github.com/fairlead/fairlead/services/allinone/chaos/internal/record"
	"github.com/fairlead/fairlead/services/allinone/chaos/internal/script"
)

// histories is the recording of a session that returns to a checkpoint, and of its fork: "kept" goes well, the fork is made
// from its end, "left" is left behind from its second step on, and "next" comes after.
func histories(t *testing.T) (*record.Run, *script.Script) {
	t.Helper()
	sc := script.New(seed)
	plan := long(t, sc)
	s := &story{session: &record.Session{Name: "sessions/s"}}
	s.add(&event{Body: &sessionv1.Event_SessionCreated{SessionCreated: &sessionv1.SessionCreated{Agent: "agents/chaos"}}})
	s.play(t, sc, script.Text(plan, "kept"))
	fork := s.fork(t, sc, script.Text(plan, "fork"))
	s.late += 20 * time.Second

	left := script.Text(plan, "left")
	want, _ := sc.Expect(left)
	turn := s.accept(left, sessionv1.OnActive_ON_ACTIVE_UNSPECIFIED)
	s.begin(turn, left)
	s.step++
	s.playStep(want.Steps[0])
	messages, effects, void := s.session.Messages, s.session.Effects, s.seq+1
	for _, st := range want.Steps[1:] {
		s.step++
		s.playStep(st)
	}
	s.finish(turn, complete, "", want.Final)
	s.session.Tree = slices.Clone(s.session.Messages)
	point := s.session.Name + "/checkpoints/p"
	s.turn = ""
	s.add(&event{Body: &sessionv1.Event_SessionRewound{SessionRewound: &sessionv1.SessionRewound{VoidFirstSeq: void, VoidLastSeq: s.seq, Checkpoint: point}}})
	s.session.Rewinds = []record.Rewind{{RequestID: "w", Checkpoint: point}, {RequestID: "x", Checkpoint: point, Refused: "TURN_ACTIVE"}}
	s.session.Messages, s.session.Effects = slices.Clip(messages), slices.Clip(effects)
	s.play(t, sc, script.Text(plan, "next"))
	run := s.recording()
	run.Sessions = append(run.Sessions, fork.Sessions...)
	maps.Copy(run.Notes, fork.Notes)
	return run, sc
}

// fork writes a session that is made from this one as it is, and in which one turn goes well.
func (s *story) fork(t *testing.T, sc *script.Script, text string) *record.Run {
	t.Helper()
	f := &story{late: s.at().Sub(origin) + 10*time.Second, session: &record.Session{Name: "sessions/f", Effects: slices.Clone(s.session.Effects)}}
	last := s.session.Accepted[len(s.session.Accepted)-1].Turn
	f.session.Fork = &record.Fork{RequestID: "f", From: s.session.Name, Turn: last, Begin: f.at().Add(-5 * time.Second), Time: f.at()}
	f.add(&event{Body: &sessionv1.Event_SessionCreated{SessionCreated: &sessionv1.SessionCreated{ForkedFrom: s.session.Name}}})
	for _, m := range s.session.Messages {
		f.say(m.Role, m.Blocks...)
	}
	f.play(t, sc, text)
	return f.recording()
}

func TestSessionsAreForkedAndRewound(t *testing.T) {
	run, sc := histories(t)
	rep := check.Run(run, sc, limits)
	for _, v := range rep.Violations {
		t.Error(v)
	}
	if st := rep.Stats; st.Forks != 1 || st.Rewound != 1 || st.NotRewound != 1 || st.FilesBack == 0 || st.Complete != 4 {
		t.Errorf("the figures are %+v", st)
	}
}

func TestPlantedFaultsAboutForksAndRewindsAreFound(t *testing.T) {
	for _, c := range []struct {
		name  string
		rule  check.Rule
		plant func(t *testing.T, s, fork *record.Session)
	}{
		{"an effect of a step that was left behind is still in the files", check.Files, func(_ *testing.T, s, _ *record.Session) {
			s.Effects = append(s.Effects, lineOf(s, "left", 2))
		}},
		{"a return to a checkpoint took the effect of a step before it along", check.EffectOnce, func(_ *testing.T, s, _ *record.Session) {
			s.Effects = without(s.Effects, lineOf(s, "left", 1))
		}},
		{"a return to a checkpoint was acknowledged, and the log tells of none", check.Rewinds, func(t *testing.T, s, _ *record.Session) {
			_, e := find(t, s.Log, isRewound)
			e.Body = &sessionv1.Event_Warning{Warning: &sessionv1.Warning{}}
		}},
		{"a return to a checkpoint was refused, and done", check.Rewinds, func(_ *testing.T, s, _ *record.Session) {
			s.Rewinds[0].Refused = "TURN_ACTIVE"
		}},
		{"a message that was left behind is still in the conversation", check.Transcript, func(_ *testing.T, s, _ *record.Session) {
			s.Messages = append(s.Messages, s.Messages[len(s.Messages)-1])
		}},
		{"a turn that was left behind had not come to what the script says", check.Completes, func(t *testing.T, s, _ *record.Session) {
			i, _ := find(t, s.Log, isRewound)
			s.Log[i-1].GetTurnFinished().FinalText = "Done."
		}},
		{"a fork lacks a message", check.Forks, func(_ *testing.T, _, fork *record.Session) { fork.Messages = fork.Messages[1:] }},
		{"a fork has a message of a later turn", check.Forks, func(_ *testing.T, s, fork *record.Session) {
			m := proto.CloneOf(s.Tree[inheritedBy(fork)])
			m.Turn = ""
			fork.Messages = slices.Insert(fork.Messages, inheritedBy(fork), m)
		}},
		{"a fork has a message that says something else", check.Forks, func(_ *testing.T, _, fork *record.Session) {
			fork.Messages[0].Blocks = []*sessionv1.Block{textBlock("something else")}
		}},
		{"a fork has a message of another session", check.Forks, func(_ *testing.T, _, fork *record.Session) {
			fork.Messages[0] = proto.CloneOf(fork.Messages[0])
			fork.Messages[0].Role = sessionv1.Role_ROLE_ASSISTANT
		}},
		{"a fork does not say from which session it was made", check.Forks, func(_ *testing.T, _, fork *record.Session) {
			fork.Log[0].GetSessionCreated().ForkedFrom = ""
		}},
		{"a request made two forks", check.Forks, func(_ *testing.T, _, fork *record.Session) { fork.Fork.Others = []string{"sessions/other"} }},
		{"a fork was refused from a turn that had ended", check.Forks, func(_ *testing.T, s, _ *record.Session) {
			s.Unforked = []string{s.Turns[0].Name}
		}},
		{"a fork lacks an effect of a call that had ended before", check.Forks, func(_ *testing.T, s, fork *record.Session) {
			fork.Effects = without(fork.Effects, lineOf(s, "kept", 1))
		}},
		{"a fork has an effect of its source twice", check.Forks, func(_ *testing.T, s, fork *record.Session) {
			fork.Effects = append(fork.Effects, lineOf(s, "kept", 1))
		}},
		{"a fork has an effect of a call that its source made later", check.Forks, func(_ *testing.T, s, fork *record.Session) {
			fork.Effects = append(fork.Effects, lineOf(s, "next", 1))
		}},
		{"a fork has an effect that its source had undone before", check.Forks, func(_ *testing.T, s, fork *record.Session) {
			fork.Fork.Begin = s.Log[len(s.Log)-1].Time.AsTime().Add(5 * time.Second)
			fork.Fork.Time = fork.Fork.Begin
			fork.Effects = append(fork.Effects, lineOf(s, "left", 2))
		}},
		{"a fork has an effect of nobody", check.EffectOnce, func(_ *testing.T, _, fork *record.Session) {
			fork.Effects = append(fork.Effects, "what?")
		}},
		{"an effect of a fork is in the files of its source", check.EffectOnce, func(_ *testing.T, s, fork *record.Session) {
			s.Effects = append(s.Effects, lineOf(fork, "fork", 1))
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			run, sc := histories(t)
			c.plant(t, run.Sessions[0], run.Sessions[1])
			rep := check.Run(run, sc, limits)
			if !rules(rep)[c.rule] {
				t.Errorf("not found; found: %v", rep.Violations)
			}
		})
	}
}

// lineOf is the effect of the first command, from a step on, of the turn whose text ends so.
func lineOf(s *record.Session, text string, step int32) string {
	for _, e := range s.Log {
		arguments := e.GetToolCallArguments().GetArgumentsJson()
		_, rest, _ := strings.Cut(arguments, "'")
		line, _, _ := strings.Cut(rest, "'")
		if e.Step >= step && strings.Contains(line, "-"+text+"/") && !strings.Contains(arguments, "/end") {
			return line
		}
	}
	return "no effect"
}

// inheritedBy is how many messages a fork has from its source.
func inheritedBy(fork *record.Session) int {
	return slices.IndexFunc(fork.Messages, func(m *message) bool { return m.Turn != "" })
}
