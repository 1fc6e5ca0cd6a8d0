package mcp

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"golang.org/x/time/rate"

	"github.com/fairlead/fairlead/services/tools/internal/tool"
)

const (
	// progressBurst is how many reports of a call pass at once, and progressPause the time
	// after which one more may.
	progressBurst = 20
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

	limit *rate.Limiter
	last  string // a report that came too soon after others; "": none
	done  float64
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
	c.done, c.limit = -1, rate.NewLimiter(rate.Every(progressPause), progressBurst)
	p.calls[token] = c
	return token, func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		delete(p.calls, token)
		if c.last != "" {
			c.out.Progress(c.last)
		}
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

// see takes the reports and the log among a server's messages, in the order in which they come: the SDK hands a call's
// result on while its last reports are still waiting.
func (p *progresses) see(message []byte) {
	const progress, log = "notifications/progress", "notifications/message"
	if !bytes.Contains(message, []byte(progress)) && !bytes.Contains(message, []byte(log)) {
		return
	}
	var n struct {
		Method string
		Params json.RawMessage
	}
	if json.Unmarshal(message, &n) != nil {
		return
	}
	switch n.Method {
	case progress:
		var params *mcp.ProgressNotificationParams
		if json.Unmarshal(n.Params, &params) == nil {
			p.report(params)
		}
	case log:
		var params struct{ Data json.RawMessage }
		if json.Unmarshal(n.Params, &params) == nil {
			p.log(params.Data)
		}
	}
}

// report passes a report on, unless it goes back. Of a flood, some pass, and the last one.
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
	if c.last = text(n); c.limit.Allow() {
		c.out.Progress(c.last)
		c.last = ""
	}
}

// logLevel is the least level of a server's messages that are shown.
const logLevel = "info"

// hear asks a server of an older protocol for its messages; requests of newer ones name the level themselves.
func (l *link) hear(session *mcp.ClientSession) error {
	init := session.InitializeResult()
	if init == nil || init.Capabilities == nil || init.Capabilities.Logging == nil || init.ProtocolVersion > legacyVersion { //nolint:staticcheck // older revisions have it
		return nil
	}
	ctx, cancel := context.WithTimeout(l.ctx, l.pool.Start)
	defer cancel()
	err := session.SetLoggingLevel(ctx, &mcp.SetLoggingLevelParams{Level: logLevel}) //nolint:staticcheck // as above
	if answer := (*jsonrpc.Error)(nil); errors.As(err, &answer) {
		return nil // it goes without
	}
	return err
}

// log passes a server's message on to the call that it is about: the only one that runs.
func (p *progresses) log(data json.RawMessage) {
	c := p.only()
	if c == nil {
		return
	}
	var said string
	if json.Unmarshal(data, &said) != nil {
		said = string(data)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if said = strings.TrimSpace(valid(said)); said != "" && c.limit.Allow() {
		c.out.Progress(cut(said, maxProgress))
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
