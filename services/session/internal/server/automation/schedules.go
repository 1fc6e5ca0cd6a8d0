package automation

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"google.golang.org/grpc/codes"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/internal/kit/apierr"
	"github.com/fairlead/fairlead/services/internal/kit/id"
	"github.com/fairlead/fairlead/services/session/internal/refusal"
	"github.com/fairlead/fairlead/services/session/internal/request"
	"github.com/fairlead/fairlead/services/session/internal/schedule"
	"github.com/fairlead/fairlead/services/session/internal/store"
)

// ScheduleServer implements ScheduleService.
type ScheduleServer struct {
	sessionv1.UnimplementedScheduleServiceServer
	*Config
}

// CreateSchedule makes a schedule.
func (x *ScheduleServer) CreateSchedule(
	ctx context.Context, r *sessionv1.CreateScheduleRequest,
) (*sessionv1.CreateScheduleResponse, error) {
	times, err := schedule.Parse(r.GetSchedule().GetCron(), r.GetSchedule().GetTimeZone())
	if err != nil {
		return nil, badSchedule(err)
	}
	if times.Next(time.Now(), time.Now()).IsZero() {
		return nil, badSchedule(fmt.Errorf("%q has no time within five years", r.Schedule.Cron))
	}
	if err := x.sendable(ctx, r); err != nil {
		return nil, err
	}
	n := store.NewSchedule{
		Key: request.Key(ctx, r.Parent), ID: r.ScheduleId, User: request.User(ctx), Schedule: r.Schedule, Next: first(times),
		Request: request.Lasting("CreateSchedule", r.Parent, r),
	}
	if n.ID == "" {
		n.ID = id.New()
	}
	answer, err := x.Store.CreateSchedule(ctx, n)
	switch {
	case errors.Is(err, store.ErrExists):
		name := r.Parent + "/schedules/" + n.ID
		return nil, refusal.Of(codes.AlreadyExists, sessionv1.ErrorReason_ERROR_REASON_ALREADY_EXISTS,
			fmt.Sprintf("There is already a schedule %s. Choose another schedule_id, or leave it out to get a new one.", name),
			apierr.Resource("fairlead.dev/Schedule", name, "exists already"))
	case errors.Is(err, store.ErrTooMany):
		return nil, refusal.Of(codes.ResourceExhausted, sessionv1.ErrorReason_ERROR_REASON_TOO_MANY,
			fmt.Sprintf("Session %s already has %d schedules, the most allowed. Delete one first.", r.Parent, store.MaxSchedules),
			apierr.Quota(r.Parent, "schedules"))
	case err != nil:
		return nil, refusal.Store(err, refusal.Subject{Session: r.Parent, RequestID: r.RequestId})
	}
	out, err := x.read(ctx, r.Parent+"/schedules/"+answer.Value)
	return &sessionv1.CreateScheduleResponse{Schedule: out}, err
}

// sendable refuses a schedule whose turns would be refused, before its first
// time.
func (x *ScheduleServer) sendable(ctx context.Context, r *sessionv1.CreateScheduleRequest) error {
	k := request.Key(ctx, r.Parent)
	session, err := x.Store.GetSession(ctx, k)
	if err != nil {
		return refusal.Store(err, refusal.Subject{Session: r.Parent})
	}
	if session.ParentCall != nil {
		return refusal.SubagentSession(session.Name)
	}
	spec, err := x.Directory.SpecOf(ctx, k.Tenant, session)
	if err != nil {
		return err
	}
	_, err = x.Submit.TurnLimits(k.Tenant, spec, r.Schedule.Limits)
	return err
}

// first returns a function that returns the first time after now.
func first(t *schedule.Times) func(now time.Time) time.Time {
	return func(now time.Time) time.Time {
		if next := t.Next(now, now); next.After(now) {
			return next.Truncate(time.Second)
		}
		return time.Time{}
	}
}

func badSchedule(err error) error {
	return refusal.Of(codes.InvalidArgument, sessionv1.ErrorReason_ERROR_REASON_BAD_SCHEDULE,
		fmt.Sprintf("The schedule's times cannot be used: %v. Write minute, hour, day of month, month and day of week, such as `30 6 * * 1-5`, or @hourly, @daily, @weekly, @monthly, @every 90m.", err),
		apierr.Field("schedule.cron", err.Error()))
}

// splitSchedule splits `sessions/{session}/schedules/{schedule}`; the schema has
// checked the form.
func splitSchedule(name string) (session, child string) {
	session, child, _ = strings.Cut(name, "/schedules/")
	return session, child
}

// scheduleError is storeError for a request about one schedule.
func scheduleError(err error, name, requestID string) error {
	if errors.Is(err, store.ErrNotFound) {
		return refusal.Of(codes.NotFound, sessionv1.ErrorReason_ERROR_REASON_SCHEDULE_NOT_FOUND,
			fmt.Sprintf("There is no schedule %s. List the session's schedules to see which there are.", name),
			apierr.Resource("fairlead.dev/Schedule", name, "not found"))
	}
	return refusal.Store(err, refusal.Subject{RequestID: requestID})
}

func (x *ScheduleServer) read(ctx context.Context, name string) (*sessionv1.Schedule, error) {
	session, child := splitSchedule(name)
	row, err := x.Store.GetSchedule(ctx, request.Key(ctx, session), child)
	if err != nil {
		return nil, scheduleError(err, name, "")
	}
	return row.Schedule, nil
}

// GetSchedule reads a schedule.
func (x *ScheduleServer) GetSchedule(ctx context.Context, r *sessionv1.GetScheduleRequest) (*sessionv1.GetScheduleResponse, error) {
	out, err := x.read(ctx, r.Name)
	return &sessionv1.GetScheduleResponse{Schedule: out}, err
}

// ListSchedules lists a page of a session's schedules.
func (x *ScheduleServer) ListSchedules(ctx context.Context, r *sessionv1.ListSchedulesRequest) (*sessionv1.ListSchedulesResponse, error) {
	k := request.Key(ctx, r.Parent)
	scope := "ListSchedules\x00" + k.Tenant + "\x00" + k.Session
	about := refusal.Subject{Session: r.Parent}
	all, next, err := request.List(scope, r, about, request.ByID, func(after string, n int) ([]*sessionv1.Schedule, error) {
		return x.Store.ListSchedules(ctx, k, after, n)
	})
	return &sessionv1.ListSchedulesResponse{Schedules: all, NextPageToken: next}, err
}

// PauseSchedule stops a schedule, or lets it go on from now.
func (x *ScheduleServer) PauseSchedule(ctx context.Context, r *sessionv1.PauseScheduleRequest) (*sessionv1.PauseScheduleResponse, error) {
	old, err := x.read(ctx, r.Name)
	if err != nil {
		return nil, err
	}
	times, err := schedule.Parse(old.Cron, old.TimeZone)
	if err != nil {
		return nil, badSchedule(err)
	}
	session, child := splitSchedule(r.Name)
	_, err = x.Store.PauseSchedule(ctx, store.PauseSchedule{
		Key: request.Key(ctx, session), ID: child, Paused: r.Paused, Next: first(times),
		Request: request.Lasting("PauseSchedule", r.Name, r),
	})
	if err != nil {
		return nil, scheduleError(err, r.Name, r.RequestId)
	}
	out, err := x.read(ctx, r.Name)
	return &sessionv1.PauseScheduleResponse{Schedule: out}, err
}

// DeleteSchedule deletes a schedule.
func (x *ScheduleServer) DeleteSchedule(
	ctx context.Context, r *sessionv1.DeleteScheduleRequest,
) (*sessionv1.DeleteScheduleResponse, error) {
	session, child := splitSchedule(r.Name)
	_, err := x.Store.DeleteSchedule(ctx, request.Key(ctx, session), child, request.Lasting("DeleteSchedule", r.Name, r))
	if err != nil {
		return nil, scheduleError(err, r.Name, r.RequestId)
	}
	return &sessionv1.DeleteScheduleResponse{}, nil
}
