package server

import (
	"context"
	"errors"
	"strings"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/proto"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/internal/kit/page"
	"github.com/fairlead/fairlead/services/session/internal/refusal"
	"github.com/fairlead/fairlead/services/session/internal/server/request"
	"github.com/fairlead/fairlead/services/session/internal/store"
	"github.com/fairlead/fairlead/services/session/internal/submit"
)

// turns accepts turns and shows them.
type turns struct {
	*Config
	events *events
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
		key: request.Key(ctx, r.Parent), after: after, turn: t.Name, into: into, idle: s.IdleProgress,
		event: func(e *sessionv1.Event) error {
			return stream.Send(&sessionv1.RunTurnResponse{Kind: &sessionv1.RunTurnResponse_Event{Event: e}})
		},
		progress: func(p *sessionv1.Progress) error {
			return stream.Send(&sessionv1.RunTurnResponse{Kind: &sessionv1.RunTurnResponse_Progress{Progress: p}})
		},
	})
}

// accept submits a turn with the files that its content names. after is the sequence number after which the caller will
// follow it.
func (s *turns) accept(ctx context.Context, method string, r *sessionv1.CreateTurnRequest, after int64) (t *sessionv1.Turn, err error) {
	if r.Content, err = s.Submit.Content(ctx, r.Content); err != nil {
		return nil, err
	}
	return s.Submit.Accept(ctx, submit.Message{Method: method, Request: r, After: after})
}

// GetTurn reads a turn.
func (s *turns) GetTurn(ctx context.Context, r *sessionv1.GetTurnRequest) (*sessionv1.GetTurnResponse, error) {
	session, turnID := splitTurn(r.Name)
	k := request.Key(ctx, session)
	t, err := s.Store.GetTurn(ctx, k, turnID)
	if err != nil {
		return nil, refusal.Store(err, refusal.Subject{Session: session, Turn: r.Name})
	}
	return &sessionv1.GetTurnResponse{Turn: t}, nil
}

// ListTurns lists a page of a session's turns.
func (s *turns) ListTurns(ctx context.Context, r *sessionv1.ListTurnsRequest) (*sessionv1.ListTurnsResponse, error) {
	k := request.Key(ctx, r.Parent)
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
			after = request.LastSegment(last.Name)
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
		resp.NextPageToken = page.Encode(scope, request.LastSegment(turns[len(turns)-1].Name))
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
