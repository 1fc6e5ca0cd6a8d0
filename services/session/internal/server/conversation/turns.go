package conversation

import (
	"context"
	"errors"
	"strings"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/proto"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/internal/kit/page"
	"github.com/fairlead/fairlead/services/session/internal/follow"
	"github.com/fairlead/fairlead/services/session/internal/refusal"
	"github.com/fairlead/fairlead/services/session/internal/request"
	"github.com/fairlead/fairlead/services/session/internal/store"
	"github.com/fairlead/fairlead/services/session/internal/submit"
)

// CreateTurn puts a message into the session's inbox.
func (s *SessionServer) CreateTurn(ctx context.Context, r *sessionv1.CreateTurnRequest) (*sessionv1.CreateTurnResponse, error) {
	t, err := s.accept(ctx, "CreateTurn", r, 0)
	return &sessionv1.CreateTurnResponse{Turn: t}, err
}

// RunTurn accepts a message like CreateTurn and follows the turn.
func (s *SessionServer) RunTurn(r *sessionv1.RunTurnRequest, stream grpc.ServerStreamingServer[sessionv1.RunTurnResponse]) error {
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
	into, err := s.logs.SteeredBefore(ctx, t, after)
	if err != nil {
		return err
	}
	return s.logs.Follow(ctx, follow.Stream{
		Key: request.Key(ctx, r.Parent), After: after, Turn: t.Name, Into: into,
		Event: func(e *sessionv1.Event) error {
			return stream.Send(&sessionv1.RunTurnResponse{Kind: &sessionv1.RunTurnResponse_Event{Event: e}})
		},
		Progress: func(p *sessionv1.Progress) error {
			return stream.Send(&sessionv1.RunTurnResponse{Kind: &sessionv1.RunTurnResponse_Progress{Progress: p}})
		},
	})
}

// accept submits a turn with the files that its content names. after is the sequence number after which the caller will
// follow it.
func (s *SessionServer) accept(
	ctx context.Context, method string, r *sessionv1.CreateTurnRequest, after int64,
) (t *sessionv1.Turn, err error) {
	if r.Content, err = s.Submit.Content(ctx, r.Content); err != nil {
		return nil, err
	}
	return s.Submit.Accept(ctx, submit.Message{Method: method, Request: r, After: after})
}

// GetTurn reads a turn.
func (s *SessionServer) GetTurn(ctx context.Context, r *sessionv1.GetTurnRequest) (*sessionv1.GetTurnResponse, error) {
	session, turnID := splitTurn(r.Name)
	k := request.Key(ctx, session)
	t, err := s.Store.GetTurn(ctx, k, turnID)
	return &sessionv1.GetTurnResponse{Turn: t}, refusal.Store(err, refusal.Subject{Session: session, Turn: r.Name})
}

// ListTurns lists a page of a session's turns.
func (s *SessionServer) ListTurns(ctx context.Context, r *sessionv1.ListTurnsRequest) (*sessionv1.ListTurnsResponse, error) {
	k := request.Key(ctx, r.Parent)
	scope := "ListTurns\x00" + k.Tenant + "\x00" + k.Session
	if err := s.list(ctx, k, r.Parent, r.PageToken, scope, new(string)); err != nil {
		return nil, err
	}
	if r.OfRequest != "" {
		return s.turnOfRequest(ctx, k, r)
	}
	list := func(after string, n int) ([]*sessionv1.Turn, error) {
		some, err := s.Store.ListTurns(ctx, k, after, n)
		shorten(some)
		return some, err
	}
	all, next, err := request.List(scope, r, refusal.Subject{Session: r.Parent}, request.ByID, list)
	return &sessionv1.ListTurnsResponse{Turns: all, NextPageToken: next}, err
}

// turnOfRequest lists the one turn that a request made, or none.
func (s *SessionServer) turnOfRequest(
	ctx context.Context, k store.Key, r *sessionv1.ListTurnsRequest,
) (*sessionv1.ListTurnsResponse, error) {
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
func (s shared) list(ctx context.Context, k store.Key, session, token, scope string, cursor any) error {
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
