package check_test

import (
	"testing"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"

	"github.com/fairlead/fairlead/services/allinone/chaos/internal/check"
	"github.com/fairlead/fairlead/services/allinone/chaos/internal/record"
)

type (
	event   = sessionv1.Event
	message = sessionv1.Message
)

var (
	limits = check.Limits{Takeover: 10 * time.Second, Restarts: 2, Slack: time.Second}
	origin = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
)

// unknown is how a call ends whose command was lost.
const unknown = sessionv1.ToolOutcome_TOOL_OUTCOME_UNKNOWN

func rules(rep check.Report) map[check.Rule]bool {
	found := map[check.Rule]bool{}
	for _, v := range rep.Violations {
		found[v.Rule] = true
	}
	return found
}

func TestAGoodRunHasNoViolations(t *testing.T) {
	run, sc := good(t)
	rep := check.Run(run, sc, limits)
	for _, v := range rep.Violations {
		t.Error(v)
	}
	if rep.Stats.Complete != 2 || rep.Stats.Effects == 0 || rep.Stats.Received != len(run.Sessions[0].Log) {
		t.Errorf("the figures are %+v", rep.Stats)
	}
}

// find returns the first event that fits, and its index.
func find(t *testing.T, events []*event, fits func(*event) bool) (int, *event) {
	t.Helper()
	for i, e := range events {
		if fits(e) {
			return i, e
		}
	}
	t.Fatal("the log has no such event")
	return 0, nil
}

func isDelta(e *event) bool    { return e.GetTextDelta() != nil }
func isFinished(e *event) bool { return e.GetTurnFinished() != nil }
func isResult(e *event) bool   { return e.GetToolCallFinished() != nil }

// merged is the events with the two text deltas from i on made one, as a server does.
func merged(events []*event, i int) []*event {
	out := clone(events)
	out[i].Seq = out[i+1].Seq
	out[i].GetTextDelta().Text += out[i+1].GetTextDelta().Text
	return append(out[:i+1], out[i+2:]...)
}

func TestMergedEventsAreTheSameLog(t *testing.T) {
	run, sc := good(t)
	s := run.Sessions[0]
	i, _ := find(t, s.Log, func(e *event) bool { return isDelta(e) })
	if s.Log[i+1].GetTextDelta() == nil {
		t.Fatal("the plan streams one piece alone")
	}
	s.Log = merged(s.Log, i) // after the follower had them apart
	s.Followers = append(s.Followers, follower(s.Again, i+1))
	// This one had the first of the two, and then got both in one.
	s.Followers = append(s.Followers, &record.Follower{Name: "folded", Streams: []*record.Stream{
		{Events: clone(s.Again[:i+1])}, {After: s.Again[i].Seq, Events: clone(s.Log[i:])},
	}})
	for _, v := range check.Run(run, sc, limits).Violations {
		t.Error(v)
	}
}

func TestPlantedFaultsAreFound(t *testing.T) {
	for _, c := range []struct {
		name  string
		rule  check.Rule
		plant func(t *testing.T, run *record.Run, s *record.Session)
	}{
		{"an event is missing in the log", check.Tiling, func(_ *testing.T, _ *record.Run, s *record.Session) { s.Log = append(s.Log[:3:3], s.Log[4:]...) }},
		{"an event is twice in the log", check.Tiling, func(_ *testing.T, _ *record.Run, s *record.Session) { s.Log = append(s.Log[:4:4], s.Log[3:]...) }},
		{"ranges of the log overlap", check.Tiling, func(_ *testing.T, _ *record.Run, s *record.Session) { s.Log[5].FirstSeq -= 2 }},
		{"a range begins after its end", check.Tiling, func(_ *testing.T, _ *record.Run, s *record.Session) { s.Log[5].FirstSeq += 2 }},
		{"a replica tells another log", check.SameState, func(t *testing.T, _ *record.Run, s *record.Session) {
			_, e := find(t, s.Again, isDelta)
			e.GetTextDelta().Text = "something else "
		}},
		{"a client missed an event", check.Resuming, func(_ *testing.T, _ *record.Run, s *record.Session) {
			st := s.Followers[0].Streams[0]
			st.Events = append(st.Events[:2:2], st.Events[3:]...)
		}},
		{"a client missed the first event after it came back", check.Resuming, func(_ *testing.T, _ *record.Run, s *record.Session) {
			s.Followers[0].Streams[1].Events = s.Followers[0].Streams[1].Events[1:]
		}},
		{"a client got an event twice", check.Resuming, func(_ *testing.T, _ *record.Run, s *record.Session) {
			st := s.Followers[0].Streams
			st[1].Events = append(clone(st[0].Events[len(st[0].Events)-1:]), st[1].Events...)
		}},
		{"a client got a stream that begins elsewhere", check.Resuming, func(_ *testing.T, _ *record.Run, s *record.Session) { s.Followers[0].Streams[1].After -= 2 }},
		{"a stream shows an event again within a larger one", check.Resuming, func(t *testing.T, _ *record.Run, s *record.Session) {
			st := s.Followers[0].Streams[0]
			i, _ := find(t, st.Events, isDelta)
			again := merged(st.Events, i)
			st.Events = append(st.Events[:i+1:i+1], again[i:]...)
		}},
		{"a client got other text than the log has", check.SameState, func(t *testing.T, _ *record.Run, s *record.Session) {
			_, e := find(t, s.Followers[0].Streams[0].Events, isDelta)
			e.GetTextDelta().Text = "something else "
		}},
		{"an event that a client got is not in the log as it was", check.NotLost, func(t *testing.T, _ *record.Run, s *record.Session) {
			_, e := find(t, s.Followers[0].Streams[0].Events, isDelta)
			e.Step++
		}},
		{"a client got more than the log has", check.NotLost, func(_ *testing.T, _ *record.Run, s *record.Session) {
			s.Log, s.Again = s.Log[:len(s.Log)-1], s.Again[:len(s.Again)-1]
		}},
		{"a client never got the end", check.NotLost, func(_ *testing.T, _ *record.Run, s *record.Session) {
			st := s.Followers[0].Streams[1]
			st.Events = st.Events[:len(st.Events)-1]
		}},
		{"an accepted turn is not listed", check.NotLost, func(_ *testing.T, _ *record.Run, s *record.Session) { s.Turns = s.Turns[:1] }},
		{"an accepted turn is not in the log", check.NotLost, func(_ *testing.T, _ *record.Run, s *record.Session) {
			s.Accepted = append(s.Accepted, record.Accepted{RequestID: "lost", Turn: "sessions/s/turns/lost"})
		}},
		{"a turn has another message", check.NotLost, func(_ *testing.T, _ *record.Run, s *record.Session) { s.Accepted[0].Text += "!" }},
		{"a request made two turns", check.Once, func(_ *testing.T, _ *record.Run, s *record.Session) {
			s.Accepted[0].Others = []string{s.Accepted[1].Turn}
		}},
		{"two requests were answered with one turn", check.Once, func(_ *testing.T, _ *record.Run, s *record.Session) { s.Accepted[1].Turn = s.Accepted[0].Turn }},
		{"a turn was not reported", check.Once, func(_ *testing.T, _ *record.Run, s *record.Session) { s.Accepted = s.Accepted[:1] }},
		{"a turn ended twice", check.Once, func(t *testing.T, _ *record.Run, s *record.Session) {
			_, e := find(t, s.Log, isFinished)
			again := proto.Clone(e).(*event)
			last := s.Log[len(s.Log)-1].Seq
			again.FirstSeq, again.Seq = last+1, last+1
			s.Log = append(s.Log, again)
		}},
		{"a turn never ended", check.Once, func(_ *testing.T, _ *record.Run, s *record.Session) { s.Log = s.Log[:len(s.Log)-1] }},
		{"a turn FAILED", check.Completes, func(t *testing.T, _ *record.Run, s *record.Session) {
			_, e := find(t, s.Log, isFinished)
			e.GetTurnFinished().State = sessionv1.TurnState_TURN_STATE_FAILED
			s.Turns[0].State = sessionv1.TurnState_TURN_STATE_FAILED
		}},
		{"a turn has another final text", check.Completes, func(t *testing.T, _ *record.Run, s *record.Session) {
			_, e := find(t, s.Log, isFinished)
			e.GetTurnFinished().FinalText, s.Turns[0].FinalText = "Done.", "Done."
		}},
		{"a turn's row tells another end than its events", check.Completes, func(_ *testing.T, _ *record.Run, s *record.Session) {
			s.Turns[0].State = sessionv1.TurnState_TURN_STATE_RUNNING
		}},
		{"text was streamed twice", check.Completes, func(t *testing.T, _ *record.Run, s *record.Session) {
			_, e := find(t, s.Log, isDelta)
			e.GetTextDelta().Text += e.GetTextDelta().Text
		}},
		{"a call failed", check.Completes, func(t *testing.T, _ *record.Run, s *record.Session) {
			_, e := find(t, s.Log, isResult)
			e.GetToolCallFinished().Outcome = sessionv1.ToolOutcome_TOOL_OUTCOME_UNAVAILABLE
		}},
		{"a call ended twice", check.Completes, func(t *testing.T, _ *record.Run, s *record.Session) {
			i, e := find(t, s.Log, isResult)
			s.Log[i-1].Body = proto.Clone(e).(*event).Body
		}},
		{"an effect is there twice", check.EffectOnce, func(_ *testing.T, _ *record.Run, s *record.Session) { s.Effects = append(s.Effects, s.Effects[0]) }},
		{"an effect is missing", check.EffectOnce, func(_ *testing.T, _ *record.Run, s *record.Session) { s.Effects = s.Effects[1:] }},
		{"an effect is nobody's", check.EffectOnce, func(_ *testing.T, _ *record.Run, s *record.Session) { s.Effects = append(s.Effects, "what?") }},
		{"the effect of an unknown call is there twice", check.EffectOnce, func(t *testing.T, run *record.Run, s *record.Session) {
			_, e := find(t, s.Log, isResult)
			e.GetToolCallFinished().Outcome = unknown
			run.Faults = append(run.Faults, record.Fault{Kind: record.Kill, Service: record.SandboxService, Begin: e.Time.AsTime(), End: e.Time.AsTime()})
			s.Effects = append(s.Effects, s.Effects[0])
		}},
		{"a call is unknown although no sandbox died", check.Unknown, func(t *testing.T, run *record.Run, s *record.Session) {
			_, e := find(t, s.Log, isResult)
			e.GetToolCallFinished().Outcome = unknown
			run.Faults = append(run.Faults, record.Fault{Kind: record.Kill, Service: record.ToolsService, Begin: e.Time.AsTime(), End: e.Time.AsTime()})
		}},
		{"a call is unknown that ran long before the sandbox died", check.Unknown, func(t *testing.T, run *record.Run, s *record.Session) {
			_, e := find(t, s.Log, isResult)
			e.GetToolCallFinished().Outcome = unknown
			late := e.Time.AsTime().Add(3 * limits.Slack)
			run.Faults = append(run.Faults, record.Fault{Kind: record.Kill, Service: record.SandboxService, Begin: late, End: late})
		}},
		{"a call is unknown that began when the sandbox had died and was not back", check.Unknown, func(t *testing.T, run *record.Run, s *record.Session) {
			_, e := find(t, s.Log, isResult)
			e.GetToolCallFinished().Outcome = unknown
			early := e.Time.AsTime().Add(-3 * limits.Slack)
			run.Faults = append(run.Faults, record.Fault{Kind: record.Kill, Service: record.SandboxService, Begin: early, End: e.Time.AsTime()})
		}},
		{"a tool use has no result", check.Transcript, func(t *testing.T, _ *record.Run, s *record.Session) {
			s.Messages[2].Blocks = []*sessionv1.Block{textBlock("x")}
		}},
		{"a tool use has two results", check.Transcript, func(t *testing.T, _ *record.Run, s *record.Session) {
			s.Messages[2].Blocks = append(s.Messages[2].Blocks, s.Messages[2].Blocks[0])
		}},
		{"a result comes too late", check.Transcript, func(t *testing.T, _ *record.Run, s *record.Session) {
			s.Messages[4].Blocks = append(s.Messages[4].Blocks, s.Messages[2].Blocks...)
			s.Messages[2].Blocks = []*sessionv1.Block{textBlock("x")}
		}},
		{"two messages of one role follow each other", check.Transcript, func(t *testing.T, _ *record.Run, s *record.Session) {
			s.Messages[len(s.Messages)-1].Role = sessionv1.Role_ROLE_USER
		}},
		{"a message is there twice", check.Transcript, func(_ *testing.T, _ *record.Run, s *record.Session) {
			s.Messages = append(s.Messages[:2:2], s.Messages[1:]...)
		}},
		{"a message is empty", check.Transcript, func(_ *testing.T, _ *record.Run, s *record.Session) { s.Messages[0].Blocks = nil }},
		{"a message hangs on another", check.Transcript, func(_ *testing.T, _ *record.Run, s *record.Session) { s.Messages[3].Parent = s.Messages[0].Name }},
		{"a step was restarted without a reason", check.Restarts, func(t *testing.T, _ *record.Run, s *record.Session) {
			_, e := find(t, s.Log, isDelta)
			e.Body = &sessionv1.Event_StepRestarted{StepRestarted: &sessionv1.StepRestarted{}}
		}},
		{"steps were restarted three times by one fault", check.Restarts, func(t *testing.T, run *record.Run, s *record.Session) {
			restart(t, run, s, 3)
		}},
		{"a client was refused", check.Answered, func(_ *testing.T, _ *record.Run, s *record.Session) { s.Refused = []string{"INTERNAL"} }},
		{"a takeover took too long", check.Takeover, func(_ *testing.T, run *record.Run, s *record.Session) {
			takeover(run, s, 11*time.Second, 0)
		}},
		{"a takeover took too long after all else was well again", check.Takeover, func(_ *testing.T, run *record.Run, s *record.Session) {
			takeover(run, s, 16*time.Second, 5*time.Second)
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			run, sc := good(t)
			c.plant(t, run, run.Sessions[0])
			rep := check.Run(run, sc, limits)
			if !rules(rep)[c.rule] {
				t.Errorf("not found; found: %v", rep.Violations)
			}
		})
	}
}

// takeover kills the holder of a session, which goes on after a while. Meanwhile tools is away for a time.
func takeover(run *record.Run, s *record.Session, after, away time.Duration) {
	begin := s.Log[3].Time.AsTime().Add(time.Millisecond)
	run.Faults = []record.Fault{{Kind: record.Kill, Service: record.SessionService, Target: "session-1", Begin: begin, End: begin, Held: []string{s.Name}}}
	if away > 0 {
		run.Faults = append(run.Faults, record.Fault{Kind: record.Pause, Service: record.ToolsService, Target: "tools-1", Begin: begin, End: begin.Add(away)})
	}
	for _, log := range [][]*event{s.Log, s.Again, s.Followers[0].Streams[0].Events, s.Followers[0].Streams[1].Events} {
		for _, e := range log {
			if e.Seq >= s.Log[4].Seq {
				e.Time = timestamppb.New(e.Time.AsTime().Add(after))
			}
		}
	}
}

// restart has one fault restart steps so many times.
func restart(t *testing.T, run *record.Run, s *record.Session, times int) {
	t.Helper()
	run.Faults = []record.Fault{{Kind: record.Pause, Service: record.Postgres, Begin: run.Begin, End: run.End}}
	for _, e := range s.Log {
		if times > 0 && isDelta(e) {
			e.Body = &sessionv1.Event_StepRestarted{StepRestarted: &sessionv1.StepRestarted{}}
			times--
		}
	}
	if times > 0 {
		t.Fatal("the log has too few events")
	}
}

func TestATakeoverWaitsForWhateverElseIsAway(t *testing.T) {
	run, sc := good(t)
	takeover(run, run.Sessions[0], 14*time.Second, 5*time.Second)
	rep := check.Run(run, sc, limits)
	for _, v := range rep.Violations {
		t.Error(v)
	}
	if s := rep.Stats; len(s.Takeovers) != 0 || len(s.Disturbed) != 1 || len(s.Calmed) != 1 || s.Calmed[0] > 10*time.Second || s.Calmed[0] < 9*time.Second {
		t.Errorf("the figures are %+v", s)
	}
}

func TestAFaultMayRestartAFewSteps(t *testing.T) {
	run, sc := good(t)
	restart(t, run, run.Sessions[0], 2)
	if rules(check.Run(run, sc, limits))[check.Restarts] {
		t.Error("two restarts were held against one fault")
	}
}

func TestWhatASandboxThatDiedExcuses(t *testing.T) {
	run, sc := good(t)
	s := run.Sessions[0]
	_, e := find(t, s.Log, isResult)
	for _, log := range [][]*event{s.Log, s.Again, s.Followers[0].Streams[0].Events, s.Followers[0].Streams[1].Events} {
		for _, o := range log {
			if o.Seq == e.Seq {
				o.GetToolCallFinished().Outcome = unknown
			}
		}
	}
	s.Effects = s.Effects[1:] // it may have had none
	run.Faults = []record.Fault{{Kind: record.Kill, Service: record.SandboxService, Begin: e.Time.AsTime(), End: e.Time.AsTime()}}
	rep := check.Run(run, sc, limits)
	for _, v := range rep.Violations {
		t.Error(v)
	}
	if rep.Stats.UnknownCalls != 1 {
		t.Errorf("%d unknown calls are counted", rep.Stats.UnknownCalls)
	}
}
