package box

import (
	"bytes"
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// filling is a runner whose commands write to the workspace and go on until they are killed.
type filling struct {
	fake
	bytes     int
	terminals int
}

func (f *filling) Start(_ context.Context, c Command) (Process, error) {
	if err := os.WriteFile(filepath.Join(c.Sandbox.Workspace, "full"), make([]byte, f.bytes), 0o600); err != nil {
		return nil, err
	}
	p := &stuck{terminals: f.terminals, over: make(chan struct{})}
	p.exit.Signal, p.out, p.err = 9, io.NopCloser(strings.NewReader("")), io.NopCloser(strings.NewReader(""))
	return p, nil
}

type stuck struct {
	ended
	terminals int
	kill      sync.Once
	over      chan struct{}
}

func (p *stuck) Terminals() int         { return p.terminals }
func (p *stuck) Kill()                  { p.kill.Do(func() { close(p.over) }) }
func (p *stuck) Ended() <-chan struct{} { return p.over }

// What the service runs in a session's sandbox runs what the workspace's files say: it takes no
// more of the disk than a command may, and no more terminals of the machine.
func TestWhatRunsInsideIsEndedWhenItTakesTooMuch(t *testing.T) {
	for name, tc := range map[string]struct {
		filling

		want Reason
	}{
		"files":               {filling{bytes: 2 << 20}, WorkspaceLimit},
		"terminals":           {filling{terminals: MaxTerminals + 1}, TerminalLimit},
		"no more than it may": {filling{bytes: 1 << 10, terminals: MaxTerminals}, TimedOut},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n := openNode(t, options(t, &tc.filling))
			ensure(t, n, Key{"t", "s"})
			var out bytes.Buffer
			o, err := n.RunInside(t.Context(), testCall("a"), Task{Argv: []string{"x"}, Timeout: time.Second, Stdout: &out})
			if err != nil || o.Reason != tc.want {
				t.Errorf("%+v, %v", o, err)
			}
		})
	}
}
