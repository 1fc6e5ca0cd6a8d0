// Package state holds what the parts of a worker share: the session with its conversation and
// active turn, the scope of a piece of work, and what a piece of work means for the turn.
package state

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	commonv1 "github.com/fairlead/fairlead/gen/go/fairlead/common/v1"
	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/internal/kit/id"
	"github.com/fairlead/fairlead/services/session/internal/agent"
	"github.com/fairlead/fairlead/services/session/internal/eventlog"
	"github.com/fairlead/fairlead/services/session/internal/guardrail"
	"github.com/fairlead/fairlead/services/session/internal/model"
	"github.com/fairlead/fairlead/services/session/internal/modelview"
	"github.com/fairlead/fairlead/services/session/internal/store"
	"github.com/fairlead/fairlead/services/session/internal/verdict"
)

// Resolved is a model that is ready for requests.
type Resolved struct {
	Model           model.Model
	Name            string // the provider's own name of the model
	Provider        string
	MaxOutputTokens int64
	ThinkingTokens  int64
	ContextTokens   int64 // the longest conversation; 0: not known
	// Temperature and TopP say how the model chooses; nil: the provider's own.
	Temperature, TopP *float64
	// Fallbacks take the model's place, in this order, while it is not available.
	Fallbacks []string
	// Unpriced models have no known price: no budget of costs can bound them.
	Unpriced   bool
	Guardrails guardrail.Rules
	Cost       func(*sessionv1.Usage) int64 // in billionths of a US dollar
	// Dearest returns the most that a token of input and one of output can cost in
	// a request with at most this much input, in billionths of a US dollar.
	Dearest func(inputTokens int64) (input, output float64)
}

// Session is a session that this replica holds. One goroutine changes it; the calls of a step
// and the workspace's preparation read it meanwhile, but not its conversation.
type Session struct {
	Lease  store.Lease
	Store  store.Store
	Log    *eventlog.Log
	Logger *slog.Logger

	Proto  *sessionv1.Session
	Spec   agent.Spec
	Path   []*sessionv1.Message // the conversation, the oldest message first
	Active *Turn                // nil: no turn is active
	// MCPInstructions is what the MCP servers say about the use of their tools, as of the last list of tools.
	MCPInstructions string

	// Resolve finds a model by `provider:model`; empty means the default one.
	Resolve      func(name string) (Resolved, error)
	PeerPatience time.Duration // how long a turn waits for tools and sandbox when they are away
	AnswerTTL    time.Duration // how long a call waits for an answer; 0: for ever

	Claims   int         // since the last progress
	Draining atomic.Bool // stop before the next step

	loaded  bool // Path is loaded
	suspect atomic.Bool
	place   atomic.Pointer[store.Place]
}

// Suspect reports whether the turn may still be what crashed its holders.
func (s *Session) Suspect() bool { return s.suspect.Load() }

// SetSuspect sets whether the turn may be what crashed its holders.
func (s *Session) SetSuspect(suspect bool) { s.suspect.Store(suspect) }

// RecordProgress notes that the turn has made progress: claims are counted anew.
func (s *Session) RecordProgress() {
	s.Claims = 0
	s.suspect.Store(false)
}

// LoadPath reads the conversation, once.
func (s *Session) LoadPath(ctx context.Context) error {
	if s.loaded {
		return nil
	}
	path, err := s.Store.ListMessages(ctx, s.Lease.Key, "", "", 0)
	if err != nil {
		return fmt.Errorf("load the conversation of session %s: %w", s.Lease.Session, err)
	}
	s.Path, s.loaded = append(s.Path, path...), true
	return nil
}

// LoadTurn reads a turn that is not the active one.
func (s *Session) LoadTurn(ctx context.Context, id string) (*Turn, error) {
	row, err := s.Store.LoadTurn(ctx, s.Lease, id)
	if err != nil {
		return nil, fmt.Errorf("load turn %s of session %s: %w", id, s.Lease.Session, err)
	}
	return NewTurn(row.ID, row.Turn, row.Run)
}

// Place returns the workspace's place. Concurrent calls read it.
func (s *Session) Place() store.Place {
	if p := s.place.Load(); p != nil {
		return *p
	}
	return store.Place{}
}

// SetPlace sets the workspace's place.
func (s *Session) SetPlace(p store.Place) { s.place.Store(&p) }

// ReplacePlace sets the workspace's place if it is still was.
func (s *Session) ReplacePlace(was, p store.Place) {
	if now := s.place.Load(); now != nil && *now == was {
		s.place.CompareAndSwap(now, &p)
	}
}

// NodeName returns the node that requests to the sandbox go to.
func (s *Session) NodeName() string { return s.Place().Node }

// CallRef returns the reference under which a call is made.
func (s *Session) CallRef(callID string) *commonv1.CallRef {
	p := s.Place()
	ref := &commonv1.CallRef{Session: s.WorkspaceSession(), Epoch: s.Lease.Epoch, CallId: callID, Node: p.Node, WorkspaceGeneration: p.Generation}
	if s.IsSubagent() {
		ref.Holder = "sessions/" + s.Lease.Session
	}
	return ref
}

// IsSubagent reports whether a subagent works in the session. It works in the workspace of its root.
func (s *Session) IsSubagent() bool { return s.Proto.GetParentCall() != nil }

// WorkspaceSession returns the session whose workspace this one uses, as `sessions/{session}`.
func (s *Session) WorkspaceSession() string {
	return cmp.Or(s.Proto.GetParentCall().GetRoot(), "sessions/"+s.Lease.Session)
}

// WorkspaceKey returns the key of WorkspaceSession.
func (s *Session) WorkspaceKey() store.Key {
	return store.Key{Tenant: s.Lease.Tenant, Session: strings.TrimPrefix(s.WorkspaceSession(), "sessions/")}
}

// Name returns a full resource name below the session.
func (s *Session) Name(collection, id string) string {
	return "sessions/" + s.Lease.Session + "/" + collection + "/" + id
}

// Event makes an event one of a step of the active turn; step 0 is the turn itself.
func (s *Session) Event(step int32, e *sessionv1.Event) *sessionv1.Event {
	e.Turn, e.Step = s.Active.Proto.Name, step
	return e
}

// StepEvent makes an event one of the active turn's current step.
func (s *Session) StepEvent(e *sessionv1.Event) *sessionv1.Event { return s.Event(s.Active.Step(), e) }

// FinishedCall returns the event of the end of a call.
func (s *Session) FinishedCall(tool string, r *sessionv1.ToolResult, took time.Duration) *sessionv1.Event {
	return s.StepEvent(&sessionv1.Event{Body: &sessionv1.Event_ToolCallFinished{ToolCallFinished: &sessionv1.ToolCallFinished{
		CallId: r.CallId, Tool: tool, Outcome: r.Outcome, Content: r.Content, DurationMs: took.Milliseconds(),
	}}})
}

// NewMessage returns a new message of the active turn at the head.
func (s *Session) NewMessage(role sessionv1.Role, step int32, blocks []*sessionv1.Block) *sessionv1.Message {
	m := &sessionv1.Message{
		Name: s.Name("messages", id.New()), Role: role, Blocks: blocks, Step: step,
		Turn: s.Active.Proto.Name, CreateTime: Now(),
	}
	if len(s.Path) > 0 {
		m.Parent = s.Path[len(s.Path)-1].Name
	} else if s.Proto.Head != "" {
		m.Parent = s.Proto.Head
	}
	return m
}

// AddMessage adds a message to a write and moves the head to it.
func (s *Session) AddMessage(write *store.Write, m *sessionv1.Message) {
	head := LastSegment(m.Name)
	write.Messages = append(write.Messages, m)
	write.Head = &head
	s.Path = append(s.Path, m)
	s.Proto.Head = m.Name
}

// CutPath keeps the first n messages of the conversation, moves the head to the last of them in
// a write, and returns the messages that are no longer on the path.
func (s *Session) CutPath(write *store.Write, n int) []*sessionv1.Message {
	undone := slices.Clone(s.Path[n:])
	s.Path = s.Path[:n:n] // a message that joins the path later must not overwrite the undone ones
	s.Proto.Head = ""
	if n > 0 {
		s.Proto.Head = s.Path[n-1].Name
	}
	head := LastSegment(s.Proto.Head)
	write.Head = &head
	return undone
}

// Last returns the last message of the conversation that is not a summary, or nil.
func (s *Session) Last() *sessionv1.Message {
	for i := len(s.Path) - 1; i >= 0; i-- {
		if s.Path[i].Compaction == nil {
			return s.Path[i]
		}
	}
	return nil
}

// Calling returns the message whose calls the active turn makes: the last one of the conversation.
// For a turn that is a call it returns a message with this call, which is not in the conversation.
func (s *Session) Calling() *sessionv1.Message {
	if s.Active == nil || !s.Active.IsCall() {
		return s.Last()
	}
	return &sessionv1.Message{
		Name: s.Active.Proto.Name, Parent: s.Proto.Head, Role: sessionv1.Role_ROLE_ASSISTANT, Turn: s.Active.Proto.Name,
		Blocks: []*sessionv1.Block{{Kind: &sessionv1.Block_ToolUse{ToolUse: s.Active.Proto.Call}}},
	}
}

// TurnMessages returns the messages since the active turn began, including its first one and
// those of every author.
func (s *Session) TurnMessages() []*sessionv1.Message {
	for i := range s.Path {
		if s.Path[i].Turn == s.Active.Proto.Name {
			return s.Path[i:]
		}
	}
	return nil
}

// ToolName returns the tool of a call that the active turn makes, or "" if there is no such call.
func (s *Session) ToolName(callID string) string {
	for _, u := range ToolUses(s.Calling()) {
		if u.CallId == callID {
			return u.Tool
		}
	}
	return ""
}

// CallOpen reports whether a call that the active turn makes has no result yet.
func (s *Session) CallOpen(callID string) bool {
	return !s.Active.HasResult(callID) && s.ToolName(callID) != ""
}

// IsFinish reports whether a call is of the session's own tool, which tools does not know.
func (s *Session) IsFinish(u *sessionv1.ToolUse) bool {
	return u.Tool == verdict.Tool && s.Spec.Finishes() && !s.Active.IsCall()
}

// options returns the options of the active turn; nil without one.
func (s *Session) options() *sessionv1.TurnOptions {
	if s.Active == nil {
		return nil
	}
	return s.Active.Request.GetOptions()
}

// Filters returns the rules that narrow the profile of the agent.
func (s *Session) Filters() []*commonv1.PermissionRules {
	return s.Spec.Filters(s.Proto.GetPermissions())
}

// ResolveModel finds the model of the active turn: its own, or else the agent's.
func (s *Session) ResolveModel() (Resolved, error) {
	return s.ResolveOther(cmp.Or(s.options().GetModel(), s.Spec.Model))
}

// ResolveOther finds another model for the active turn.
func (s *Session) ResolveOther(name string) (Resolved, error) {
	r, err := s.Resolve(name)
	if o := s.options(); o != nil && o.ThinkingTokens != nil {
		r.ThinkingTokens = min(*o.ThinkingTokens, r.ThinkingTokens)
	}
	return r, err
}

// ModelName returns the name of the session's model, as `provider:model`.
func (s *Session) ModelName() string {
	r, err := s.ResolveModel()
	if err != nil {
		return cmp.Or(s.options().GetModel(), s.Spec.Model)
	}
	return r.Provider + ":" + r.Name
}

// View returns what the session's model sees of a conversation.
func (s *Session) View(path []*sessionv1.Message) []*sessionv1.Message {
	return modelview.Of(path, s.ModelName())
}

// SystemPrompt returns the system prompt of the active turn. What MCP servers say comes last.
func (s *Session) SystemPrompt() string {
	prompt := s.Spec.PromptFor(s.options())
	if s.Spec.Heads() {
		prompt += "\n\n" + verdict.HeaderPrompt
	}
	return strings.TrimSpace(prompt + "\n\n" + s.MCPInstructions)
}

// Header splits a message's text into the verdict in its header, if that is valid, and the text
// for people. The message itself keeps the header: the model gets back what it wrote.
func (s *Session) Header(m *sessionv1.Message) (*verdict.Verdict, string) {
	var v *verdict.Verdict
	var b strings.Builder
	first := s.Spec.Heads() && m.Role == sessionv1.Role_ROLE_ASSISTANT
	for _, block := range m.Blocks {
		t := block.GetContent().GetText()
		if t == nil {
			continue
		}
		text := t.Text
		if first {
			v, text = verdict.Split(text)
			first = false
		}
		b.WriteString(text)
	}
	return v, b.String()
}

// AwaitAnswer stores that a call of the active turn waits for an answer, and until when.
func (s *Session) AwaitAnswer(write *store.Write, p store.PendingCall) {
	p.TurnID, p.User = s.Active.ID, strings.TrimPrefix(s.Proto.User, "users/")
	write.Wait = append(write.Wait, p)
	if s.AnswerTTL > 0 {
		write.Jobs = append(write.Jobs, store.ExpireJob(s.Lease.Key, p.CallID, s.AnswerTTL))
	}
}
