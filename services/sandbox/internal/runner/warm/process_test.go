package warm

import (
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fairlead/fairlead/services/sandbox/internal/box"
	"github.com/fairlead/fairlead/services/sandbox/internal/initd/wire"
)

// A command that was killed takes its sandbox along unless it ends in time, whether
// anybody waits for it or not.
func TestOnlyACommandThatDoesNotEndTakesItsSandboxAlong(t *testing.T) {
	for name, ends := range map[string]bool{"ended": true, "does not end": false} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				sb := newSandbox(&Runner{}, box.Sandbox{})
				p := &process{
					stdio: &stdio{out: io.NopCloser(strings.NewReader(""))}, sb: sb, pidfd: -1,
					started: make(chan struct{}), ended: make(chan struct{}),
				}
				p.Kill()
				if ends {
					if err := p.hear(wire.Reply{Kind: wire.Exited}, &[]int{}); err != nil {
						t.Fatal(err)
					}
				}
				<-time.After(2 * killTimeout)
				synctest.Wait()
				sb.mu.Lock()
				defer sb.mu.Unlock()
				if sb.doomed == ends {
					t.Errorf("the sandbox is being ended: %v", sb.doomed)
				}
			})
		})
	}
}
