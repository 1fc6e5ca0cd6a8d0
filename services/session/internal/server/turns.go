package server

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/fairlead/fairlead/services/session/internal/refusal"

	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/internal/kit/apierr"
	"github.com/fairlead/fairlead/services/internal/kit/id"
	"github.com/fairlead/fairlead/services/internal/kit/page"
	"github.com/fairlead/fairlead/services/session/internal/agent"
	"github.com/fairlead/fairlead/services/session/internal/allowance"
	"github.com/fairlead/fairlead/services/session/internal/directory"
	"github.com/fairlead/fairlead/services/session/internal/store"
	"github.com/fairlead/fairlead/services/session/internal/turn/state"
)

// turns accepts turns and shows them.
type turns struct {
	*Config
	events    *events
	toolSizes toolSizes
}

// CreateTurn puts a message into the session's inbox.
func (s *turns) CreateTurn(ctx context.Context, r *sessionv1.CreateTurnRequest) (*sessionv1.CreateTurnResponse, error) {
	t, err := s.accept(ctx, "CreateTurn", r, 0)
	if err != nil {
		return nil, err
	}
	return &sessionv1.CreateTurnResponse{Turn: t}, nil
}

// RunTurn accepts a message like CreateTurn and follows the turn.
func (s *turns) RunTurn(r *sessionv1.RunTurnRequest, stream grpc.ServerStreamingServer[sessionv1.RunTurnResponse]) error {
	ctx := stream.Context()
	t, err := s.accept(ctx, "RunTurn", &sessionv1.CreateTurnRequest{
		Parent: r.Parent, Text: r.Text, Content: r.Content, OnActive: r.OnActive, Limits: r.Limits,
		ClientTools: r.ClientTools, RequestId: r.RequestId, Resume: r.Resume, Options: r.Options,
	}, r.AfterSeq)
	if err != nil {
		return err
	}
	if err := stream.SendHeader(metadata.MD{}); err != nil {
		return err
	}
	after := max(r.AfterSeq, t.AfterSeq)
	into, err := s.events.steeredBefore(ctx, t, after)
	if err != nil {
		return err
	}
	return s.events.follow(ctx, following{
		key: key(ctx, r.Parent), after: after, turn: t.Name, into: into, idle: s.IdleProgress,
		event: func(e *sessionv1.Event) error {
			return stream.Send(&sessionv1.RunTurnResponse{Kind: &sessionv1.RunTurnResponse_Event{Event: e}})
		},
		progress: func(p *sessionv1.Progress) error {
			return stream.Send(&sessionv1.RunTurnResponse{Kind: &sessionv1.RunTurnResponse_Progress{Progress: p}})
		},
	})
}

// accept submits a turn and reads it back. after is the sequence number after
// which the caller will follow it.
func (s *turns) accept(ctx context.Context, method string, r *sessionv1.CreateTurnRequest, after int64) (*sessionv1.Turn, error) {
	return s.acceptFrom(ctx, method, origin{}, r, after)
}

// origin is what sends a turn, by its name: a schedule, a trigger, or neither.
type origin struct{ schedule, trigger string }

// acceptFrom is accept for a turn with an origin.
func (s *turns) acceptFrom(
	ctx context.Context, method string, from origin, r *sessionv1.CreateTurnRequest, after int64,
) (*sessionv1.Turn, error) {
	var err error
	if r.Content, err = s.content(ctx, r.Content); err != nil {
		return nil, err
	}
	k := key(ctx, r.Parent)
	session, err := s.Store.GetSession(ctx, k)
	if err != nil {
		return nil, refusal.Store(err, refusal.Subject{Session: r.Parent})
	}
	if err := withinLog(session, after); err != nil {
		return nil, err // the stream would never show the turn or its end
	}
	spec, err := s.Directory.SpecOf(ctx, k.Tenant, session)
	if err != nil {
		return nil, err
	}
	t, submit, err := s.prepare(ctx, method, from, session, spec, r)
	if err != nil {
		return nil, err
	}
	return s.submit(ctx, t, submit, refusal.Subject{Session: r.Parent, RequestID: r.RequestId})
}

// submit puts a turn's command into the inbox. It returns the turn, or the earlier one of a repeated request.
func (s *turns) submit(ctx context.Context, t *sessionv1.Turn, n store.Submit, about refusal.Subject) (*sessionv1.Turn, error) {
	answer, err := s.Submit(ctx, n)
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

// prepare checks the message and returns its turn with the command that makes it.
func (s *turns) prepare(
	ctx context.Context, method string, from origin, session *sessionv1.Session, spec agent.Spec, r *sessionv1.CreateTurnRequest,
) (*sessionv1.Turn, store.Submit, error) {
	k := key(ctx, r.Parent)
	if err := checkClientTools(spec, r); err != nil {
		return nil, store.Submit{}, err
	}
	options := agent.Options(r.Options, session.TurnOptions)
	if err := s.checkOptions(ctx, spec, options, "options", true); err != nil {
		return nil, store.Submit{}, err
	}
	if err := s.checkMode(ctx, spec, options, "options"); err != nil {
		return nil, store.Submit{}, err
	}
	accepted := proto.CloneOf(r)
	accepted.Options = options
	if err := s.checkFits(ctx, k, session, spec, accepted); err != nil {
		return nil, store.Submit{}, err
	}
	limits, err := s.limits(spec, r.Limits, s.Budgets.For(k.Tenant).Turn)
	if err != nil {
		return nil, store.Submit{}, err
	}
	t := newTurn(ctx, session, limits)
	t.Model, t.Schedule, t.Trigger = cmp.Or(options.GetModel(), spec.Model), from.schedule, from.trigger
	submit, err := s.submission(ctx, k, t, accepted)
	submit.Request = request(method, r.Parent, r.RequestId, r) // the session's options are not part of the request
	return t, submit, err
}

// newTurn returns a turn of the caller.
func newTurn(ctx context.Context, session *sessionv1.Session, limits *sessionv1.TurnLimits) *sessionv1.Turn {
	t := &sessionv1.Turn{
		Name: session.Name + "/turns/" + id.New(), State: sessionv1.TurnState_TURN_STATE_QUEUED, Limits: limits,
		CreateTime: timestamppb.Now(), AfterSeq: session.LastSeq, User: user(ctx),
	}
	if sc := trace.SpanContextFromContext(ctx); sc.IsValid() {
		t.TraceId = sc.TraceID().String()
	}
	return t
}

// submission returns the command of a turn, without its request.
func (s *turns) submission(ctx context.Context, k store.Key, t *sessionv1.Turn, r *sessionv1.CreateTurnRequest) (store.Submit, error) {
	carrier := propagation.MapCarrier{}
	propagation.TraceContext{}.Inject(ctx, carrier)
	state, err := state.Accept(r, user(ctx), directory.MayMake(ctx), carrier)
	if err != nil {
		return store.Submit{}, err
	}
	turnID := t.Name[len(r.Parent)+len("/turns/"):]
	return store.Submit{
		Key:             k,
		Command:         store.Command{Kind: store.CommandTurn, TurnID: turnID, User: user(ctx)},
		Turn:            &store.TurnRow{ID: turnID, Turn: proto.CloneOf(t), Run: state},
		Caps:            s.Use.Turns(k.Tenant, user(ctx)),
		Resume:          r.Resume,
		RejectIfActive:  r.Resume || r.OnActive == sessionv1.OnActive_ON_ACTIVE_REJECT,
		InterruptActive: r.OnActive == sessionv1.OnActive_ON_ACTIVE_INTERRUPT,
		RollbackActive:  r.OnActive == sessionv1.OnActive_ON_ACTIVE_ROLLBACK,
		SteerActive:     r.OnActive == sessionv1.OnActive_ON_ACTIVE_STEER,
	}, nil
}

// limits combines a request's limits with the agent's and the server's
// defaults, under the operator's ceilings.
func (s *turns) limits(spec agent.Spec, asked *sessionv1.TurnLimits, most allowance.Limits) (*sessionv1.TurnLimits, error) {
	steps, err := limit("limits.max_steps", int64(asked.GetMaxSteps()), int64(spec.MaxSteps), int64(s.Limits.MaxSteps), int64(s.Ceilings.MaxSteps))
	if err != nil {
		return nil, err
	}
	wall, err := limit("limits.max_wall_time", int64(asked.GetMaxWallTime().AsDuration()), int64(spec.MaxWallTime), int64(s.Limits.MaxWallTime), wallCeiling(int64(s.Ceilings.MaxWallTime), most))
	if err != nil {
		return nil, err
	}
	tokens, err := limit("limits.max_output_tokens", asked.GetMaxOutputTokens(), spec.MaxOutputTokens, s.Limits.MaxOutputTokens, s.Ceilings.MaxOutputTokens)
	if err != nil {
		return nil, err
	}
	out := &sessionv1.TurnLimits{
		MaxSteps: int32(steps), MaxWallTime: durationpb.New(time.Duration(wall)), MaxOutputTokens: tokens,
	}
	return out, addTurnBudget(out, asked, most)
}

// limit returns the first of asked, the agent's and the server's value that is
// set.
func limit(field string, asked, agents, dflt, ceiling int64) (int64, error) {
	if asked > ceiling {
		shown, most := strconv.FormatInt(asked, 10), strconv.FormatInt(ceiling, 10)
		if field == "limits.max_wall_time" {
			shown, most = time.Duration(asked).String(), time.Duration(ceiling).String()
		}
		return 0, refusal.Of(codes.InvalidArgument, sessionv1.ErrorReason_ERROR_REASON_LIMIT_ABOVE_CEILING,
			fmt.Sprintf("%s is %s; the operator allows at most %s.", field, shown, most), apierr.Field(field, "above the operator's ceiling of "+most))
	}
	for _, v := range []int64{asked, agents} {
		if v > 0 {
			return min(v, ceiling), nil
		}
	}
	return min(dflt, ceiling), nil
}

// GetTurn reads a turn.
func (s *turns) GetTurn(ctx context.Context, r *sessionv1.GetTurnRequest) (*sessionv1.GetTurnResponse, error) {
	session, turnID := splitTurn(r.Name)
	k := key(ctx, session)
	t, err := s.Store.GetTurn(ctx, k, turnID)
	if err != nil {
		return nil, refusal.Store(err, refusal.Subject{Session: session, Turn: r.Name})
	}
	return &sessionv1.GetTurnResponse{Turn: t}, nil
}

// ListTurns lists a page of a session's turns.
func (s *turns) ListTurns(ctx context.Context, r *sessionv1.ListTurnsRequest) (*sessionv1.ListTurnsResponse, error) {
	k := key(ctx, r.Parent)
	scope := "ListTurns\x00" + k.Tenant + "\x00" + k.Session
	after := ""
	if err := s.events.list(ctx, k, r.Parent, r.PageToken, scope, &after); err != nil {
		return nil, err
	}
	if r.OfRequest != "" {
		return s.turnOfRequest(ctx, k, r)
	}
	size := page.Size(r.PageSize, 50, 1000)
	turns, more, err := page.Fill(size, func(last *sessionv1.Turn, n int) ([]*sessionv1.Turn, error) {
		if last != nil {
			after = lastSegment(last.Name)
		}
		some, err := s.Store.ListTurns(ctx, k, after, n)
		shorten(some)
		return some, err
	})
	if err != nil {
		return nil, refusal.Store(err, refusal.Subject{Session: r.Parent})
	}
	resp := &sessionv1.ListTurnsResponse{Turns: turns}
	if more {
		resp.NextPageToken = page.Encode(scope, lastSegment(turns[len(turns)-1].Name))
	}
	return resp, nil
}

// turnOfRequest lists the one turn that a request made, or none.
func (s *turns) turnOfRequest(ctx context.Context, k store.Key, r *sessionv1.ListTurnsRequest) (*sessionv1.ListTurnsResponse, error) {
	turn, err := s.Store.TurnOfRequest(ctx, k, r.OfRequest, "CreateTurn", "RunTurn")
	if errors.Is(err, store.ErrNotFound) {
		return &sessionv1.ListTurnsResponse{}, nil
	}
	if err != nil {
		return nil, refusal.Store(err, refusal.Subject{Session: r.Parent})
	}
	found := []*sessionv1.Turn{turn}
	shorten(found)
	return &sessionv1.ListTurnsResponse{Turns: found}, nil
}

// shorten cuts turns that are larger than a page. GetTurn returns them whole.
func shorten(turns []*sessionv1.Turn) {
	for _, t := range turns {
		if proto.Size(t) > page.MaxBytes {
			t.Shortened, t.OutputJson, t.Call, t.CallResult = true, "", nil, nil
			t.FinalText = strings.ToValidUTF8(t.FinalText[:min(len(t.FinalText), shortText)], "")
		}
	}
}

// shortText is the length of a shortened turn's final text, in bytes.
const shortText = 64 << 10

// list begins a list below a session: it checks that the session exists and that the
// token belongs to the list.
func (s *events) list(ctx context.Context, k store.Key, session, token, scope string, cursor any) error {
	if token != "" {
		if err := page.Decode(token, scope, cursor); err != nil {
			return refusal.Store(err, refusal.Subject{})
		}
	}
	if _, err := s.Store.GetSession(ctx, k); err != nil {
		return refusal.Store(err, refusal.Subject{Session: session})
	}
	return nil
}
