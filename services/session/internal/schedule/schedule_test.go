package schedule_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fairlead/fairlead/services/session/internal/schedule"
)

func TestNext(t *testing.T) {
	for name, c := range map[string]struct {
		spec, zone, now string
		want            []string
	}{
		"five fields are read in UTC when no zone is given": {
			"30 6 * * *", "", "2026-01-05T06:30:00Z",
			[]string{"2026-01-06T06:30:00Z", "2026-01-07T06:30:00Z"},
		},
		"a zone's offset counts": {
			"30 6 * * *", "Asia/Kolkata", "2026-01-05T00:00:00Z",
			[]string{"2026-01-05T01:00:00Z", "2026-01-06T01:00:00Z"},
		},
		"the hour by the clock stays when summer time begins": {
			"0 9 * * *", "Europe/Berlin", "2026-03-28T00:00:00Z",
			[]string{"2026-03-28T08:00:00Z", "2026-03-29T07:00:00Z", "2026-03-30T07:00:00Z"},
		},
		"a time that the day does not have comes an hour later by the clock": {
			"30 2 * * *", "America/New_York", "2026-03-07T12:00:00Z",
			[]string{"2026-03-08T07:30:00Z", "2026-03-09T06:30:00Z"}, // 03:30 EDT, 02:30 EDT
		},
		"a time that the day has twice comes once, the first time": {
			"30 1 * * *", "America/New_York", "2026-10-31T12:00:00Z",
			[]string{"2026-11-01T05:30:00Z", "2026-11-02T06:30:00Z"},
		},
		"asked between the two, it does not come again": {
			"30 1 * * *", "America/New_York", "2026-11-01T05:45:00Z",
			[]string{"2026-11-02T06:30:00Z"},
		},
		"every half hour comes in both of the repeated hours": {
			"*/30 * * * *", "America/New_York", "2026-11-01T05:00:00Z",
			[]string{"2026-11-01T05:30:00Z", "2026-11-01T06:00:00Z", "2026-11-01T06:30:00Z", "2026-11-01T07:00:00Z"},
		},
		"a zone that is put back by half an hour repeats half an hour": {
			"45 1 * * *", "Australia/Lord_Howe", "2026-04-04T00:00:00Z",
			[]string{"2026-04-04T14:45:00Z", "2026-04-05T15:15:00Z"},
		},
		"a zone that is put forward by half an hour leaves out half an hour": {
			"15 2 * * *", "Australia/Lord_Howe", "2026-10-03T00:00:00Z",
			[]string{"2026-10-03T15:45:00Z", "2026-10-04T15:15:00Z"}, // 02:45, 02:15
		},
		"a zone that is put forward by two hours": {
			"30 1 * * *", "Antarctica/Troll", "2026-03-28T12:00:00Z",
			[]string{"2026-03-29T01:30:00Z", "2026-03-29T23:30:00Z"}, // 03:30, 01:30
		},
		"a day that begins an hour late has its midnight then": {
			"0 0 * * *", "Africa/Cairo", "2026-04-23T12:00:00Z",
			[]string{"2026-04-23T22:00:00Z", "2026-04-24T21:00:00Z"}, // 01:00, 00:00
		},
		"the time of a day that was left out is that of the next day": {
			"0 9 * * *", "Pacific/Apia", "2011-12-29T00:00:00Z",
			[]string{"2011-12-29T19:00:00Z", "2011-12-30T19:00:00Z", "2011-12-31T19:00:00Z"},
		},
		"a day matches by the month or by the week": {
			"0 0 13 * 5", "", "2026-01-01T00:00:00Z",
			[]string{"2026-01-02T00:00:00Z", "2026-01-09T00:00:00Z", "2026-01-13T00:00:00Z"},
		},
		"descriptors are midnights of the zone": {
			"@daily", "Europe/Berlin", "2026-07-01T00:00:00Z",
			[]string{"2026-07-01T22:00:00Z", "2026-07-02T22:00:00Z"},
		},
		"an interval of three centuries has no time": {"@every 2562047h", "", "2026-01-05T00:00:10Z", []string{"0001-01-01T00:00:00Z"}},
		"an interval is counted from the time before": {
			"@every 90m", "", "2026-01-05T00:00:10Z",
			[]string{"2026-01-05T01:30:10Z", "2026-01-05T03:00:10Z"},
		},
		"a leap day is found":                {"0 0 29 2 *", "", "2026-01-01T00:00:00Z", []string{"2028-02-29T00:00:00Z"}},
		"a day that never comes has no time": {"0 0 30 2 *", "", "2026-01-01T00:00:00Z", []string{"0001-01-01T00:00:00Z"}},
	} {
		t.Run(name, func(t *testing.T) {
			times, err := schedule.Parse(c.spec, c.zone)
			if err != nil {
				t.Fatal(err)
			}
			at := instant(t, c.now)
			var got []string
			for range c.want {
				at = times.Next(at, at)
				got = append(got, at.Format(time.RFC3339))
			}
			if d := cmp.Diff(c.want, got); d != "" {
				t.Error(d)
			}
		})
	}
}

func TestMissedTimesAreOne(t *testing.T) {
	for name, c := range map[string]struct{ spec, due, now, want string }{
		"of fields":                                  {"0 * * * *", "2026-01-05T01:00:00Z", "2026-01-05T04:20:00Z", "2026-01-05T05:00:00Z"},
		"of an interval, which keeps its beat":       {"@every 90m", "2026-01-05T01:00:00Z", "2026-01-05T04:20:00Z", "2026-01-05T05:30:00Z"},
		"of an interval, at the very time":           {"@every 90m", "2026-01-05T01:00:00Z", "2026-01-05T02:30:00Z", "2026-01-05T04:00:00Z"},
		"of an interval whose time is still to come": {"@every 90m", "2026-01-05T05:00:00Z", "2026-01-05T04:20:00Z", "2026-01-05T05:00:00Z"},
	} {
		t.Run(name, func(t *testing.T) {
			times, err := schedule.Parse(c.spec, "")
			if err != nil {
				t.Fatal(err)
			}
			if got := times.Next(instant(t, c.due), instant(t, c.now)); !got.Equal(instant(t, c.want)) {
				t.Errorf("next is %v, not %s", got, c.want)
			}
		})
	}
}

func TestParseSaysWhatIsWrong(t *testing.T) {
	for name, c := range map[string]struct{ spec, zone, says string }{
		"too few fields":            {"5 4 * *", "", "5 fields"},
		"seconds":                   {"0 5 4 * * *", "", "5 fields"},
		"an invalid minute":         {"61 * * * *", "", "61"},
		"a word":                    {"noon * * * *", "", "noon"},
		"an unknown descriptor":     {"@fortnightly", "", "@fortnightly"},
		"an interval that is short": {"@every 30s", "", "1m"},
		"an invalid interval":       {"@every soon", "", "soon"},
		"a zone in the times":       {"CRON_TZ=UTC 0 0 * * *", "", "time_zone"},
		"a zone that there is not":  {"0 0 * * *", "Europe/Atlantis", "Europe/Atlantis"},
		"the server's own zone":     {"0 0 * * *", "Local", "IANA"},
		"the server's own file":     {"0 0 * * *", "localtime", "IANA"},
		"its rules":                 {"0 0 * * *", "posixrules", "server's own"},
		"a path in place of a zone": {"0 0 * * *", "../../etc/passwd", "IANA"},
		"nothing but spaces":        {"   ", "", "empty"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := schedule.Parse(c.spec, c.zone)
			if err == nil || !strings.Contains(err.Error(), c.says) {
				t.Errorf("the error %v does not say %q", err, c.says)
			}
		})
	}
}

func instant(t *testing.T, s string) time.Time {
	t.Helper()
	at, err := time.Parse(time.RFC3339, s)
	if err != nil {
		t.Fatal(err)
	}
	return at
}
