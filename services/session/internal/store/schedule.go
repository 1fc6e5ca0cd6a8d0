package store

import (
	"context"
	"strings"
	"time"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
)

// MaxSchedules bounds the schedules of one session.
const MaxSchedules = 100

// NewSchedule describes a schedule to be created.
type NewSchedule struct {
	Key
	ID   string
	User string // its owner, as whom its turns are sent
	// Schedule holds the request; the store sets the times.
	Schedule *sessionv1.Schedule
	// Next returns the first time after the database's time. The store may call
	// it more than once.
	Next    func(now time.Time) time.Time
	Request Request
}

// PauseSchedule stops or resumes a schedule.
type PauseSchedule struct {
	Key
	ID     string
	Paused bool
	// Next returns the first time after the database's time, for a schedule
	// that resumes.
	Next    func(now time.Time) time.Time
	Request Request
}

// ScheduleRow is a schedule with the data to fire it.
type ScheduleRow struct {
	Schedule *sessionv1.Schedule
	User     string
	// Due is the next time; zero while it is paused, or when none is left.
	Due time.Time
	// Now is the database's time.
	Now time.Time
}

// ScheduleFired is the result of one time of a schedule.
type ScheduleFired struct {
	Key
	ID string
	// Due is the time that came. If the schedule now waits for another time, or
	// for none, nothing changes.
	Due time.Time
	// Next is the next time; zero when none is left.
	Next time.Time
	// Turn is the name of the sent turn; empty leaves the last one.
	Turn string
	// Error says why nothing was sent.
	Error string
}

// ScheduleJob returns the job that waits for a schedule's next time.
func ScheduleJob(k Key, id string, due time.Time) Job {
	return Job{Tenant: k.Tenant, Kind: JobSchedule, ID: k.Session + "/" + id, Session: k.Session, Due: due}
}

// ScheduleOf returns the schedule for which a job waits.
func ScheduleOf(j Job) (k Key, id string) {
	session, id, _ := strings.Cut(j.ID, "/")
	return Key{Tenant: j.Tenant, Session: session}, id
}

// Schedules stores the schedules of sessions. Each has a job of the kind
// JobSchedule that waits for its next time: see ScheduleJob. Schedules and jobs
// go with their session.
type Schedules interface {
	// CreateSchedule creates a schedule and its job. ErrNotFound without the
	// session, ErrExists, ErrTooMany, ErrRequestIDReused.
	CreateSchedule(ctx context.Context, n NewSchedule) (Answer, error)
	// GetSchedule reads a schedule, or ErrNotFound.
	GetSchedule(ctx context.Context, k Key, id string) (*ScheduleRow, error)
	// ListSchedules lists a session's schedules behind the one with the id after,
	// by id. ErrNotFound without the session.
	ListSchedules(ctx context.Context, k Key, after string, limit int) ([]*sessionv1.Schedule, error)
	// PauseSchedule removes the job of a schedule, or makes a new one. ErrNotFound,
	// ErrRequestIDReused.
	PauseSchedule(ctx context.Context, p PauseSchedule) (Answer, error)
	// DeleteSchedule deletes a schedule and its job. ErrNotFound, ErrRequestIDReused.
	DeleteSchedule(ctx context.Context, k Key, id string, r Request) (Answer, error)
	// ScheduleFired records the result of one time. It leaves the job
	// unchanged.
	ScheduleFired(ctx context.Context, f ScheduleFired) error
}
