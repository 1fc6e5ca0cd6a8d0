package conversation

import (
	"context"
	"fmt"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/internal/kit/page"
	"github.com/fairlead/fairlead/services/session/internal/follow"
	"github.com/fairlead/fairlead/services/session/internal/refusal"
	"github.com/fairlead/fairlead/services/session/internal/request"
	"github.com/fairlead/fairlead/services/session/internal/store"
	"github.com/fairlead/fairlead/services/session/internal/submit"
)

// ListEvents reads a page of a session's log.
func (s *SessionServer) ListEvents(ctx context.Context, r *sessionv1.ListEventsRequest) (*sessionv1.ListEventsResponse, error) {
	k := request.Key(ctx, r.Parent)
	scope := fmt.Sprintf("ListEvents\x00%s\x00%s\x00%d", k.Tenant, k.Session, r.AfterSeq)
	after := r.AfterSeq
	if err := s.list(ctx, k, r.Parent, r.PageToken, scope, &after); err != nil {
		return nil, err
	}
	size := page.Size(r.PageSize, 200, 1000)
	events, err := s.Store.ListEvents(ctx, k, after, size+1, page.MaxBytes)
	if err != nil {
		return nil, refusal.Store(err, refusal.Subject{Session: r.Parent})
	}
	resp := &sessionv1.ListEventsResponse{Events: events}
	if len(events) > size {
		resp.Events = events[:size]
	}
	if n := len(resp.Events); n > 0 {
		more := n < len(events)
		if !more {
			// The page may have ended at its limit in bytes.
			rest, err := s.Store.ListEvents(ctx, k, resp.Events[n-1].Seq, 1, 0)
			if err != nil {
				return nil, refusal.Store(err, refusal.Subject{Session: r.Parent})
			}
			more = len(rest) > 0
		}
		if more {
			resp.NextPageToken = page.Encode(scope, resp.Events[n-1].Seq)
		}
	}
	return resp, nil
}

// StreamEvents replays and follows a session's log.
func (s *SessionServer) StreamEvents(r *sessionv1.StreamEventsRequest, stream grpc.ServerStreamingServer[sessionv1.StreamEventsResponse]) error {
	ctx := stream.Context()
	k := request.Key(ctx, r.Parent)
	if err := s.checkAfter(ctx, k, r.Parent, r.AfterSeq); err != nil {
		return err
	}
	if err := stream.SendHeader(metadata.MD{}); err != nil {
		return err
	}
	return s.logs.Follow(ctx, follow.Stream{
		Key: k, After: r.AfterSeq,
		Event: func(e *sessionv1.Event) error {
			return stream.Send(&sessionv1.StreamEventsResponse{Kind: &sessionv1.StreamEventsResponse_Event{Event: e}})
		},
		Progress: func(p *sessionv1.Progress) error {
			return stream.Send(&sessionv1.StreamEventsResponse{Kind: &sessionv1.StreamEventsResponse_Progress{Progress: p}})
		},
	})
}

// checkAfter refuses a number beyond the end of the log.
func (s *SessionServer) checkAfter(ctx context.Context, k store.Key, session string, after int64) error {
	found, err := s.Store.GetSession(ctx, k)
	if err != nil {
		return refusal.Store(err, refusal.Subject{Session: session})
	}
	return submit.WithinLog(found, after)
}

type messageCursor struct {
	Head  string `json:"h"`
	After string `json:"a"`
}

// ListMessages lists a page of the conversation. All pages of a list show the
// same conversation, even if the head moves meanwhile.
func (s *SessionServer) ListMessages(ctx context.Context, r *sessionv1.ListMessagesRequest) (*sessionv1.ListMessagesResponse, error) {
	k := request.Key(ctx, r.Parent)
	scope := "ListMessages\x00" + k.Tenant + "\x00" + k.Session
	var c messageCursor
	if err := s.list(ctx, k, r.Parent, r.PageToken, scope, &c); err != nil {
		return nil, err
	}
	if c.Head == "" {
		session, err := s.Store.GetSession(ctx, k)
		if err != nil {
			return nil, refusal.Store(err, refusal.Subject{Session: r.Parent})
		}
		c.Head = request.LastSegment(session.Head)
	}
	if c.Head == "" {
		return &sessionv1.ListMessagesResponse{}, nil
	}
	at := func(m *sessionv1.Message) messageCursor {
		return messageCursor{Head: c.Head, After: request.LastSegment(m.Name)}
	}
	list := func(after messageCursor, n int) ([]*sessionv1.Message, error) {
		return s.Store.ListMessages(ctx, k, c.Head, after.After, n)
	}
	all, next, err := request.List(scope, r, refusal.Subject{Session: r.Parent}, at, list)
	return &sessionv1.ListMessagesResponse{Messages: all, NextPageToken: next}, err
}
