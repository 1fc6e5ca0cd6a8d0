package check_test

import (
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"

	"github.com/fairlead/fairlead/services/allinone/chaos/internal/check"
	"github.com/fairlead/fairlead/services/allinone/chaos/internal/record"
	"github.com/fairlead/fairlead/services/allinone/chaos/internal/script"
)

// scheduled is the recording of a session whose schedule has sent four turns, a minute apart. One of them came so late
// that the next time had passed as well.
func scheduled(t *testing.T) (*record.Run, *record.Session, *script.Script) {
	t.Helper()
	sc := script.New(seed)
	s := &story{session: &record.Session{Name: "sessions/s"}}
	s.add(&event{Body: &sessionv1.Event_SessionCreated{SessionCreated: &sessionv1.SessionCreated{Agent: "agents/chaos"}}})
	sched := record.Schedule{Name: "sessions/s/schedules/x", Cron: "@every 1m", Text: script.Text(sc.Quiet(), "x"), Made: origin}
	for _, minute := range []float64{1, 2, 4.5, 5} {
		s.late = time.Duration(minute*float64(time.Minute)) - s.at().Sub(origin) + s.late
		turn := s.accept(sched.Text, sessionv1.OnActive_ON_ACTIVE_UNSPECIFIED)
		row := s.session.Turns[len(s.session.Turns)-1]
		row.Schedule, row.CreateTime = sched.Name, timestamppb.New(s.at())
		row.StartTime = row.CreateTime
		s.begin(turn, sched.Text)
		s.finish(turn, complete, "", s.playSteps(t, sc, sched.Text))
	}
	sched.Stopped = origin.Add(6 * time.Minute)
	s.session.Schedules, s.session.Accepted = []record.Schedule{sched}, nil
	return s.recording(), s.session, sc
}

func TestSchedulesSendTurns(t *testing.T) {
	run, _, sc := scheduled(t)
	rep := check.Run(run, sc, limits)
	for _, v := range rep.Violations {
		t.Error(v)
	}
	if st := rep.Stats; st.Scheduled != 4 || st.LeftOut != 0 {
		t.Errorf("the figures are %+v", st)
	}
}

func TestATimeIsLeftOutBehindATurnThatWaits(t *testing.T) {
	run, s, sc := scheduled(t)
	s.Schedules[0].Stopped = origin.Add(8 * time.Minute)
	s.Turns[3].StartTime = timestamppb.New(origin.Add(7 * time.Minute))
	rep := check.Run(run, sc, limits)
	for _, v := range rep.Violations {
		t.Error(v)
	}
	if rep.Stats.LeftOut != 0 {
		t.Errorf("times after the recording's end are counted: %+v", rep.Stats)
	}
	run.End = origin.Add(8 * time.Minute)
	if rep := check.Run(run, sc, limits); rep.Stats.LeftOut != 1 || len(rep.Violations) > 0 {
		t.Errorf("the figures are %+v, the violations %v", rep.Stats, rep.Violations)
	}
}

func TestPlantedFaultsAboutSchedulesAreFound(t *testing.T) {
	for _, c := range []struct {
		name  string
		rule  check.Rule
		plant func(run *record.Run, s *record.Session)
	}{
		{"a time made two turns", check.Schedules, func(_ *record.Run, s *record.Session) { s.Turns[1].CreateTime = s.Turns[0].CreateTime }},
		{"a turn came before its time", check.Schedules, func(_ *record.Run, s *record.Session) {
			s.Turns[0].CreateTime = timestamppb.New(origin.Add(50 * time.Second))
		}},
		{"times made no turn", check.Schedules, func(run *record.Run, s *record.Session) {
			run.End = origin.Add(9 * time.Minute)
			s.Schedules[0].Stopped = run.End
		}},
		{"a turn came when two more times had passed", check.Schedules, func(_ *record.Run, s *record.Session) {
			s.Turns[2].CreateTime = timestamppb.New(origin.Add(5*time.Minute + 2*time.Second))
		}},
		{"a turn says something else than its schedule", check.Schedules, func(_ *record.Run, s *record.Session) { s.Schedules[0].Text += "!" }},
		{"a turn is of a schedule that nobody has made", check.Once, func(_ *record.Run, s *record.Session) { s.Turns[0].Schedule += "y" }},
	} {
		t.Run(c.name, func(t *testing.T) {
			run, s, sc := scheduled(t)
			c.plant(run, s)
			rep := check.Run(run, sc, limits)
			if !rules(rep)[c.rule] {
				t.Errorf("not found; found: %v", rep.Violations)
			}
		})
	}
}
