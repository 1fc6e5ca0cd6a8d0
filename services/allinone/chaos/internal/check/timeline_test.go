package check

import (
	"testing"
	"time"

	"github.com/fairlead/fairlead/services/allinone/chaos/internal/record"
)

func TestATimelineTellsWhenFaultsWereActive(t *testing.T) {
	at := func(seconds int) time.Time { return time.Unix(1000, 0).Add(time.Duration(seconds) * time.Second) }
	killed := record.Fault{Service: record.SandboxService, Kind: record.Kill, Begin: at(10), End: at(20)}
	open := record.Fault{Service: record.SessionService, Kind: record.Kill, Begin: at(30)}
	l := timeline{&record.Run{Faults: []record.Fault{killed, open}, End: at(60)}, time.Second}
	for _, c := range []struct {
		name     string
		got, yes bool
	}{
		{"a fault that lasts in the span", l.lasted(killed, at(15), at(16)), true},
		{"a fault that was over, within the slack", l.lasted(killed, at(21), at(25)), true},
		{"a fault that was over", l.lasted(killed, at(22), at(25)), false},
		{"a fault without an end lasts to the run's end", l.lasted(open, at(50), at(55)), true},
		{"a sandbox that died in the span", l.died(at(5), at(15)), true},
		{"a sandbox that was away before", l.died(at(15), at(25)), false},
	} {
		if c.got != c.yes {
			t.Errorf("%s: %v", c.name, c.got)
		}
	}
	if end, disturbed := l.disturbed(killed, at(40), 0); !disturbed || !end.Equal(at(40)) {
		t.Errorf("beside a fault that was not over: %v, %v", end, disturbed)
	}
	if _, disturbed := l.disturbed(killed, at(25), 0); disturbed {
		t.Error("a fault that began later disturbs")
	}
}
