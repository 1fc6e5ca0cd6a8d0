package plan

import (
	"fmt"
	"strings"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/session/internal/store"
)

// Schedule is a schedule's row.
type Schedule struct {
	store.Key
	ID, User   string
	Body       []byte // the request, as a marshaled Schedule
	CreateTime time.Time
	Paused     bool
	Due        *time.Time // nil: no time is left, or it is paused
	LastTurn   string     // a resource name
	LastError  string
}

// ForSchedule returns the row of a new schedule at the time now, without its
// job.
func ForSchedule(n store.NewSchedule, now time.Time) (*Schedule, error) {
	s := n.Schedule
	body, err := proto.Marshal(&sessionv1.Schedule{
		Cron: s.GetCron(), TimeZone: s.GetTimeZone(), Text: s.GetText(), OnActive: s.GetOnActive(), Limits: s.GetLimits(),
	})
	if err != nil {
		return nil, fmt.Errorf("marshal schedule: %w", err)
	}
	return &Schedule{Key: n.Key, ID: n.ID, User: n.User, Body: body, CreateTime: now}, nil
}

// Start sets the schedule's next time and returns the job that waits for it;
// none if no time is left.
func (s *Schedule) Start(next func(time.Time) time.Time, now time.Time) []store.Job {
	s.Paused, s.Due = false, nil
	due := Micros(next(now))
	if due.IsZero() {
		return nil
	}
	s.Due = &due
	return []store.Job{store.ScheduleJob(s.Key, s.ID, due)}
}

// Pause clears the schedule's next time.
func (s *Schedule) Pause() { s.Paused, s.Due = true, nil }

// Proto returns the resource of the row.
func (s *Schedule) Proto() (*sessionv1.Schedule, error) {
	out := &sessionv1.Schedule{}
	if err := proto.Unmarshal(s.Body, out); err != nil {
		return nil, fmt.Errorf("read schedule %s of session %s: %w", s.ID, s.Session, err)
	}
	out.Name = childName(s.Session, "schedules", s.ID)
	out.Paused, out.LastTurn, out.LastError = s.Paused, s.LastTurn, s.LastError
	out.CreateTime = timestamppb.New(s.CreateTime)
	if s.Due != nil {
		out.NextTime = timestamppb.New(*s.Due)
	}
	return out, nil
}

// Row returns the schedule with the data to fire it at the time now.
func (s *Schedule) Row(now time.Time) (*store.ScheduleRow, error) {
	p, err := s.Proto()
	if err != nil {
		return nil, err
	}
	out := &store.ScheduleRow{Schedule: p, User: s.User, Now: now}
	if s.Due != nil {
		out.Due = s.Due.UTC()
	}
	return out, nil
}

// TextColumn makes a text fit for a database column and for people: valid UTF-8,
// one line, and bounded.
func TextColumn(s string) string {
	s = strings.ToValidUTF8(strings.Map(func(r rune) rune {
		if r < ' ' {
			return ' '
		}
		return r
	}, s), "\uFFFD")
	if len(s) <= maxText {
		return s
	}
	return strings.ToValidUTF8(s[:maxText], "") + "…"
}

// maxText bounds the stored text of an error, in bytes.
const maxText = 500
