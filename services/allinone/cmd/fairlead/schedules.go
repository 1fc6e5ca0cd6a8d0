package main

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/allinone/internal/terminal"
	"github.com/fairlead/fairlead/services/internal/kit/id"
)

// schedulesCommand sends messages to sessions at set times.
type schedulesCommand struct {
	Create createScheduleCommand `cmd:"" help:"Send a message to a session at set times."`
	List   listSchedulesCommand  `cmd:"" help:"List a session's schedules."`
	Get    getScheduleCommand    `cmd:"" help:"Show a schedule."`
	Pause  pauseScheduleCommand  `cmd:"" help:"Stop a schedule until it is resumed."`
	Resume resumeScheduleCommand `cmd:"" help:"Resume a schedule. Times that have passed are left out."`
	Delete deleteScheduleCommand `cmd:"" help:"Delete a schedule. Its turns stay."`
}

// idle is said by commands whose effect needs a server that runs.
const idle = "No server runs after this command. Start one to send what is due: fairlead serve\n"

// remind says so when the server ends with the command.
func (b *backend) remind(s stdio) {
	if b.address == "" {
		_, _ = io.WriteString(s.err, idle)
	}
}

// onActive returns what --on-active means.
func onActive(word string) sessionv1.OnActive {
	return sessionv1.OnActive(sessionv1.OnActive_value["ON_ACTIVE_"+strings.ToUpper(word)])
}

// scheduleRef names a schedule.
type scheduleRef struct {
	Session string `arg:"" help:"The session."`
	ID      string `arg:"" help:"The schedule."`
}

func (r scheduleRef) name() string {
	return sessionName(r.Session) + "/schedules/" + bare(r.ID)
}

// createScheduleCommand makes a schedule.
type createScheduleCommand struct {
	Session  string        `arg:"" help:"The session."`
	Cron     string        `arg:"" help:"When: minute, hour, day of month, month and day of week, such as '30 6 * * 1-5', or @hourly, @daily, @weekly, @monthly, '@every 90m'."`
	Text     string        `arg:"" help:"The message to send."`
	Zone     string        `placeholder:"NAME" help:"The time zone, such as Europe/Berlin. The default is UTC."`
	OnActive string        `default:"queue" enum:"queue,reject,interrupt,steer,rollback" help:"What to do while a turn is active: ${enum}."`
	ID       string        `name:"id" placeholder:"ID" help:"The schedule's id. The server makes one by default."`
	MaxSteps int32         `placeholder:"N" help:"The most model calls of each turn."`
	Timeout  time.Duration `placeholder:"D" help:"The most time of each turn, such as 5m."`
	JSON     bool          `name:"json" help:"Print the schedule as JSON."`
	target
}

// Run makes a schedule.
func (c createScheduleCommand) Run(ctx context.Context, s stdio) error {
	if c.MaxSteps < 0 || c.Timeout < 0 {
		return usage("--max-steps and --timeout cannot be negative")
	}
	r := &sessionv1.CreateScheduleRequest{
		Parent: sessionName(c.Session), ScheduleId: c.ID, RequestId: id.New(),
		Schedule: &sessionv1.Schedule{Cron: c.Cron, TimeZone: c.Zone, Text: c.Text, OnActive: onActive(c.OnActive)},
	}
	if c.MaxSteps > 0 || c.Timeout > 0 {
		r.Schedule.Limits = &sessionv1.TurnLimits{MaxSteps: c.MaxSteps}
		if c.Timeout > 0 {
			r.Schedule.Limits.MaxWallTime = durationpb.New(c.Timeout)
		}
	}
	return c.with(ctx, s, func(ctx context.Context, b *backend) error {
		var resp *sessionv1.CreateScheduleResponse
		err := retry(ctx, func() (err error) {
			resp, err = b.schedules.CreateSchedule(ctx, r)
			return err
		})
		if err != nil {
			return terminal.Explained(err)
		}
		b.remind(s)
		return printSchedule(s.out, resp.GetSchedule(), c.JSON)
	})
}

// listSchedulesCommand lists schedules.
type listSchedulesCommand struct {
	Session string `arg:"" help:"The session."`
	JSON    bool   `name:"json" help:"Print one JSON schedule per line."`
	target
}

// Run lists schedules.
func (c listSchedulesCommand) Run(ctx context.Context, s stdio) error {
	return c.with(ctx, s, func(ctx context.Context, b *backend) error {
		var all []*sessionv1.Schedule
		err := pages(ctx, 0, func(size int32, token string) (int, string, error) {
			resp, err := b.schedules.ListSchedules(ctx, &sessionv1.ListSchedulesRequest{Parent: sessionName(c.Session), PageSize: size, PageToken: token})
			all = append(all, resp.GetSchedules()...)
			return len(resp.GetSchedules()), resp.GetNextPageToken(), err
		})
		if err != nil {
			return terminal.Explained(err)
		}
		if c.JSON {
			return printJSON(s.out, all)
		}
		return listSchedules(s.out, all)
	})
}

func listSchedules(w io.Writer, all []*sessionv1.Schedule) error {
	rows := [][]string{{"SCHEDULE", "TIMES", "ZONE", "NEXT", "LAST TURN", "MESSAGE", "LAST ERROR"}}
	for _, x := range all {
		rows = append(rows, []string{bare(x.GetName()), x.GetCron(), zone(x), next(x), bare(x.GetLastTurn()), x.GetText(), x.GetLastError()})
	}
	return columns(w, rows)
}

// printSchedule shows one schedule.
func printSchedule(w io.Writer, x *sessionv1.Schedule, json bool) error {
	if json {
		return printJSON(w, []*sessionv1.Schedule{x})
	}
	return columns(w, [][]string{
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

// getScheduleCommand shows a schedule.
type getScheduleCommand struct {
	scheduleRef
	JSON bool `name:"json" help:"Print the schedule as JSON."`
	target
}

// Run shows a schedule.
func (c getScheduleCommand) Run(ctx context.Context, s stdio) error {
	return c.with(ctx, s, func(ctx context.Context, b *backend) error {
		resp, err := b.schedules.GetSchedule(ctx, &sessionv1.GetScheduleRequest{Name: c.name()})
		if err != nil {
			return terminal.Explained(err)
		}
		return printSchedule(s.out, resp.GetSchedule(), c.JSON)
	})
}

// pauseScheduleCommand stops a schedule.
type pauseScheduleCommand struct {
	scheduleRef
	JSON bool `name:"json" help:"Print the schedule as JSON."`
	target
}

// Run stops a schedule.
func (c pauseScheduleCommand) Run(ctx context.Context, s stdio) error { return c.set(ctx, s, true) }

func (c pauseScheduleCommand) set(ctx context.Context, s stdio, paused bool) error {
	r := &sessionv1.PauseScheduleRequest{Name: c.name(), Paused: paused, RequestId: id.New()}
	return c.with(ctx, s, func(ctx context.Context, b *backend) error {
		var resp *sessionv1.PauseScheduleResponse
		err := retry(ctx, func() (err error) {
			resp, err = b.schedules.PauseSchedule(ctx, r)
			return err
		})
		if err != nil {
			return terminal.Explained(err)
		}
		return printSchedule(s.out, resp.GetSchedule(), c.JSON)
	})
}

// resumeScheduleCommand lets a schedule go on.
type resumeScheduleCommand struct{ pauseScheduleCommand }

// Run lets a schedule go on.
func (c resumeScheduleCommand) Run(ctx context.Context, s stdio) error { return c.set(ctx, s, false) }

// deleteScheduleCommand deletes a schedule.
type deleteScheduleCommand struct {
	scheduleRef
	target
}

// Run deletes a schedule.
func (c deleteScheduleCommand) Run(ctx context.Context, s stdio) error {
	r := &sessionv1.DeleteScheduleRequest{Name: c.name(), RequestId: id.New()}
	return c.with(ctx, s, func(ctx context.Context, b *backend) error {
		err := retry(ctx, func() error {
			_, err := b.schedules.DeleteSchedule(ctx, r)
			return err
		})
		if err != nil {
			return terminal.Explained(err)
		}
		_, err = fmt.Fprintln(s.out, "deleted")
		return err
	})
}
