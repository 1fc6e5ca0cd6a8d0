package fairlead_test

import (
	"context"
	"encoding/json"
	"sync"
	"testing"

	"google.golang.org/grpc"

	fairlead "github.com/fairlead/fairlead/clients/go"
	"github.com/fairlead/fairlead/clients/go/clienttest"
	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
)

// script is a server whose turns a test plays.
type script struct {
	sessionv1.UnimplementedSessionServiceServer
	// play plays the nth attempt to follow a turn, from 0.
	play func(n int, p player) error
	// resolve answers approvals.
	resolve func(*sessionv1.ResolveApprovalRequest) error

	mu      sync.Mutex
	asked   []*sessionv1.RunTurnRequest
	results chan *sessionv1.SubmitToolResultRequest
}

// player is the stream of a turn.
type player struct {
	grpc.ServerStreamingServer[sessionv1.RunTurnResponse]
	seq *int64
}

// say sends events of a turn.
func (p player) say(turn string, bodies ...*sessionv1.Event) {
	for _, e := range bodies {
		*p.seq++
		e.FirstSeq, e.Seq, e.Turn = *p.seq, *p.seq, turn
		_ = p.Send(&sessionv1.RunTurnResponse{Kind: &sessionv1.RunTurnResponse_Event{Event: e}})
	}
}

// live says that there are no more events.
func (p player) live() {
	_ = p.Send(&sessionv1.RunTurnResponse{Kind: &sessionv1.RunTurnResponse_Progress{Progress: &sessionv1.Progress{Seq: *p.seq}}})
}

func (s *script) RunTurn(req *sessionv1.RunTurnRequest, stream grpc.ServerStreamingServer[sessionv1.RunTurnResponse]) error {
	s.mu.Lock()
	n := len(s.asked)
	s.asked = append(s.asked, req)
	s.mu.Unlock()
	seq := req.GetAfterSeq()
	return s.play(n, player{stream, &seq})
}

func (s *script) SubmitToolResult(_ context.Context, req *sessionv1.SubmitToolResultRequest) (*sessionv1.SubmitToolResultResponse, error) {
	s.results <- req
	return &sessionv1.SubmitToolResultResponse{}, nil
}

func (s *script) ResolveApproval(_ context.Context, req *sessionv1.ResolveApprovalRequest) (*sessionv1.ResolveApprovalResponse, error) {
	return &sessionv1.ResolveApprovalResponse{}, s.resolve(req)
}

// serve serves on loopback until the test ends.
func (s *script) serve(t *testing.T, address string) string {
	t.Helper()
	s.results = make(chan *sessionv1.SubmitToolResultRequest, 10)
	return clienttest.Serve(t, address, s)
}

func (s *script) client(t *testing.T, b fairlead.Backoff) *fairlead.Client {
	t.Helper()
	c, err := fairlead.Connect(s.serve(t, "127.0.0.1:0"), fairlead.Config{Backoff: b})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func hello() *sessionv1.RunTurnRequest {
	return &sessionv1.RunTurnRequest{Parent: clienttest.Session, Text: "hi"}
}

func finished() *sessionv1.Event {
	return &sessionv1.Event{Body: &sessionv1.Event_TurnFinished{TurnFinished: &sessionv1.TurnFinished{State: sessionv1.TurnState_TURN_STATE_COMPLETE}}}
}

func ended(call string) *sessionv1.Event {
	return &sessionv1.Event{Body: &sessionv1.Event_ToolCallFinished{ToolCallFinished: &sessionv1.ToolCallFinished{CallId: call}}}
}

// called are the events of a call that waits for the client.
func called(call, tool string) []*sessionv1.Event {
	return []*sessionv1.Event{
		{Body: &sessionv1.Event_ToolCallArguments{ToolCallArguments: &sessionv1.ToolCallArguments{CallId: call, Tool: tool, ArgumentsJson: "{}"}}},
		{Body: &sessionv1.Event_TurnWaiting{TurnWaiting: &sessionv1.TurnWaiting{CallIds: []string{call}}}},
	}
}

func approval(call string) *sessionv1.Event {
	return &sessionv1.Event{Body: &sessionv1.Event_ApprovalRequested{ApprovalRequested: &sessionv1.ApprovalRequested{CallId: call, Digest: "d"}}}
}

// say is a tool that returns a text.
func say(name, text string) fairlead.Tool {
	return fairlead.Tool{Name: name, Run: func(context.Context, json.RawMessage) (string, error) { return text, nil }}
}
