// Package flag switches turns while the server runs, by OpenFeature flags from a file in flagd's format. The
// file is read again when it changes. A file that cannot hold changes nothing: the last good one goes on.
package flag

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"sync/atomic"
	"time"

	"github.com/open-feature/go-sdk/openfeature"
	"github.com/open-feature/go-sdk/openfeature/isolated"
	"google.golang.org/protobuf/types/known/timestamppb"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/session/internal/agent"
)

// The flags that are read.
const (
	// Runtime says what drives a turn: a runtime's name, or AgentsOwn.
	Runtime = "runtime"
	// KeepAlive lets a turn go on with a CLI of the runtime claude-code that runs already, and leave
	// its own one running.
	KeepAlive = "claude-code-keep-alive"
)

// AgentsOwn is the value of Runtime that leaves the decision to the agent.
const AgentsOwn = "agent"

const (
	// readEvery is how often the file is read. Not every file system tells of changes, and a file that is
	// mounted into a container changes by a link far above it.
	readEvery = time.Second
	maxBytes  = 1 << 20
)

// Config is the operator's.
type Config struct {
	File string `key:"file" help:"a JSON file in flagd's format with the flags runtime and claude-code-keep-alive, which switch the turns of tenants, users, agents and shares of sessions while the server runs; it is read again when it changes, and a faulty one changes nothing; empty: no flags"`
}

// Subject is the turn for which flags decide.
type Subject struct {
	Tenant, User, Agent, Session string
	Runtime                      string // the agent's own
}

// Decision is what the flags decide.
type Decision struct {
	Runtime string
	// Alone says that the turn neither uses a CLI that runs already nor leaves one running.
	Alone bool
	Flags []*sessionv1.FlagDecision
}

// Flags decides by the newest good state of the file. A nil one leaves everything to the agents.
type Flags struct {
	config   Config
	runtimes []string
	log      *slog.Logger
	api      *openfeature.EvaluationAPI
	client   *openfeature.Client
	state    atomic.Pointer[state]
	seen     []byte // the file as it was read last; nil: it could not be read
	failure  string // of the last read
}

// state is what GetCapabilities reports.
type state struct {
	document *document
	read     time.Time
	problem  string
}

// Open reads the file. It returns nil without one. The runtimes are those that a turn can have.
func Open(ctx context.Context, c Config, runtimes []string, log *slog.Logger) (*Flags, error) {
	if c.File == "" {
		return nil, nil //nolint:nilnil // most servers have no flags
	}
	f := &Flags{config: c, runtimes: runtimes, log: log, api: isolated.NewAPI()}
	f.state.Store(&state{document: &document{}})
	if err := f.api.SetProviderAndWait(ctx, provider{f}); err != nil {
		return nil, fmt.Errorf("flags: %w", err)
	}
	f.client = f.api.NewClient()
	f.refresh(ctx)
	if problem := f.state.Load().problem; problem != "" {
		return nil, fmt.Errorf("flags.file: %s", problem)
	}
	return f, nil
}

// Run reads the file again until ctx ends.
func (f *Flags) Run(ctx context.Context) error {
	if f == nil {
		return nil
	}
	ticker := time.NewTicker(readEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			f.refresh(ctx)
		case <-ctx.Done():
			return nil
		}
	}
}

// Close ends the flags. No turn begins any more.
func (f *Flags) Close() error {
	if f == nil {
		return nil
	}
	return f.api.Shutdown(context.Background())
}

// refresh reads the file, and takes it if it is good.
func (f *Flags) refresh(ctx context.Context) {
	text, err := read(f.config.File)
	if err == nil && f.seen != nil && bytes.Equal(text, f.seen) {
		return
	}
	f.seen = text
	next := &state{read: time.Now()}
	if err == nil {
		next.document, err = parse(text, f.runtimes)
	}
	if err != nil {
		was := *f.state.Load()
		was.problem = err.Error()
		f.state.Store(&was)
		if f.failure != was.problem {
			f.log.ErrorContext(ctx, "the file of flags cannot be used; the last good flags hold", "file", f.config.File, "error", err)
		}
		f.failure = was.problem
		return
	}
	f.failure = ""
	f.state.Store(next)
	f.log.InfoContext(ctx, "the flags were read", "file", f.config.File, "flags", next.document.names())
	if unknown := next.document.unknown; len(unknown) > 0 {
		f.log.WarnContext(ctx, "the file of flags has flags that this server does not know", "flags", unknown)
	}
}

func read(name string) ([]byte, error) {
	file, err := os.Open(name)
	if err != nil {
		return nil, fmt.Errorf("the file cannot be read: %w", errors.Unwrap(err))
	}
	defer func() { _ = file.Close() }()
	text, err := io.ReadAll(io.LimitReader(file, maxBytes+1))
	if err != nil {
		return nil, fmt.Errorf("the file cannot be read: %w", errors.Unwrap(err))
	}
	if len(text) > maxBytes {
		return nil, fmt.Errorf("the file has more than %d bytes", maxBytes)
	}
	return text, nil
}

// Decide returns what the flags decide for a turn that begins.
func (f *Flags) Decide(ctx context.Context, s Subject) Decision {
	d := Decision{Runtime: s.Runtime}
	if f == nil {
		return d
	}
	about := openfeature.NewEvaluationContext(s.Session, map[string]any{
		"tenant": s.Tenant, "user": s.User, "agent": s.Agent, "session": s.Session, "runtime": s.Runtime,
	})
	document := f.state.Load().document
	if document.flags[Runtime] != nil {
		r, err := f.client.StringValueDetails(ctx, Runtime, AgentsOwn, about)
		d.add(r.EvaluationDetails)
		f.warn(ctx, Runtime, err)
		if r.Value != AgentsOwn {
			d.Runtime = r.Value
		}
	}
	if document.flags[KeepAlive] != nil && d.Runtime == agent.ClaudeCodeCLI {
		r, err := f.client.BooleanValueDetails(ctx, KeepAlive, true, about)
		d.add(r.EvaluationDetails)
		f.warn(ctx, KeepAlive, err)
		d.Alone = !r.Value
	}
	return d
}

func (d *Decision) add(r openfeature.EvaluationDetails) {
	d.Flags = append(d.Flags, &sessionv1.FlagDecision{Flag: r.FlagKey, Variant: r.Variant, Reason: string(r.Reason)})
}

func (f *Flags) warn(ctx context.Context, flag string, err error) {
	if err != nil {
		f.log.WarnContext(ctx, "a flag cannot decide; the agent and the configuration do", "flag", flag, "error", err)
	}
}

// Capabilities describes the flags to clients.
func (f *Flags) Capabilities() *sessionv1.FlagCapabilities {
	if f == nil {
		return nil
	}
	s := f.state.Load()
	c := &sessionv1.FlagCapabilities{Names: s.document.names(), ReadTime: timestamppb.New(s.read)}
	if s.problem != "" {
		c.Problem = s.problem + ". The flags from before hold; the operator mends the file of session.flags.file."
	}
	return c
}
