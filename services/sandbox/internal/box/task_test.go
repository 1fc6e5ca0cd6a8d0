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

	"github.com/fairlead/fairlead/services/sandbox/internal/held"
)

// filling is a runner whose commands write to the workspace and go on until they are killed.
type filling struct {
	fake
	bytes  int
	holds  held.Sum
	weight int64
}

func (f *filling) Start(_ context.Context, c Command) (Process, error) {
	if err := os.WriteFile(filepath.Join(c.Sandbox.Workspace, "full"), make([]byte, f.bytes), 0o600); err != nil {
		return nil, err
	}
	p := &stuck{holds: f.holds, weight: f.weight, over: make(chan struct{})}
	p.exit.Signal, p.out, p.err = 9, io.NopCloser(strings.NewReader("")), io.NopCloser(strings.NewReader(""))
	return p, nil
}

type stuck struct {
	ended
	holds  held.Sum
	weight int64
	kill   sync.Once
	over   chan struct{}
}

func (p *stuck) Held() held.Sum         { return p.holds }
func (p *stuck) Weigh() func() int64    { return func() int64 { return p.weight } }
func (p *stuck) Kill()                  { p.kill.Do(func() { close(p.over) }) }
func (p *stuck) Ended() <-chan struct{} { return p.over }

// What the service runs in a session's sandbox runs what the workspace's files say: it takes no
// more of the disk than a command may, and no more terminals of the machine.
func TestWhatRunsInsideIsEndedWhenItTakesTooMuch(t *testing.T) {
	for name, tc := range map[string]struct {
		filling

		want Reason
	}{
		"files":         {filling{bytes: 2 << 20}, WorkspaceLimit},
		"deleted files": {filling{holds: held.Sum{Deleted: 2 << 20}}, WorkspaceLimit},
		"files that nobody sees, of who wrote much":    {filling{holds: held.Sum{Unsure: 100, Written: 2 << 20}}, WorkspaceLimit},
		"files that nobody sees, of who wrote little":  {filling{holds: held.Sum{Unsure: 100, Written: 1 << 10}}, TimedOut},
		"files that nobody sees, of who wrote no more": {filling{bytes: 700 << 10, holds: held.Sum{Unsure: 100, Written: 700 << 10}}, TimedOut},
		"terminals":           {filling{holds: held.Sum{Terminals: MaxTerminals + 1}}, TerminalLimit},
		"memory":              {filling{weight: 2}, OutOfMemory},
		"no more than it may": {filling{bytes: 1 << 10, weight: 1, holds: held.Sum{Deleted: 1 << 10, Terminals: MaxTerminals}}, TimedOut},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n := openNode(t, options(t, &tc.filling))
			ensure(t, n, Key{"t", "s"})
			var out bytes.Buffer
			o, err := n.RunInside(t.Context(), testCall("a"), 0, Task{Argv: []string{"x"}, Timeout: time.Second, Stdout: &out})
			if err != nil || o.Reason != tc.want {
				t.Errorf("%+v, %v", o, err)
			}
		})
	}
}

// What the session has is no file without a name of who runs beside it.
func TestWhatRunsBesideIsNotEndedForWhatTheSessionHas(t *testing.T) {
	for written, want := range map[int64]Reason{1 << 10: TimedOut, 2 << 20: WorkspaceLimit} {
		n := openNode(t, options(t, &filling{bytes: 1 << 10, holds: held.Sum{Unsure: 100, Written: written}}))
		ensure(t, n, Key{"t", "s"})
		s, leave, err := n.enter(Key{"t", "s"})
		if err != nil {
			t.Fatal(err)
		}
		defer leave()
		if err := os.WriteFile(s.path("workspace", "large"), make([]byte, 700<<10), 0o600); err != nil {
			t.Fatal(err)
		}
		s.usage.forget()
		b, err := n.Beside(t.Context(), testCall("a"), 0, "", false)
		if err != nil {
			t.Fatal(err)
		}
		defer b.Close()
		if o, err := b.Run(Task{Argv: []string{"x"}, Timeout: time.Second}); err != nil || o.Reason != want {
			t.Errorf("of who wrote %d bytes: %+v, %v", written, o, err)
		}
	}
}
