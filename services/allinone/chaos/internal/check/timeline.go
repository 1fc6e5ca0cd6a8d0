package check

import (
	"time"

	"github.com/fairlead/fairlead/services/allinone/chaos/internal/record"
)

// timeline tells when the faults of a run were active.
type timeline struct {
	run   *record.Run
	slack time.Duration // by which clocks and recordings may differ
}

// lasted reports whether a fault began or lasted in a span of time.
func (l timeline) lasted(f record.Fault, from, to time.Time) bool {
	end := f.End
	if end.IsZero() {
		end = l.run.End
	}
	return !f.Begin.After(to.Add(l.slack)) && !end.Before(from.Add(-l.slack))
}

// died reports whether a sandbox died in a span of time. A command that began while it was away was not
// running when it died.
func (l timeline) died(from, to time.Time) bool {
	for _, f := range l.run.Faults {
		if sandboxDies(f) && !f.Begin.After(to.Add(l.slack)) && !f.Begin.Before(from.Add(-l.slack)) {
			return true
		}
	}
	return false
}

// disturbed reports whether another fault was active before a session went on, and when the last one ended.
func (l timeline) disturbed(f record.Fault, until time.Time, index int) (end time.Time, disturbed bool) {
	end = f.Begin
	for i, o := range l.run.Faults {
		if i == index || o.Service == record.Gateway || !o.Begin.Before(until) {
			continue
		}
		if o.End.IsZero() || o.End.After(f.Begin) {
			disturbed = true
			if o.End.IsZero() || o.End.After(until) {
				end = until // it was not over
			} else if o.End.After(end) {
				end = o.End
			}
		}
	}
	return end, disturbed
}
