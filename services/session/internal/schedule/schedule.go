// Package schedule reads the times of schedules: when the next one is, in the
// time zone that the schedule keeps to.
//
// Where clocks are put forward, a time that the day does not have comes as much
// later as they were put forward. Where they are put back, a time that the day has twice
// comes at the first; schedules whose hour is `*` come in both. The zones are
// those that the program brings along if the machine has none.
package schedule

import (
	"errors"
	"fmt"
	"strings"
	"time"
	_ "time/tzdata" // zones for machines without

	cron "github.com/netresearch/go-cron"
)

// Shortest is the least time from one time to the next.
const Shortest = time.Minute

// parser reads five fields and descriptors. As in every cron, a day matches when
// the day of the month or the day of the week does, if both are given.
var parser = cron.MustNewParser(cron.Minute | cron.Hour | cron.Dom | cron.Month | cron.Dow | cron.Descriptor | cron.DowOrDom).
	WithMinEveryInterval(Shortest)

// Times are the times of a schedule. They may be used concurrently.
type Times struct {
	every  time.Duration // of `@every`; otherwise 0
	fields *cron.SpecSchedule
}

// Parse reads a schedule in a time zone (an IANA name; empty: UTC). The error is
// for the person who wrote it.
func Parse(spec, zone string) (*Times, error) {
	spec = strings.TrimSpace(spec)
	if strings.Contains(spec, "TZ=") {
		return nil, errors.New("a time zone stands in the times; put it into time_zone")
	}
	loc, err := location(zone)
	if err != nil {
		return nil, err
	}
	parsed, err := parser.Parse(spec)
	if err != nil {
		return nil, fmt.Errorf("%q: %w", spec, err)
	}
	switch s := parsed.(type) {
	case cron.ConstantDelaySchedule:
		return &Times{every: s.Delay}, nil
	case *cron.SpecSchedule:
		s.Location = loc
		return &Times{fields: s}, nil
	}
	return nil, fmt.Errorf("%q is no schedule of ours", spec)
}

func location(zone string) (*time.Location, error) {
	if zone == "Local" {
		return nil, errors.New("the time zone Local is the server's own; use an IANA name, such as Europe/Berlin")
	}
	loc, err := time.LoadLocation(zone)
	if err != nil {
		return nil, fmt.Errorf("there is no time zone %q; use an IANA name, such as Europe/Berlin", zone)
	}
	return loc, nil
}

// Next is the first time after now, in UTC; zero when none is left within five
// years. Times of `@every` are counted from the time before, which is due; of
// those that have passed none is made up for.
func (t *Times) Next(due, now time.Time) time.Time {
	if t.every > 0 {
		return after(due, now, t.every).UTC()
	}
	if t.fixedHour() {
		return t.named(now)
	}
	next := t.fields.Next(now)
	if next.IsZero() {
		return next
	}
	return next.UTC()
}

// longestGap is the most by which clocks were ever put forward: the day that Samoa left out.
const longestGap = 25 * time.Hour

// named is Next for hours that are named. It reads the fields by the clock on the wall, and
// finds out when the clock shows that.
func (t *Times) named(now time.Time) time.Time {
	loc := t.fields.Location
	byClock := *t.fields
	byClock.Location = time.UTC
	var best time.Time
	for shown := byClock.Next(clock(now, loc).Add(-longestGap)); !shown.IsZero(); shown = byClock.Next(shown) {
		if at := moment(shown, loc); at.After(now) && (best.IsZero() || at.Before(best)) {
			best = at
		}
		if !best.IsZero() && shown.After(clock(best, loc)) {
			break // no time comes earlier than the clock shows it
		}
	}
	return best
}

// clock is what clocks show at a moment, as if it were UTC.
func clock(at time.Time, loc *time.Location) time.Time {
	_, offset := at.In(loc).Zone()
	return at.UTC().Add(time.Duration(offset) * time.Second)
}

// moment is when clocks first show a time. One that they leave out is counted on
// from before they were put forward.
func moment(shown time.Time, loc *time.Location) time.Time {
	near := time.Date(shown.Year(), shown.Month(), shown.Day(), shown.Hour(), shown.Minute(), shown.Second(), 0, loc)
	start, _ := near.ZoneBounds()
	_, offset := near.Zone()
	if !start.IsZero() {
		_, before := start.Add(-time.Second).Zone()
		at := shown.Add(-time.Duration(before) * time.Second)
		leftOut := !at.Before(start) && shown.Before(clock(start, loc))
		if at.Before(start) || leftOut {
			return at
		}
	}
	return shown.Add(-time.Duration(offset) * time.Second) // also of a time that is left out where this offset ends
}

// after is the first of due, due+every, due+2·every … after now.
func after(due, now time.Time, every time.Duration) time.Time {
	if due.After(now) {
		return due
	}
	return now.Add(every - now.Sub(due)%every)
}

// fixedHour tells whether the hours are named, rather than all meant by `*`.
func (t *Times) fixedHour() bool {
	const star = 1 << 63
	return t.fields.Hour&star == 0
}
