// Package clienttest is a session service for tests of clients: it plays a
// script of events, breaks streams where a test wants it, and records its
// requests.
package clienttest

import (
	"context"
	"net"
	"slices"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
)

// Session is the name of the one session there is.
const Session = "sessions/s1"

// Server plays Events as every turn.
type Server struct {
	sessionv1.UnimplementedSessionServiceServer
	Address string
	// Events of the turn, from sequence number 1 on if they have none.
	Events []*sessionv1.Event
	// BreakAfter breaks the nth stream with UNAVAILABLE after so many of its
	// events; streams beyond play to the end.
	BreakAfter []int
	// Hold stops the stream before the event with this sequence number until
	// Release is called; 0 for none.
	Hold int64
	// Deaf makes InterruptSession do nothing.
	Deaf bool
	// Refuse is what CreateSession answers instead.
	Refuse error

	mu       sync.Mutex
	requests []proto.Message
	released chan struct{}
	once     sync.Once
}

// Start serves on loopback until the test ends.
func (s *Server) Start(t *testing.T) *Server {
	t.Helper()
	s.released = make(chan struct{})
	for i, e := range s.Events {
		if e.GetSeq() == 0 {
			e.FirstSeq, e.Seq = int64(i+1), int64(i+1)
		}
		e.Turn = Session + "/turns/t1"
		e.Time = timestamppb.New(time.Date(2026, 11, 21, 12, 0, i, 0, time.UTC))
	}
	s.Address = Serve(t, "127.0.0.1:0", s)
	return s
}

// Serve serves a session service at an address until the test ends, and returns the address.
func Serve(t *testing.T, address string, s sessionv1.SessionServiceServer) string {
	t.Helper()
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer()
	sessionv1.RegisterSessionServiceServer(server, s)
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(l) }()
	t.Cleanup(func() {
		server.Stop()
		if err := <-ended; err != nil {
			t.Errorf("serve: %v", err)
		}
	})
	return l.Addr().String()
}

// Release lets streams go on that Hold has stopped.
func (s *Server) Release() { s.once.Do(func() { close(s.released) }) }

// Requests returns all requests so far, in order.
func (s *Server) Requests() []proto.Message {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.requests)
}

func (s *Server) note(m proto.Message) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests = append(s.requests, m)
}

// CreateSession answers the one session.
func (s *Server) CreateSession(_ context.Context, req *sessionv1.CreateSessionRequest) (*sessionv1.CreateSessionResponse, error) {
	s.note(req)
	if s.Refuse != nil {
		return nil, s.Refuse
	}
	return &sessionv1.CreateSessionResponse{Session: &sessionv1.Session{Name: Session}}, nil
}

// GetSession answers the one session.
func (s *Server) GetSession(_ context.Context, req *sessionv1.GetSessionRequest) (*sessionv1.GetSessionResponse, error) {
	s.note(req)
	return &sessionv1.GetSessionResponse{Session: &sessionv1.Session{Name: Session, Agent: "agents/coder", Title: "a\x1b[2J title"}}, nil
}

// ListSessions answers two pages of one session each.
func (s *Server) ListSessions(_ context.Context, req *sessionv1.ListSessionsRequest) (*sessionv1.ListSessionsResponse, error) {
	s.note(req)
	if req.GetPageToken() == "" {
		return &sessionv1.ListSessionsResponse{Sessions: []*sessionv1.Session{{Name: Session, Agent: "agents/coder", Title: "a\x1b[2J title"}}, NextPageToken: "2"}, nil
	}
	return &sessionv1.ListSessionsResponse{Sessions: []*sessionv1.Session{{Name: "sessions/another", Agent: "agents/assistant", FinishedTurns: 12}}}, nil
}

// ListTurns answers one turn.
func (s *Server) ListTurns(_ context.Context, req *sessionv1.ListTurnsRequest) (*sessionv1.ListTurnsResponse, error) {
	s.note(req)
	return &sessionv1.ListTurnsResponse{Turns: []*sessionv1.Turn{{Name: Session + "/turns/t1", State: sessionv1.TurnState_TURN_STATE_COMPLETE, FinalText: "done"}}}, nil
}

// ListEvents answers pages of two events.
func (s *Server) ListEvents(_ context.Context, req *sessionv1.ListEventsRequest) (*sessionv1.ListEventsResponse, error) {
	s.note(req)
	size := 2
	if req.GetPageSize() > 0 {
		size = min(size, int(req.GetPageSize()))
	}
	from := 0
	if token := req.GetPageToken(); token != "" {
		from = int(token[0] - '0')
	}
	resp := &sessionv1.ListEventsResponse{Events: s.Events[from:min(from+size, len(s.Events))]}
	if from+size < len(s.Events) {
		resp.NextPageToken = string(rune('0' + from + size))
	}
	return resp, nil
}

// RunTurn plays the events after the asked sequence number.
func (s *Server) RunTurn(req *sessionv1.RunTurnRequest, stream grpc.ServerStreamingServer[sessionv1.RunTurnResponse]) error {
	s.note(req)
	return s.play(stream.Context(), req.GetAfterSeq(), func(e *sessionv1.Event) error {
		return stream.Send(&sessionv1.RunTurnResponse{Kind: &sessionv1.RunTurnResponse_Event{Event: e}})
	})
}

// StreamEvents plays the events after the asked sequence number and stays.
func (s *Server) StreamEvents(req *sessionv1.StreamEventsRequest, stream grpc.ServerStreamingServer[sessionv1.StreamEventsResponse]) error {
	s.note(req)
	err := s.play(stream.Context(), req.GetAfterSeq(), func(e *sessionv1.Event) error {
		return stream.Send(&sessionv1.StreamEventsResponse{Kind: &sessionv1.StreamEventsResponse_Event{Event: e}})
	})
	if err == nil {
		<-stream.Context().Done()
	}
	return err
}

func (s *Server) play(ctx context.Context, after int64, send func(*sessionv1.Event) error) error {
	s.mu.Lock()
	limit := len(s.Events) + 1
	if len(s.BreakAfter) > 0 {
		limit, s.BreakAfter = s.BreakAfter[0], s.BreakAfter[1:]
	}
	s.mu.Unlock()
	for _, e := range s.Events {
		if e.GetSeq() <= after {
			continue
		}
		if limit--; limit < 0 {
			return status.Error(codes.Unavailable, "the test breaks the stream")
		}
		if s.Hold > 0 && e.GetSeq() >= s.Hold {
			select {
			case <-s.released:
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		if err := send(e); err != nil {
			return err
		}
	}
	if limit == 0 { // after all of them
		return status.Error(codes.Unavailable, "the test breaks the stream")
	}
	return nil
}

// InterruptSession lets a held stream go on.
func (s *Server) InterruptSession(_ context.Context, req *sessionv1.InterruptSessionRequest) (*sessionv1.InterruptSessionResponse, error) {
	s.note(req)
	if s.Deaf {
		return &sessionv1.InterruptSessionResponse{}, nil
	}
	s.Release()
	return &sessionv1.InterruptSessionResponse{Turn: Session + "/turns/t1"}, nil
}

// ResolveApproval lets a held stream go on.
func (s *Server) ResolveApproval(_ context.Context, req *sessionv1.ResolveApprovalRequest) (*sessionv1.ResolveApprovalResponse, error) {
	s.note(req)
	s.Release()
	return &sessionv1.ResolveApprovalResponse{}, nil
}

// AnswerQuestion lets a held stream go on.
func (s *Server) AnswerQuestion(_ context.Context, req *sessionv1.AnswerQuestionRequest) (*sessionv1.AnswerQuestionResponse, error) {
	s.note(req)
	s.Release()
	return &sessionv1.AnswerQuestionResponse{}, nil
}

// Turn returns a short turn that ends in state.
func Turn(state sessionv1.TurnState) []*sessionv1.Event {
	end := &sessionv1.TurnFinished{State: state, Steps: 1, FinalText: "Hello.", Usage: &sessionv1.Usage{InputTokens: 10, OutputTokens: 3, CostNanoUsd: 1_500_000}}
	if state != sessionv1.TurnState_TURN_STATE_COMPLETE {
		end.Error = &sessionv1.TurnError{Reason: "A_REASON", Message: "Something stopped it."}
	}
	return []*sessionv1.Event{
		{Body: &sessionv1.Event_TurnQueued{TurnQueued: &sessionv1.TurnQueued{}}},
		{Body: &sessionv1.Event_TurnStarted{TurnStarted: &sessionv1.TurnStarted{Model: "anthropic:test"}}},
		{Body: &sessionv1.Event_TextStarted{TextStarted: &sessionv1.TextStarted{}}},
		Text("Hel"), Text("lo."),
		{Body: &sessionv1.Event_TextFinished{TextFinished: &sessionv1.TextFinished{}}},
		{Body: &sessionv1.Event_TurnFinished{TurnFinished: end}},
	}
}

// Text returns an event with text.
func Text(text string) *sessionv1.Event {
	return &sessionv1.Event{Body: &sessionv1.Event_TextDelta{TextDelta: &sessionv1.TextDelta{Text: text}}}
}
