package box

import (
	"context"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fairlead/fairlead/services/sandbox/internal/disk"
)

// whyEnded follows a command that may run for a limit, in each of the ways in which commands are, while a look takes
// its time; and says for which reason it was ended, if it was.
var whyEnded = map[string]func(p *endless, limit time.Duration, look func()) Reason{
	"a command": func(p *endless, limit time.Duration, look func()) Reason {
		e := newExec(&Node{}, "", record{})
		e.process, e.limits.Timeout = p, limit
		e.attend(p, look)
		if e.stopped == nil {
			return ""
		}
		return e.stopped.Reason
	},
	"a task": func(p *endless, limit time.Duration, look func()) Reason {
		p.out, p.err = io.NopCloser(strings.NewReader("")), io.NopCloser(strings.NewReader(""))
		s := newSession(&Node{o: Options{Now: time.Now}, floor: newFloor(nil, nil, time.Now)}, Key{})
		over := func() (string, string) {
			select {
			case <-p.end:
			default:
				look()
			}
			return "", ""
		}
		o := s.await(context.Background(), s.starts(), p, Task{}, Limits{Timeout: limit, FloodBytes: 1}, over)
		if o.Reason == Signaled {
			return ""
		}
		return o.Reason
	},
}

func eachWay(t *testing.T, test func(t *testing.T, p *endless, why func(p *endless, limit time.Duration, look func()) Reason)) {
	for name, why := range whyEnded {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { test(t, &endless{end: make(chan struct{})}, why) })
		})
	}
}

// A look at a workspace with many files may take longer than a command may.
func TestATimeLimitDoesNotWaitForALook(t *testing.T) {
	eachWay(t, func(t *testing.T, p *endless, why func(*endless, time.Duration, func()) Reason) {
		const limit = disk.LookPause + time.Millisecond
		began := time.Now()
		got := why(p, limit, func() {
			select {
			case <-p.end:
			case <-time.After(time.Minute):
			}
		})
		if took := time.Since(began); took != limit || got != TimedOut {
			t.Errorf("after %v it was ended for %q", took, got)
		}
	})
}

func TestWhatEndsInTimeDuringALookHasEndedInTime(t *testing.T) {
	eachWay(t, func(t *testing.T, p *endless, why func(*endless, time.Duration, func()) Reason) {
		time.AfterFunc(400*time.Millisecond, p.Kill) // by itself
		if got := why(p, time.Second, func() { <-time.After(2 * time.Second) }); got != "" {
			t.Errorf("it was ended for %q", got)
		}
	})
}
