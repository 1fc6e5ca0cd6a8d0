package jobs

import (
	"context"
	"errors"
	"fmt"
	"strings"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/internal/kit/principal"
	"github.com/fairlead/fairlead/services/session/internal/refusal"
	"github.com/fairlead/fairlead/services/session/internal/schedule"
	"github.com/fairlead/fairlead/services/session/internal/store"
	"github.com/fairlead/fairlead/services/session/internal/submit"
)

// sendSchedule does a store.JobSchedule: it sends the schedule's message
// as the schedule's owner, and returns when to run next. The schedule's row has
// the due time, so the job is only an alarm: if a replica dies after it has sent
// the message and before it has stored that, the next one repeats the same
// request, which makes no second turn.
func (d *Deps) sendSchedule(ctx context.Context, j store.Job) (*store.Job, error) {
	k, id := store.ScheduleOf(j)
	row, err := d.Store.GetSchedule(ctx, k, id)
	if errors.Is(err, store.ErrNotFound) || err == nil && row.Due.IsZero() {
		return nil, nil // deleted or paused meanwhile, or no time is left
	}
	if err != nil {
		return nil, err
	}
	if row.Due.After(row.Now) {
		return &store.Job{Due: row.Due}, nil
	}
	times, err := schedule.Parse(row.Schedule.Cron, row.Schedule.TimeZone)
	if err != nil {
		return nil, fmt.Errorf("read schedule %s: %w", row.Schedule.Name, err)
	}
	fired := store.ScheduleFired{Key: k, ID: id, Due: row.Due, Next: times.Next(row.Due, row.Now)}
	ctx = principal.With(ctx, principal.Principal{Tenant: k.Tenant, User: row.User, Role: principal.RoleUser})
	why, err := d.Submit.MayNotSend(ctx, k, row.User)
	if err != nil {
		return nil, err
	}
	if why != "" {
		fired.Error = "This time was skipped, because " + why + "."
	} else {
		fired.Turn, fired.Error, err = d.sendDue(ctx, k, row)
	}
	if err != nil {
		return nil, err
	}
	if err := d.Store.ScheduleFired(ctx, fired); err != nil || fired.Next.IsZero() {
		return nil, err
	}
	return &store.Job{Due: fired.Next}, nil
}

// sendDue sends the message of a due time. It returns the turn's name, or why
// there is no turn. An error means that the job must be retried.
func (d *Deps) sendDue(ctx context.Context, k store.Key, row *store.ScheduleRow) (name, why string, err error) {
	session := "sessions/" + k.Session
	if _, last, _ := strings.Cut(row.Schedule.LastTurn, "/turns/"); last != "" {
		t, err := d.Store.GetTurn(ctx, k, last)
		if err != nil && !errors.Is(err, store.ErrNotFound) {
			return "", "", err
		}
		if t.GetState() == sessionv1.TurnState_TURN_STATE_QUEUED {
			return "", "This time was skipped, because the turn of the previous time is still queued.", nil
		}
	}
	_, id, _ := strings.Cut(row.Schedule.Name, "/schedules/")
	request := &sessionv1.CreateTurnRequest{
		Parent: session, Text: row.Schedule.Text, OnActive: row.Schedule.OnActive, Limits: row.Schedule.Limits,
		RequestId: fmt.Sprintf("schedule/%s/%d", id, row.Due.Unix()),
	}
	t, err := d.Submit.Accept(ctx, submit.Message{
		Method: "Schedule", Origin: submit.Origin{Schedule: row.Schedule.Name}, Request: request,
	})
	if err == nil {
		return t.Name, "", nil
	}
	if message, ok := refusal.Final(err); ok {
		return "", message, nil
	}
	return "", "", err
}
