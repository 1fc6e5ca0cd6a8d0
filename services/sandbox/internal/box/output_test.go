package box

import (
	"testing"
	"testing/synctest"
	"time"
)

func TestOutputIsInBulkWhileMuchComes(t *testing.T) {
	for name, c := range map[string]struct {
		bytes int
		every time.Duration
		want  bool
	}{
		"a line now and then":                    {100, 50 * time.Millisecond, false},
		"many short lines":                       {100, 10 * time.Microsecond, false},
		"a large piece now and then":             {4 << 20, time.Second, false},
		"as much as a pipe takes, all the time":  {64 << 10, 100 * time.Microsecond, true},
		"short pieces, as many as a disk writes": {8 << 10, 20 * time.Microsecond, true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var p pace
				got := false
				for begun := time.Now(); time.Since(begun) < 100*time.Millisecond+3*c.every; <-time.After(c.every) {
					got = p.quick(c.bytes)
				}
				if got != c.want {
					t.Errorf("in bulk: %v", got)
				}
			})
		})
	}
}
