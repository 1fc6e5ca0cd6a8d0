package check

import (
	"slices"
	"time"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"

	"github.com/fairlead/fairlead/services/allinone/chaos/internal/record"
)

// period is the interval between the times of all schedules in a run.
const period = time.Minute

// schedules checks that each time of a schedule made exactly one turn. Missed times make one turn together,
// and a time is left out while the turn of the time before still waits.
func (c *checker) schedules(s *record.Session) {
	for _, sched := range s.Schedules {
		turns := sentBy(s, sched)
		c.report.Stats.Scheduled += len(turns)
		dues := dues(sched, c.run.End)
		for i, t := range turns {
			if i >= len(dues) || t.GetCreateTime().AsTime().Before(dues[i].Add(-c.limits.Slack)) {
				c.fault(Schedules, s, "%s has sent %d turns by %s, and fewer times had come", sched.Name, i+1, t.GetCreateTime().AsTime().Format(time.TimeOnly))
				break
			}
		}
		for _, due := range dues {
			c.due(s, sched, due, turns)
		}
	}
}

// due checks that a time has made a turn before the time after the next one came, unless the turn before
// still waited.
func (c *checker) due(s *record.Session, sched record.Schedule, due time.Time, turns []*sessionv1.Turn) {
	end := due.Add(2 * period)
	if end.After(sched.Stopped) || due.Before(sched.Made.Add(c.limits.Slack)) {
		return // it may come yet, or is before the first
	}
	var before *sessionv1.Turn
	for _, t := range turns {
		at := t.GetCreateTime().AsTime()
		if at.Before(due.Add(-c.limits.Slack)) {
			before = t
			continue
		}
		if at.Before(end) {
			return
		}
	}
	if before != nil && waited(before, due) {
		c.report.Stats.LeftOut++
		return
	}
	c.fault(Schedules, s, "the time %s of %s made no turn", due.Format(time.TimeOnly), sched.Name)
}

// waited reports whether a turn was still in the queue at a time.
func waited(t *sessionv1.Turn, at time.Time) bool {
	if t.GetStartTime() != nil {
		return t.GetStartTime().AsTime().After(at)
	}
	return t.GetEndTime() == nil || t.GetEndTime().AsTime().After(at)
}

// sentBy returns the turns that a schedule has sent, in their order.
func sentBy(s *record.Session, sched record.Schedule) []*sessionv1.Turn {
	var all []*sessionv1.Turn
	for _, t := range s.Turns {
		if t.GetSchedule() == sched.Name {
			all = append(all, t)
		}
	}
	slices.SortFunc(all, func(a, b *sessionv1.Turn) int {
		return a.GetCreateTime().AsTime().Compare(b.GetCreateTime().AsTime())
	})
	return all
}

// dues returns the times of a schedule until an end.
func dues(sched record.Schedule, end time.Time) []time.Time {
	first := sched.Made.Add(period)
	if sched.Cron == "* * * * *" {
		first = sched.Made.Truncate(period).Add(period)
	}
	var all []time.Time
	for t := first; !t.After(end); t = t.Add(period) {
		all = append(all, t)
	}
	return all
}

// scheduled returns the messages of a session's schedules, by turn.
func scheduled(s *record.Session) map[string]string {
	says := map[string]string{}
	for _, t := range s.Turns {
		for _, sched := range s.Schedules {
			if t.GetSchedule() == sched.Name {
				says[t.GetName()] = sched.Text
			}
		}
	}
	return says
}
