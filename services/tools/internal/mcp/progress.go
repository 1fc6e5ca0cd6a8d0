package mcp

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/fairlead/fairlead/services/tools/internal/tool"
)

const (
	// progressPause is the least time between two reports of a call's progress.
	progressPause = 250 * time.Millisecond
	// maxProgress bounds the text of a report.
	maxProgress = 1000
)

// progresses pass what servers report and ask about running calls to the calls. The zero
// value is ready.
type progresses struct {
	mu    sync.Mutex
	last  int64
	calls map[string]*progress
}

// progress is that of one call.
type progress struct {
	ctx   context.Context //nolint:containedctx // of the call, for questions of the server
	out   tool.Sink
	asked atomic.Int64
	// pause stops the clock of the call, and goOn starts it anew.
	pause, goOn func()

	at   time.Time
	done float64
}

// follow returns the token of a call, and ends its reports with done.
func (p *progresses) follow(c *progress) (token string, done func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.last++
	token = "call-" + strconv.FormatInt(p.last, 10)
	if p.calls == nil {
		p.calls = map[string]*progress{}
	}
	c.done = -1
	p.calls[token] = c
	return token, func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		delete(p.calls, token)
	}
}

// only returns the call that runs, if it is the only one.
func (p *progresses) only() *progress {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range p.calls {
		if len(p.calls) == 1 {
			return c
		}
	}
	return nil
}

// none reports whether no call runs.
func (p *progresses) none() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.calls) == 0
}

// report passes a report on, unless it comes too soon after another, or goes back.
func (p *progresses) report(n *mcp.ProgressNotificationParams) {
	if n == nil {
		return
	}
	token, _ := n.ProgressToken.(string)
	p.mu.Lock()
	defer p.mu.Unlock()
	c := p.calls[token]
	if c == nil || n.Progress <= c.done {
		return
	}
	c.done = n.Progress
	if now := time.Now(); now.Sub(c.at) >= progressPause {
		c.at = now
		c.out.Progress(text(n))
	}
}

func text(n *mcp.ProgressNotificationParams) string {
	switch {
	case n.Message != "":
		return cut(n.Message, maxProgress)
	case n.Total > 0:
		return fmt.Sprintf("%v of %v", n.Progress, n.Total)
	default:
		return fmt.Sprint(n.Progress)
	}
}
