package conversation

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
	"github.com/fairlead/fairlead/services/session/internal/follow"
	"github.com/fairlead/fairlead/services/session/internal/refusal"
	"github.com/fairlead/fairlead/services/session/internal/request"
)

// Converse joins a session: one goroutine takes the inputs, this one sends the
// events. It ends when the client leaves. When the client only stops sending,
// the events go on.
func (s *SessionServer) Converse(stream grpc.BidiStreamingServer[sessionv1.ConverseRequest, sessionv1.ConverseResponse]) error {
	ctx, cancel := context.WithCancelCause(stream.Context())
	defer cancel(nil)
	open, err := s.open(ctx, stream)
	if err != nil {
		return err
	}
	out := &conversation{server: s, stream: stream, session: open.Session}
	defer out.end()
	// Recv ends with the stream, which ends when this function returns: Close
	// waits for the goroutine.
	s.streams.Go(func() {
		if err := out.inputs(ctx); err != nil {
			cancel(err)
		}
	})
	return s.logs.Follow(ctx, follow.Stream{
		Key: request.Key(ctx, open.Session), After: open.AfterSeq,
		Event: func(e *sessionv1.Event) error {
			return out.send(&sessionv1.ConverseResponse{Kind: &sessionv1.ConverseResponse_Event{Event: e}})
		},
		Progress: func(p *sessionv1.Progress) error {
			return out.send(&sessionv1.ConverseResponse{Kind: &sessionv1.ConverseResponse_Progress{Progress: p}})
		},
	})
}

// open reads the first input.
func (s *SessionServer) open(
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
	if err := s.checkAfter(ctx, request.Key(ctx, open.Session), open.Session, open.AfterSeq); err != nil {
		return nil, err
	}
	return open, stream.SendHeader(metadata.MD{})
}

// conversation sends from several goroutines, one at a time.
type conversation struct {
	server  *SessionServer
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
func (c *conversation) inputs(ctx context.Context) error {
	for {
		r, err := c.stream.Recv()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		requestID, turn, err := c.input(ctx, r)
		resp := &sessionv1.ConverseResponse{Kind: &sessionv1.ConverseResponse_Accepted{Accepted: &sessionv1.ConverseAccepted{RequestId: requestID, Turn: turn}}}
		if err != nil {
			clean := apierr.Sanitize(ctx, c.server.Log, "Converse", err)
			resp.Kind = &sessionv1.ConverseResponse_Rejected{Rejected: &sessionv1.ConverseRejected{RequestId: requestID, Status: status.Convert(clean).Proto()}}
		}
		if err := c.send(resp); err != nil {
			return err
		}
	}
}

// input handles one input like its unary RPC.
func (c *conversation) input(ctx context.Context, r *sessionv1.ConverseRequest) (requestID string, turn *sessionv1.Turn, err error) {
	switch k := r.Kind.(type) {
	case *sessionv1.ConverseRequest_CreateTurn:
		resp, err := take(ctx, c, k.CreateTurn, &k.CreateTurn.Parent, &k.CreateTurn.RequestId, c.server.CreateTurn)
		return k.CreateTurn.RequestId, resp.GetTurn(), err
	case *sessionv1.ConverseRequest_Interrupt:
		_, err := take(ctx, c, k.Interrupt, &k.Interrupt.Name, &k.Interrupt.RequestId, c.server.InterruptSession)
		return k.Interrupt.RequestId, nil, err
	case *sessionv1.ConverseRequest_ResolveApproval:
		_, err := take(ctx, c, k.ResolveApproval, &k.ResolveApproval.Parent, &k.ResolveApproval.RequestId, c.server.ResolveApproval)
		return k.ResolveApproval.RequestId, nil, err
	case *sessionv1.ConverseRequest_SubmitToolResult:
		_, err := take(ctx, c, k.SubmitToolResult, &k.SubmitToolResult.Parent, &k.SubmitToolResult.RequestId, c.server.SubmitToolResult)
		return k.SubmitToolResult.RequestId, nil, err
	case *sessionv1.ConverseRequest_AnswerQuestion:
		_, err := take(ctx, c, k.AnswerQuestion, &k.AnswerQuestion.Parent, &k.AnswerQuestion.RequestId, c.server.AnswerQuestion)
		return k.AnswerQuestion.RequestId, nil, err
	default:
		return "", nil, refusal.Input("kind", "open is the first input, and only the first.")
	}
}

// take calls the RPC of an input that names the conversation's session. It sets a request id if the input has none.
func take[R, A any](
	ctx context.Context, c *conversation, in R, named, requestID *string, call func(context.Context, R) (A, error),
) (answer A, err error) {
	if *requestID == "" {
		*requestID = id.New()
	}
	if *named != c.session {
		return answer, refusal.Input("session", fmt.Sprintf("The input names %s, but the conversation is with %s. Open another stream for another session.", *named, c.session))
	}
	return call(ctx, in)
}
