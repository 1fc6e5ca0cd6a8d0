// Package submit makes the command of a turn from a message, and puts it into the session's inbox: it checks the message, its
// options and limits, and that the model's context has room. Handlers, schedules and triggers submit by it.
package submit

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	commonv1 "github.com/fairlead/fairlead/gen/go/fairlead/common/v1"
	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/internal/kit/id"
	"github.com/fairlead/fairlead/services/session/internal/agent"
	"github.com/fairlead/fairlead/services/session/internal/blob"
	"github.com/fairlead/fairlead/services/session/internal/budget"
	"github.com/fairlead/fairlead/services/session/internal/directory"
	"github.com/fairlead/fairlead/services/session/internal/limits"
	"github.com/fairlead/fairlead/services/session/internal/placement"
	"github.com/fairlead/fairlead/services/session/internal/refusal"
	"github.com/fairlead/fairlead/services/session/internal/remote"
	"github.com/fairlead/fairlead/services/session/internal/request"
	"github.com/fairlead/fairlead/services/session/internal/store"
	"github.com/fairlead/fairlead/services/session/internal/turn/state"
)

// Limits hold where an agent and a request set none.
type Limits struct {
	MaxSteps        int
	MaxWallTime     time.Duration
	MaxOutputTokens int64
}

// Config is what submitting needs.
type Config struct {
	Store     store.Store
	Directory *directory.Directory
	Tools     *remote.Tools // reports the size of agents' tools
	// Files and Workspaces have the files that messages name. Files is nil if the server keeps no files.
	Files      *blob.Blobs
	Workspaces *placement.Workspaces
	// Inbox puts the command of a turn into an inbox. This replica may take the session.
	Inbox func(ctx context.Context, n store.Submit) (store.Answer, error)
	// Defaults of limits, and their ceilings.
	Defaults, Ceilings Limits
	// Budgets are the operator's.
	Budgets budget.Config
	// Use bounds the turns of tenants and users.
	Use limits.Config
	Log *slog.Logger
}

// Submitter submits messages. It is safe for concurrent use.
type Submitter struct {
	Config
	toolSizes toolSizes
}

// New returns a submitter.
func New(c Config) *Submitter { return &Submitter{Config: c} }

// Origin is what sends a turn, by its name: a schedule, a trigger, or neither.
type Origin struct{ Schedule, Trigger string }

// Message is a message for a session. Its content has all data.
type Message struct {
	// Method is the scope of the request's id.
	Method  string
	Request *sessionv1.CreateTurnRequest
	Origin  Origin
	// After is the sequence number after which the caller will follow the turn.
	After int64
}

// Accept submits a message and returns its turn, or the earlier one of a repeated request.
func (s *Submitter) Accept(ctx context.Context, m Message) (*sessionv1.Turn, error) {
	k := request.Key(ctx, m.Request.Parent)
	session, err := s.Store.GetSession(ctx, k)
	if err != nil {
		return nil, refusal.Store(err, refusal.Subject{Session: m.Request.Parent})
	}
	if err := WithinLog(session, m.After); err != nil {
		return nil, err // the stream would never show the turn or its end
	}
	spec, err := s.Directory.SpecOf(ctx, k.Tenant, session)
	if err != nil {
		return nil, err
	}
	t, command, err := s.Prepare(ctx, m, session, spec)
	if err != nil {
		return nil, err
	}
	return s.Put(ctx, t, command, refusal.Subject{Session: m.Request.Parent, RequestID: m.Request.RequestId})
}

// Put puts a turn's command into the inbox. It returns the turn, or the earlier one of a repeated request.
func (s *Submitter) Put(ctx context.Context, t *sessionv1.Turn, n store.Submit, about refusal.Subject) (*sessionv1.Turn, error) {
	answer, err := s.Inbox(ctx, n)
	if errors.Is(err, store.ErrTurnActive) {
		return nil, refusal.TurnActive(about.Session)
	}
	if err != nil {
		return nil, refusal.Store(err, about)
	}
	if !answer.Replayed {
		return t, nil
	}
	t, err = s.Store.GetTurn(ctx, n.Key, answer.Value)
	return t, refusal.Store(err, about)
}

// Prepare checks a message and returns its turn with the command that makes it.
func (s *Submitter) Prepare(
	ctx context.Context, m Message, session *sessionv1.Session, spec agent.Spec,
) (*sessionv1.Turn, store.Submit, error) {
	r, none := m.Request, store.Submit{}
	k := request.Key(ctx, r.Parent)
	if err := checkClientTools(spec, r); err != nil {
		return nil, none, err
	}
	options := agent.Options(r.Options, session.TurnOptions)
	if err := s.CheckOptions(ctx, spec, options, "options", true); err != nil {
		return nil, none, err
	}
	if err := s.CheckMode(ctx, spec, options, "options"); err != nil {
		return nil, none, err
	}
	accepted := proto.CloneOf(r)
	accepted.Options = options
	if err := s.checkFits(ctx, k, session, spec, accepted); err != nil {
		return nil, none, err
	}
	limits, err := s.TurnLimits(k.Tenant, spec, r.Limits)
	if err != nil {
		return nil, none, err
	}
	t := NewTurn(ctx, session, limits)
	t.Model, t.Schedule, t.Trigger = cmp.Or(options.GetModel(), spec.Model), m.Origin.Schedule, m.Origin.Trigger
	command, err := s.Command(ctx, k, t, accepted)
	command.Request = store.RequestOf(m.Method, r.Parent, r.RequestId, r) // the session's options are not part of the request
	return t, command, err
}

// WithinLog refuses a number beyond the end of a session's log.
func WithinLog(found *sessionv1.Session, after int64) error {
	if after <= found.LastSeq {
		return nil
	}
	return refusal.BeyondLog(found.Name, found.LastSeq, after)
}

// MayNotSend returns why the user of a schedule or a trigger may not send messages any more, or "": to a session, or to
// new ones if k has none. A user of an issuer has no row, and may.
func (s *Submitter) MayNotSend(ctx context.Context, k store.Key, user string) (string, error) {
	u, err := s.Store.GetUser(ctx, store.Owner{Tenant: k.Tenant, User: user})
	if errors.Is(err, store.ErrNotFound) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	owner := user
	if k.Session != "" {
		if owner, err = s.Store.SessionOwner(ctx, k); errors.Is(err, store.ErrNotFound) {
			return "", nil // the turn will say it
		}
	}
	switch {
	case err != nil:
		return "", err
	case u.Disabled:
		return fmt.Sprintf("its user %s was deleted", u.Name), nil
	case u.Role < commonv1.Role_ROLE_USER, owner != user && u.Role < commonv1.Role_ROLE_OPERATOR:
		return fmt.Sprintf("the role of its user %s does not allow such turns any more", u.Name), nil
	}
	return "", nil
}

// NewTurn returns a turn of the caller.
func NewTurn(ctx context.Context, session *sessionv1.Session, limits *sessionv1.TurnLimits) *sessionv1.Turn {
	t := &sessionv1.Turn{
		Name: session.Name + "/turns/" + id.New(), State: sessionv1.TurnState_TURN_STATE_QUEUED, Limits: limits,
		CreateTime: timestamppb.Now(), AfterSeq: session.LastSeq, User: request.User(ctx),
	}
	if sc := trace.SpanContextFromContext(ctx); sc.IsValid() {
		t.TraceId = sc.TraceID().String()
	}
	return t
}

// Command returns the command of a turn, without its request.
func (s *Submitter) Command(ctx context.Context, k store.Key, t *sessionv1.Turn, r *sessionv1.CreateTurnRequest) (store.Submit, error) {
	carrier := propagation.MapCarrier{}
	propagation.TraceContext{}.Inject(ctx, carrier)
	state, err := state.Accept(r, request.User(ctx), directory.MayMake(ctx), carrier)
	if err != nil {
		return store.Submit{}, err
	}
	turnID := t.Name[len(r.Parent)+len("/turns/"):]
	return store.Submit{
		Key:             k,
		Command:         store.Command{Kind: store.CommandTurn, TurnID: turnID, User: request.User(ctx)},
		Turn:            &store.TurnRow{ID: turnID, Turn: proto.CloneOf(t), Run: state},
		Caps:            s.Use.Turns(k.Tenant, request.User(ctx)),
		Resume:          r.Resume,
		RejectIfActive:  r.Resume || r.OnActive == sessionv1.OnActive_ON_ACTIVE_REJECT,
		InterruptActive: r.OnActive == sessionv1.OnActive_ON_ACTIVE_INTERRUPT,
		RollbackActive:  r.OnActive == sessionv1.OnActive_ON_ACTIVE_ROLLBACK,
		SteerActive:     r.OnActive == sessionv1.OnActive_ON_ACTIVE_STEER,
	}, nil
}
