// Package claudecode drives turns by the Claude Code CLI.
//
// The CLI runs in the session's sandbox, without a network. A relay beside it carries its standard streams
// and its connections to the model to the session (package launch). So the CLI can reach the session alone.
// It decides what the model is asked: its prompt, its reminders, and when it goes on. All else stays the
// session's: the model call, its retries and budgets, the log, and the tool calls, each with the
// permission, the journal and the id that it has under the native runtime.
//
// The log is the truth, and the CLI's conversation follows it. A CLI that knows the conversation up to what
// is new gets what is new. Any other one is stopped, and a new one begins with a conversation that is
// written from the session's messages. So a turn goes on wherever it is claimed, whatever was lost; and a
// fork, a rewind and a compaction need nothing of their own.
//
// The CLI has the words of the conversation, but no images and no long texts. It has signs in their place,
// for which the session puts the blocks into the request to the model.
package claudecode

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
	"time"

	commonv1 "github.com/fairlead/fairlead/gen/go/fairlead/common/v1"
	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/internal/kit/id"
	"github.com/fairlead/fairlead/services/session/internal/agent"
	"github.com/fairlead/fairlead/services/session/internal/claudecode/relaytree"
	"github.com/fairlead/fairlead/services/session/internal/model"
	"github.com/fairlead/fairlead/services/session/internal/store"
	"github.com/fairlead/fairlead/services/session/internal/turn/state"
	"github.com/fairlead/fairlead/services/session/internal/turn/step"
)

// Config is the operator's.
type Config struct {
	Program   string        `key:"program" help:"path of the Claude Code program (2.1.250 or newer) in sandboxes; the operator installs it and shows it there, as with sandbox.read-only-paths; empty: agents with the runtime claude-code cannot work"`
	KeepAlive time.Duration `key:"keep-alive" help:"how long the program runs on after a step or a turn, waiting for the next one; 0: until its place is needed or the server ends"`
	Processes int           `key:"processes" help:"the most programs that a replica runs at the same time; the one that has waited for longest makes room, and a further turn waits"`
}

// Defaults returns the default configuration.
func Defaults() Config { return Config{KeepAlive: 5 * time.Minute, Processes: 8} }

// Validate reports all faults.
func (c Config) Validate() error {
	switch {
	case c.KeepAlive < 0:
		return fmt.Errorf("keep-alive: %v is less than 0", c.KeepAlive)
	case c.Program != "" && c.Processes < 1:
		return fmt.Errorf("processes: %d is less than 1", c.Processes)
	default:
		return nil
	}
}

// Sandbox runs the relay.
type Sandbox interface {
	// Pipe runs a command in the workspace of a call until the pipe is closed. The pipe is the command's
	// standard input and output.
	Pipe(ctx context.Context, call *commonv1.CallRef, argv []string) (io.ReadWriteCloser, error)
}

// Runtime drives the turns of all sessions of a replica.
type Runtime struct {
	config  Config
	sandbox Sandbox
	log     *slog.Logger
	pool    *pool
}

// New returns the runtime. The caller must call Close.
func New(c Config, s Sandbox, log *slog.Logger) *Runtime {
	return &Runtime{config: c, sandbox: s, log: log, pool: newPool(c.Processes, c.KeepAlive)}
}

// Close ends all programs.
func (r *Runtime) Close() { r.pool.close() }

// maxTries bounds how often a step begins a program that fails.
const maxTries = 3

// Compose implements step.Runtime.
func (r *Runtime) Compose(sc state.Scope, _ state.Resolved, request model.Request) (step.Next, state.Outcome, error) {
	v := newView(request)
	for tries := 1; ; tries++ {
		composed, err := r.compose(sc, v)
		if err == nil {
			return step.Next{Request: composed}, state.Outcome{}, nil
		}
		var unusable *UnusableError
		switch {
		case sc.Log.Err() != nil:
			return step.Next{}, state.Outcome{}, sc.Log.Err()
		case sc.WorkerErr() != nil:
			return step.Next{}, state.Outcome{}, sc.WorkerErr()
		case sc.Ended():
			return step.Next{}, state.Stopped(), nil
		case errors.As(err, &unusable):
			r.pool.setUnusable(unusable.Why)
			return step.Next{}, state.Failed(store.Write{}, sessionv1.ErrorReason_ERROR_REASON_RUNTIME_UNAVAILABLE, fmt.Sprintf(
				"The turn's runtime %s cannot be used: %s. Ask the operator to check session.runtimes.%s.program, or use an agent with the runtime %s.",
				agent.ClaudeCodeCLI, unusable.Why, agent.ClaudeCodeCLI, agent.Native)), nil
		case tries == maxTries:
			return step.Next{}, state.Failed(store.Write{}, sessionv1.ErrorReason_ERROR_REASON_RUNTIME_FAILED, fmt.Sprintf(
				"The Claude Code CLI failed %d times in a row: %v. The conversation is kept; send the message again, or use an agent with the runtime %s.", tries, err, agent.Native)), nil
		}
		sc.Logger.WarnContext(sc, "the Claude Code CLI failed", "session", sc.Lease.Session, "turn", sc.Active.ID, "error", err)
		warning := sc.StepEvent(state.Warning("RUNTIME_RESTARTED", fmt.Sprintf("The Claude Code CLI failed: %v. It is started again with the conversation so far.", err)))
		if err := sc.Append(store.Write{Events: []*sessionv1.Event{warning}}); err != nil {
			return step.Next{}, state.Outcome{}, err
		}
	}
}

// compose gives the CLI what is new, or a new CLI everything, and returns its request to the model.
func (r *Runtime) compose(sc state.Scope, v *view) (_ model.Request, err error) {
	key := keyOf(sc, v)
	c := r.pool.take(sc.Lease.Key)
	// The CLI of an earlier turn has no request of this one.
	left := c != nil && sc.Active.Run.Alone && sc.Active.Step() == 1 && c.pending == nil
	if c != nil && (left || !c.follows(v, key)) {
		r.pool.drop(c)
		c = nil
	}
	if c == nil {
		if c, err = r.start(sc, v, key); err != nil {
			return model.Request{}, err
		}
	} else if err = c.feed(sc, v); err != nil {
		r.pool.drop(c)
		return model.Request{}, err
	}
	composed, err := c.nextRequest(sc, v)
	if err != nil {
		r.pool.drop(c)
		return model.Request{}, err
	}
	r.pool.put(sc.Lease.Key, c)
	return composed, nil
}

// Leave implements step.Runtime. The CLI waits for the session's next turn.
func (r *Runtime) Leave(state.Scope) {}

// Answer implements step.Runtime.
func (r *Runtime) Answer(sc state.Scope, resp *model.Response) {
	c := r.pool.take(sc.Lease.Key)
	if c == nil {
		return // it has failed meanwhile; the next one begins with the answer
	}
	if goesOn := c.take(sc.Active.ID, sc.Active.Step(), resp); !goesOn || sc.Active.Run.Alone && len(c.calls) == 0 {
		r.pool.drop(c)
		return
	}
	r.pool.put(sc.Lease.Key, c)
}

// keyOf identifies what a CLI is started with besides the conversation.
func keyOf(sc state.Scope, v *view) digest {
	var key strings.Builder
	_, _ = fmt.Fprintf(&key, "%q %q %q %t", sc.Lease.Session, v.request.Model, v.request.System, sc.Spec.ClaudeCode.PresetPrompt)
	for _, t := range v.request.Tools {
		_, _ = fmt.Fprintf(&key, "\n%q %q %q", t.Name, t.Description, t.InputSchema)
	}
	return digestOf(sessionv1.Role_ROLE_UNSPECIFIED, []*sessionv1.Block{original(key.String())})
}

// start begins a CLI with the conversation.
func (r *Runtime) start(sc state.Scope, v *view, key digest) (*conversation, error) {
	start, say, err := r.command(sc, v)
	if err != nil {
		return nil, err
	}
	if err := r.pool.acquire(sc); err != nil {
		return nil, err
	}
	var pipe io.ReadWriteCloser
	call := sc.CallRef(sc.Active.ID + ".cli-" + id.New())
	err = sc.Patiently(sc.WarnAway("The Claude Code CLI cannot be started now"), func() (err error) {
		// It outlives the turn. The pool ends it.
		pipe, err = r.sandbox.Pipe(context.WithoutCancel(sc), call, []string{relaytree.Path})
		return err
	})
	if err != nil {
		r.pool.release()
		return nil, fmt.Errorf("the sandbox does not run it: %s", state.Explain(err))
	}
	p, err := startProcess(pipe, start, offer(v.request.Tools))
	if err != nil {
		r.pool.release()
		return nil, fmt.Errorf("the CLI cannot be reached: %w", err)
	}
	c := &conversation{p: p, key: key, version: r.pool.setVersion}
	if len(say) > 0 {
		p.rest()
		err = p.say(sc, uuidOf(v.last()[0].GetName()), say)
	}
	if err != nil {
		r.pool.drop(c)
		return nil, err
	}
	return c, nil
}

func offer(tools []model.Tool) []offered {
	all := make([]offered, 0, len(tools))
	for _, t := range tools {
		all = append(all, offered{Name: t.Name, Description: t.Description, InputSchema: t.InputSchema, Annotations: hints{ReadOnly: true}})
	}
	return all
}

// digests returns what identifies the messages of a request.
func digests(messages []*sessionv1.Message) []digest {
	all := make([]digest, 0, len(messages))
	for _, m := range messages {
		all = append(all, digestOf(m.GetRole(), m.GetBlocks()))
	}
	return all
}

// conversation is a CLI with what it knows.
type conversation struct {
	p       *process
	key     digest
	version func(string)
	seen    []digest        // the messages of its last request to the model
	pending *ask            // that request, until it has its answer
	answer  *model.Response // to that request; the session completes its blocks
	calls   []string        // the CLI's ids of the answer's calls, whose results it waits for
	offers  []string        // the tools that it knows
}

// follows reports whether the conversation is what the CLI knows, with or without something new.
func (c *conversation) follows(v *view, key digest) bool {
	select {
	case <-c.p.over:
		return false
	default:
	}
	all, n := digests(v.request.Messages), len(c.seen)
	switch {
	case c.key != key:
		return false
	case c.pending != nil:
		return slices.Equal(all, c.seen)
	case c.answer == nil || len(all) < n+2 || !slices.Equal(all[:n], c.seen) || all[n] != digestOf(sessionv1.Role_ROLE_ASSISTANT, c.answer.Blocks):
		return false
	}
	fresh := group(v.request.Messages[n+1:])
	if slices.ContainsFunc(fresh, func(m *sessionv1.Message) bool { return m.GetRole() == sessionv1.Role_ROLE_ASSISTANT }) {
		return false
	}
	results, _ := fresh.split()
	var have []string
	for _, r := range results {
		have = append(have, toolUseID(r.GetCallId()))
	}
	return len(results) == len(state.ToolUsesOf(c.answer.Blocks)) && !slices.ContainsFunc(c.calls, func(id string) bool { return !slices.Contains(have, id) })
}

// feed gives the CLI what is new.
func (c *conversation) feed(ctx context.Context, v *view) error {
	if c.pending != nil {
		return nil
	}
	fresh := group(v.request.Messages[len(c.seen)+1:])
	results, others := fresh.split()
	var rest []block
	for _, at := range others {
		if b, ok := person(at.m, at.i); ok {
			rest = append(rest, b)
		}
	}
	if len(results) == 0 {
		return c.p.say(ctx, uuidOf(fresh[0].GetName()), rest)
	}
	for i, r := range results {
		var more []block
		if i == len(results)-1 {
			more = rest // the session puts them behind the results again
		}
		if id := toolUseID(r.GetCallId()); slices.Contains(c.calls, id) {
			comes := c.p.resultOf(id)
			if comes == nil {
				return fmt.Errorf("the CLI makes more than %d calls", maxCalls)
			}
			comes <- outline(r, more...)
		}
	}
	return nil
}

// nextRequest returns the CLI's request to the model.
func (c *conversation) nextRequest(ctx context.Context, v *view) (model.Request, error) {
	a := c.pending
	if a == nil {
		var err error
		if a, err = c.p.next(ctx); err != nil {
			return model.Request{}, err
		}
	}
	composed, b, err := v.compose(a.body)
	if err != nil {
		return model.Request{}, err
	}
	c.offers = nil
	for _, t := range b.Tools {
		c.offers = append(c.offers, t.Name)
	}
	c.p.mu.Lock()
	c.version(c.p.version)
	c.p.mu.Unlock()
	c.p.forget()
	c.pending, c.answer, c.calls, c.seen = a, nil, nil, digests(v.request.Messages)
	return composed, nil
}

// take gives the CLI the answer, and reports whether the CLI goes on as the session does.
func (c *conversation) take(turn string, step int32, resp *model.Response) bool {
	if c.pending == nil {
		return false
	}
	blocks := assistant(resp.Blocks, turn, step, func(n int, _ *sessionv1.ToolUse) string { return toolUseID(state.CallID(turn, step, n)) })
	for _, b := range blocks {
		if b.Type == "tool_use" && slices.Contains(c.offers, b.Name) {
			c.calls = append(c.calls, b.ID)
		}
	}
	if len(blocks) == 0 {
		return false
	}
	var asked body
	if err := asked.read(c.pending.body); err != nil {
		return false
	}
	c.pending.reply <- streamed(fmt.Sprintf("msg_%s_%d", notInIDs.ReplaceAllString(turn, "_"), step), asked.Model, blocks, resp)
	c.pending, c.answer = nil, resp
	switch resp.StopReason {
	case "end_turn", "tool_use", "stop_sequence":
		return true
	default:
		return false // the CLI would go on by itself, or repeat its request
	}
}
