package server

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/internal/kit/apierr"
	"github.com/fairlead/fairlead/services/internal/kit/id"
	"github.com/fairlead/fairlead/services/session/internal/refusal"
	"github.com/fairlead/fairlead/services/session/internal/server/request"
)

// conversations are the two-way streams of sessions.
type conversations struct {
	*Config
	turns    *turns
	commands *commands
	events   *events
	streams  sync.WaitGroup // goroutines of Converse
}

// Converse joins a session: one goroutine takes the inputs, this one sends the
// events. It ends when the client leaves. When the client only stops sending,
// the events go on.
func (s *conversations) Converse(stream grpc.BidiStreamingServer[sessionv1.ConverseRequest, sessionv1.ConverseResponse]) error {
	ctx, cancel := context.WithCancelCause(stream.Context())
	defer cancel(nil)
	open, err := s.open(ctx, stream)
	if err != nil {
		return err
	}
	out := &conversation{stream: stream, session: open.Session}
	defer out.end()
	// Recv ends with the stream, which ends when this function returns: Close
	// waits for the goroutine.
	s.streams.Go(func() {
		if err := s.inputs(ctx, out); err != nil {
			cancel(err)
		}
	})
	return s.events.follow(ctx, following{
		key: request.Key(ctx, open.Session), after: open.AfterSeq, idle: s.IdleProgress,
		event: func(e *sessionv1.Event) error {
			return out.send(&sessionv1.ConverseResponse{Kind: &sessionv1.ConverseResponse_Event{Event: e}})
		},
		progress: func(p *sessionv1.Progress) error {
			return out.send(&sessionv1.ConverseResponse{Kind: &sessionv1.ConverseResponse_Progress{Progress: p}})
		},
	})
}

// open reads the first input.
func (s *conversations) open(
	ctx context.Context, stream grpc.BidiStreamingServer[sessionv1.ConverseRequest, sessionv1.ConverseResponse],
) (*sessionv1.ConverseOpen, error) {
	r, err := stream.Recv()
	if err != nil {
		if errors.Is(err, io.EOF) {
			return nil, refusal.Input("kind", "The stream ended before its first input, which has to be open.")
		}
		return nil, err
	}
	open := r.GetOpen()
	if open == nil {
		return nil, refusal.Input("kind", "The first input has to be open; it names the session.")
	}
	if err := s.events.checkAfter(ctx, request.Key(ctx, open.Session), open.Session, open.AfterSeq); err != nil {
		return nil, err
	}
	return open, stream.SendHeader(metadata.MD{})
}

// conversation sends from several goroutines, one at a time.
type conversation struct {
	stream  grpc.BidiStreamingServer[sessionv1.ConverseRequest, sessionv1.ConverseResponse]
	session string

	mu    sync.Mutex
	ended bool
}

// end makes later sends fail: a stream must not be used after its handler has
// returned.
func (c *conversation) end() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ended = true
}

func (c *conversation) send(r *sessionv1.ConverseResponse) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ended {
		return context.Canceled
	}
	return c.stream.Send(r)
}

// inputs takes inputs until the client sends no more.
func (s *conversations) inputs(ctx context.Context, out *conversation) error {
	for {
		r, err := out.stream.Recv()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		requestID, turn, err := s.input(ctx, out.session, r)
		resp := &sessionv1.ConverseResponse{Kind: &sessionv1.ConverseResponse_Accepted{Accepted: &sessionv1.ConverseAccepted{RequestId: requestID, Turn: turn}}}
		if err != nil {
			clean := apierr.Sanitize(ctx, s.Log, "Converse", err)
			resp.Kind = &sessionv1.ConverseResponse_Rejected{Rejected: &sessionv1.ConverseRejected{RequestId: requestID, Status: status.Convert(clean).Proto()}}
		}
		if err := out.send(resp); err != nil {
			return err
		}
	}
}

// input handles one input like its unary RPC.
func (s *conversations) input(
	ctx context.Context, session string, r *sessionv1.ConverseRequest,
) (requestID string, turn *sessionv1.Turn, err error) {
	switch k := r.Kind.(type) {
	case *sessionv1.ConverseRequest_CreateTurn:
		in := k.CreateTurn
		if err := sameSession(session, &in.Parent, &in.RequestId); err != nil {
			return in.RequestId, nil, err
		}
		resp, err := s.turns.CreateTurn(ctx, in)
		return in.RequestId, resp.GetTurn(), err
	case *sessionv1.ConverseRequest_Interrupt:
		in := k.Interrupt
		if err := sameSession(session, &in.Name, &in.RequestId); err != nil {
			return in.RequestId, nil, err
		}
		_, err := s.commands.InterruptSession(ctx, in)
		return in.RequestId, nil, err
	case *sessionv1.ConverseRequest_ResolveApproval:
		in := k.ResolveApproval
		if err := sameSession(session, &in.Parent, &in.RequestId); err != nil {
			return in.RequestId, nil, err
		}
		_, err := s.commands.ResolveApproval(ctx, in)
		return in.RequestId, nil, err
	case *sessionv1.ConverseRequest_SubmitToolResult:
		in := k.SubmitToolResult
		if err := sameSession(session, &in.Parent, &in.RequestId); err != nil {
			return in.RequestId, nil, err
		}
		_, err := s.commands.SubmitToolResult(ctx, in)
		return in.RequestId, nil, err
	case *sessionv1.ConverseRequest_AnswerQuestion:
		in := k.AnswerQuestion
		if err := sameSession(session, &in.Parent, &in.RequestId); err != nil {
			return in.RequestId, nil, err
		}
		_, err := s.commands.AnswerQuestion(ctx, in)
		return in.RequestId, nil, err
	default:
		return "", nil, refusal.Input("kind", "open is the first input, and only the first.")
	}
}

// sameSession checks that an input names the conversation's session, and sets a
// request id if it has none.
func sameSession(session string, named, requestID *string) error {
	if *requestID == "" {
		*requestID = id.New()
	}
	if *named != session {
		return refusal.Input("session", fmt.Sprintf("The input names %s, but the conversation is with %s. Open another stream for another session.", *named, session))
	}
	return nil
}
