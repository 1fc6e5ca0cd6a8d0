package schedule_test

import (
	"archive/zip"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/fairlead/fairlead/services/internal/kit/prove"
	"github.com/fairlead/fairlead/services/session/internal/schedule"
)

// zones are all names of the Go distribution's zone database.
func zones(t *testing.T) (names []string) {
	t.Helper()
	root, err := exec.CommandContext(t.Context(), "go", "env", "GOROOT").Output()
	if err != nil {
		t.Skip("the Go distribution is not here: ", err)
	}
	z, err := zip.OpenReader(filepath.Join(strings.TrimSpace(string(root)), "lib", "time", "zoneinfo.zip"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = z.Close() }()
	for _, f := range z.File {
		if !strings.HasSuffix(f.Name, "/") && f.Name != "Factory" {
			names = append(names, f.Name)
		}
	}
	return names
}

// changes are the moments between two times at which a zone's offset changes.
func changes(loc *time.Location, from, to time.Time) (all []time.Time) {
	for at := from; ; {
		_, end := at.In(loc).ZoneBounds()
		if end.IsZero() || end.After(to) {
			return all
		}
		_, before := end.Add(-time.Second).In(loc).Zone()
		if _, after := end.In(loc).Zone(); before != after {
			all = append(all, end)
		}
		at = end
	}
}

// wall is a time as clocks show it, as if it were UTC.
func wall(at time.Time, loc *time.Location) time.Time {
	l := at.In(loc)
	return time.Date(l.Year(), l.Month(), l.Day(), l.Hour(), l.Minute(), l.Second(), 0, time.UTC)
}

// TestADailyTimeComesOnceADayWhateverClocksDo looks at every change of every zone, with a
// time in the middle of what is left out or repeated.
func TestADailyTimeComesOnceADayWhateverClocksDo(t *testing.T) {
	from, to := instant(t, "1970-01-01T00:00:00Z"), instant(t, "2040-01-01T00:00:00Z")
	for _, zone := range prove.Sample(zones(t), 16) {
		loc, err := time.LoadLocation(zone)
		if err != nil {
			t.Fatal(err)
		}
		for _, change := range changes(loc, from, to) {
			_, before := change.Add(-time.Second).In(loc).Zone()
			_, after := change.In(loc).Zone()
			middle := change.Add(time.Duration(before+after) / 2 * time.Second).Truncate(time.Minute).UTC()
			spec := middle.Format("4 15 * * *")
			times, err := schedule.Parse(strings.ReplaceAll(spec, "04", "4"), zone)
			if err != nil {
				t.Fatal(zone, err)
			}
			checkDays(t, times, loc, zone, spec, change, time.Duration(after-before)*time.Second)
		}
	}
}

// checkDays checks the times around a change: they come in order, from wherever one asks, and each day by
// the clock has one, as much later as clocks were put forward if they do not show it.
func checkDays(t *testing.T, times *schedule.Times, loc *time.Location, zone, spec string, change time.Time, ahead time.Duration) {
	t.Helper()
	begin, end := change.Add(-72*time.Hour), change.Add(72*time.Hour)
	came := map[time.Time]int{}
	var first time.Time
	for at := begin; at.Before(end); {
		next := times.Next(at, at)
		if half := at.Add(next.Sub(at) / 2); !next.After(at) || !times.Next(half, half).Equal(next) {
			t.Fatalf("%s, %q, change at %v: after %v comes %v, and between the two %v", zone, spec, change, at, next, times.Next(half, half))
		}
		if came[wall(next, loc)]++; first.IsZero() {
			first = next
		}
		at = next
	}
	days := 0
	for day := wall(first, loc); day.Before(wall(end, loc).Add(-24 * time.Hour)); day = day.AddDate(0, 0, 1) {
		days++
		if came[day] == 0 && came[day.Add(ahead)] == 0 {
			t.Errorf("%s, %q, change at %v by %v: %v does not come", zone, spec, change, ahead, day)
		}
	}
	for shown, n := range came {
		if n > 1 {
			t.Errorf("%s, %q, change at %v by %v: %v comes %d times", zone, spec, change, ahead, shown, n)
		}
	}
	if len(came) > days+3 {
		t.Errorf("%s, %q, change at %v by %v: %d times in %d days", zone, spec, change, ahead, len(came), days)
	}
}
