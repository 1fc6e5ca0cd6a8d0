// Package schedule computes the times of schedules, in the time zone of each schedule.
//
// Where clocks are put forward, a time that the day does not have comes later by the
// same amount. Where they are put back, a time that the day has twice comes at the
// first; schedules whose hour is `*` come at both. On a machine without time zones,
// those of the program are used.
package schedule

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	_ "time/tzdata" // zones for machines without

	cron "github.com/netresearch/go-cron"
)

// longest is how far ahead a time is looked for.
const longest = 5 * 365 * 24 * time.Hour

// Shortest is the least time between two times of a schedule.
const Shortest = time.Minute

// parser reads five fields and descriptors. As in every cron, if both the day of
// the month and the day of the week are given, a day matches when either does.
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
		return nil, errors.New("the times contain a time zone; put it into time_zone")
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
	return nil, fmt.Errorf("%q is an unsupported schedule", spec)
}

func location(zone string) (*time.Location, error) {
	if own := []string{"local", "localtime", "posixrules"}; slices.Contains(own, strings.ToLower(zone)) {
		return nil, fmt.Errorf("the time zone %s is the server's own; use an IANA name, such as Europe/Berlin", zone)
	}
	loc, err := time.LoadLocation(zone)
	if err != nil {
		return nil, fmt.Errorf("there is no time zone %q; use an IANA name, such as Europe/Berlin", zone)
	}
	return loc, nil
}

// Next returns the first time after now, in UTC; zero when none is left within
// five years. Times of `@every` are counted from the previous time, which is
// due; missed times are skipped.
func (t *Times) Next(due, now time.Time) time.Time {
	if t.every > longest {
		return time.Time{}
	}
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

// named is Next for named hours. It evaluates the fields on the local clock, and finds the
// moment when the clock shows that time.
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

// clock returns the local time at a moment, as if it were UTC.
func clock(at time.Time, loc *time.Location) time.Time {
	_, offset := at.In(loc).Zone()
	return at.UTC().Add(time.Duration(offset) * time.Second)
}

// moment returns when local clocks first show a time. A time that they skip is
// counted from before they were put forward.
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
	return shown.Add(-time.Duration(offset) * time.Second) // also for a skipped time where this offset ends
}

// after returns the first of due, due+every, due+2·every … after now.
func after(due, now time.Time, every time.Duration) time.Time {
	if due.After(now) {
		return due
	}
	return now.Add(every - now.Sub(due)%every)
}

// fixedHour reports whether the hours are named, rather than `*`.
func (t *Times) fixedHour() bool {
	const star = 1 << 63
	return t.fields.Hour&star == 0
}
