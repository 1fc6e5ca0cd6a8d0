package main

import (
	"strings"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
)

// schedulesCommand sends messages to sessions at set times.
type schedulesCommand struct {
	Create shows[createSchedule, *sessionv1.Schedule] `cmd:"" help:"Send a message to a session at set times."`
	List   lists[listSchedules, *sessionv1.Schedule]  `cmd:"" help:"List a session's schedules."`
	Get    shows[showSchedule, *sessionv1.Schedule]   `cmd:"" help:"Show a schedule."`
	Pause  shows[pauseSchedule, *sessionv1.Schedule]  `cmd:"" help:"Stop a schedule until it is resumed."`
	Resume shows[resumeSchedule, *sessionv1.Schedule] `cmd:"" help:"Resume a schedule. Times that have passed are left out."`
	Delete does[deleteSchedule]                       `cmd:"" help:"Delete a schedule. Its turns stay."`
}

// onActive returns what --on-active means.
func onActive(word string) sessionv1.OnActive {
	return sessionv1.OnActive(sessionv1.OnActive_value["ON_ACTIVE_"+strings.ToUpper(word)])
}

// turnLimits bound the turns that a schedule or a trigger begins.
type turnLimits struct {
	MaxSteps int32         `placeholder:"N" help:"The most model calls of each turn."`
	Timeout  time.Duration `placeholder:"D" help:"The most time of each turn, such as 5m."`
}

func (l turnLimits) ready() error {
	if l.MaxSteps < 0 || l.Timeout < 0 {
		return usage("--max-steps and --timeout cannot be negative")
	}
	return nil
}

func (l turnLimits) limits() *sessionv1.TurnLimits {
	switch {
	case l.Timeout > 0:
		return &sessionv1.TurnLimits{MaxSteps: l.MaxSteps, MaxWallTime: durationpb.New(l.Timeout)}
	case l.MaxSteps > 0:
		return &sessionv1.TurnLimits{MaxSteps: l.MaxSteps}
	}
	return nil
}

// scheduleName names a schedule.
type scheduleName struct {
	Session string `arg:"" help:"The session."`
	ID      string `arg:"" help:"The schedule."`
}

func (n scheduleName) name() string { return sessionName(n.Session) + "/schedules/" + bare(n.ID) }

// printsSchedule is a command that shows a schedule.
type printsSchedule struct{ jsonOne }

func (printsSchedule) show(s stdio, x *sessionv1.Schedule) error {
	return columns(s.out, [][]string{
		{"schedule", bare(x.GetName())}, {"times", x.GetCron()}, {"zone", zone(x)}, {"next", next(x)},
		{"on active", strings.ToLower(strings.TrimPrefix(x.GetOnActive().String(), "ON_ACTIVE_"))},
		{"message", x.GetText()}, {"last turn", bare(x.GetLastTurn())}, {"last error", x.GetLastError()},
	})
}

func zone(x *sessionv1.Schedule) string {
	if x.GetTimeZone() == "" {
		return "UTC"
	}
	return x.GetTimeZone()
}

// next returns when a schedule sends next.
func next(x *sessionv1.Schedule) string {
	if x.GetPaused() {
		return "paused"
	}
	return stamp(x.GetNextTime())
}

type createSchedule struct {
	Session  string `arg:"" help:"The session."`
	Cron     string `arg:"" help:"When: minute, hour, day of month, month and day of week, such as '30 6 * * 1-5', or @hourly, @daily, @weekly, @monthly, '@every 90m'."`
	Text     string `arg:"" help:"The message to send."`
	Zone     string `placeholder:"NAME" help:"The time zone, such as Europe/Berlin. The default is UTC."`
	OnActive string `default:"queue" enum:"queue,reject,interrupt,steer,rollback" help:"What to do while a turn is active: ${enum}."`
	ID       string `name:"id" placeholder:"ID" help:"The schedule's id. The server makes one by default."`
	turnLimits
	printsSchedule
	lasting
}

func (f createSchedule) request() proto.Message {
	return &sessionv1.CreateScheduleRequest{
		Parent: sessionName(f.Session), ScheduleId: f.ID,
		Schedule: &sessionv1.Schedule{Cron: f.Cron, TimeZone: f.Zone, Text: f.Text, OnActive: onActive(f.OnActive), Limits: f.limits()},
	}
}

type listSchedules struct {
	Session string `arg:"" help:"The session."`
	jsonList
}

func (f listSchedules) request() proto.Message {
	return &sessionv1.ListSchedulesRequest{Parent: sessionName(f.Session)}
}

func (listSchedules) row(x *sessionv1.Schedule) [][]string {
	return [][]string{
		{"SCHEDULE", bare(x.GetName())}, {"TIMES", x.GetCron()}, {"ZONE", zone(x)}, {"NEXT", next(x)},
		{"LAST TURN", bare(x.GetLastTurn())}, {"MESSAGE", x.GetText()}, {"LAST ERROR", x.GetLastError()},
	}
}

type showSchedule struct {
	scheduleName
	printsSchedule
}

func (f showSchedule) request() proto.Message { return &sessionv1.GetScheduleRequest{Name: f.name()} }

type pauseSchedule struct{ showSchedule }

func (f pauseSchedule) request() proto.Message {
	return &sessionv1.PauseScheduleRequest{Name: f.name(), Paused: true}
}

type resumeSchedule struct{ showSchedule }

func (f resumeSchedule) request() proto.Message {
	return &sessionv1.PauseScheduleRequest{Name: f.name()}
}

type deleteSchedule struct{ scheduleName }

func (f deleteSchedule) request() proto.Message {
	return &sessionv1.DeleteScheduleRequest{Name: f.name()}
}

func (deleteSchedule) done() string { return "deleted" }
