package rpc

import (
	"errors"
	"testing"
)

// The log has a line for each new cause, and none for an address that is another one at every look.
func TestTheLogHasEachCauseOfNotBeingReady(t *testing.T) {
	for name, c := range map[string]struct {
		was, is error
		logged  bool
	}{
		"ready at the start":           {nil, nil, false},
		"not ready at the start":       {nil, errors.New("connection refused"), true},
		"ready again":                  {errors.New("connection refused"), nil, true},
		"the same cause":               {errors.New("connection refused"), errors.New("connection refused"), false},
		"another cause":                {errors.New("connection refused"), errors.New("first record does not look like a TLS handshake"), true},
		"one cause less":               {errors.New("a\nb"), errors.New("a"), true},
		"the same cause, another port": {errors.New("read tcp 127.0.0.1:43210: reset"), errors.New("read tcp 127.0.0.1:5021: reset"), false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := changed(c.was, c.is); got != c.logged {
				t.Errorf("logged: %v", got)
			}
		})
	}
}
