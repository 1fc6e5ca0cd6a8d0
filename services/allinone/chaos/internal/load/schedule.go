package load

import (
	"context"
	"fmt"
	"time"

	"google.golang.org/protobuf/encoding/protojson"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"

	"github.com/fairlead/fairlead/services/allinone/chaos/internal/record"
	"github.com/fairlead/fairlead/services/allinone/chaos/internal/script"
)

// crons are the times of the schedules that sessions have: as often as there may be any, some at the same moments
// everywhere, and others a minute after they were made.
var crons = [...]string{"* * * * *", "@every 1m"}

func (r replica) createSchedule(ctx context.Context, session string, s *sessionv1.Schedule, key string) (*sessionv1.Schedule, error) {
	resp, err := r.schedules.CreateSchedule(ctx, &sessionv1.CreateScheduleRequest{Parent: session, Schedule: s, RequestId: key})
	return resp.GetSchedule(), judge("CreateSchedule", err)
}

func (r replica) pauseSchedule(ctx context.Context, name, key string) error {
	_, err := r.schedules.PauseSchedule(ctx, &sessionv1.PauseScheduleRequest{Name: name, Paused: true, RequestId: key})
	return judge("PauseSchedule", err)
}

func (r rest) createSchedule(ctx context.Context, session string, s *sessionv1.Schedule, key string) (*sessionv1.Schedule, error) {
	made := &sessionv1.Schedule{}
	body := fmt.Sprintf(`{"cron":%q,"text":%q,"onActive":%q}`, s.GetCron(), s.GetText(), s.GetOnActive())
	err := r.post(ctx, "/v1/"+session+"/schedules", body, key, func(b []byte) error { return protojson.Unmarshal(b, made) })
	return made, err
}

func (r rest) pauseSchedule(ctx context.Context, name, key string) error {
	return r.post(ctx, "/v1/"+name+":pause", `{"paused":true}`, key, func([]byte) error { return nil })
}

// plan makes the session's schedules.
func (c *client) plan(ctx context.Context, session string) {
	for i, cron := range crons {
		if c.rand.IntN(2) == 0 {
			continue
		}
		text := script.Text(c.load.options.Script.Quiet(), fmt.Sprintf("s%03d-schedule-%d", c.number, i))
		var made *sessionv1.Schedule
		_, _, ok := c.mutate(ctx, c.rand, func(ctx context.Context, e entry, key string) (_ string, err error) {
			made, err = e.createSchedule(ctx, session, &sessionv1.Schedule{Cron: cron, Text: text, OnActive: sessionv1.OnActive_ON_ACTIVE_QUEUE}, key)
			return "", err
		})
		if !ok {
			return
		}
		c.mu.Lock()
		c.record.Schedules = append(c.record.Schedules, record.Schedule{Name: made.GetName(), Cron: cron, Text: text, Made: made.GetCreateTime().AsTime()})
		c.mu.Unlock()
	}
}

// hush stops the session's schedules, and waits for the turns that they have sent.
func (c *client) hush(ctx context.Context) {
	for i := range c.record.Schedules { // no other goroutine changes them
		s := &c.record.Schedules[i]
		s.Stopped = time.Now()
		if _, _, ok := c.mutate(ctx, c.rand, func(ctx context.Context, e entry, key string) (string, error) {
			return "", e.pauseSchedule(ctx, s.Name, key)
		}); !ok {
			return
		}
	}
	c.settled(ctx)
}

// sent notes that a schedule has sent a turn.
func (c *client) sent(turn string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.scheduled = append(c.scheduled, turn)
}
