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
	bytes   int
	deleted int64
}

func (f *filling) Start(_ context.Context, c Command) (Process, error) {
	if err := os.WriteFile(filepath.Join(c.Sandbox.Workspace, "full"), make([]byte, f.bytes), 0o600); err != nil {
		return nil, err
	}
	p := &stuck{deleted: f.deleted, over: make(chan struct{})}
	p.exit.Signal, p.out, p.err = 9, io.NopCloser(strings.NewReader("")), io.NopCloser(strings.NewReader(""))
	return p, nil
}

type stuck struct {
	ended
	deleted int64
	kill    sync.Once
	over    chan struct{}
}

func (p *stuck) Deleted() int64         { return p.deleted }
func (p *stuck) Kill()                  { p.kill.Do(func() { close(p.over) }) }
func (p *stuck) Ended() <-chan struct{} { return p.over }

// What the service runs in a session's sandbox runs what the workspace's files say: it takes no
// more of the disk than a command may.
func TestWhatRunsInsideIsEndedWhenItFillsTheWorkspace(t *testing.T) {
	for name, f := range map[string]*filling{"files": {bytes: 2 << 20}, "deleted files": {deleted: 2 << 20}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n := openNode(t, options(t, f))
			ensure(t, n, Key{"t", "s"})
			var out bytes.Buffer
			o, err := n.RunInside(t.Context(), testCall("a"), 0, Task{Argv: []string{"x"}, Timeout: 5 * time.Second, Stdout: &out})
			if err != nil || o.Reason != WorkspaceLimit {
				t.Errorf("%+v, %v", o, err)
			}
		})
	}
}
