package host

import (
	"testing"
	"time"
)

func TestADatabaseWaitOfOneServiceHoldsForBoth(t *testing.T) {
	usual := Defaults("d").Tools.DatabaseWait
	for name, c := range map[string]struct{ session, tools, wantSession, wantTools time.Duration }{
		"none":    {usual, usual, usual, usual},
		"session": {3 * time.Second, usual, 3 * time.Second, 3 * time.Second},
		"tools":   {usual, 0, 0, 0},
		"both":    {3 * time.Second, 5 * time.Second, 3 * time.Second, 5 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			conf := Defaults(t.TempDir())
			conf.Session.DatabaseWait, conf.Tools.DatabaseWait = c.session, c.tools
			if err := conf.place(); err != nil {
				t.Fatal(err)
			}
			if conf.Session.DatabaseWait != c.wantSession || conf.Tools.DatabaseWait != c.wantTools {
				t.Errorf("session waits %v and tools %v", conf.Session.DatabaseWait, conf.Tools.DatabaseWait)
			}
		})
	}
}
