package integration

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/internal/kit/apierr"
	"github.com/fairlead/fairlead/services/session"
)

// refusal is how a stream ends that shows nothing.
func refusal[T any](stream grpc.ServerStreamingClient[T], err error) error {
	if err == nil {
		_, err = stream.Recv()
	}
	return err
}

func TestANumberBeyondTheLogIsOutOfRange(t *testing.T) {
	t.Parallel()
	f := start(t, hello)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	s := f.session(ctx, t)
	for name, open := range map[string]func() error{
		"StreamEvents": func() error {
			return refusal(f.StreamEvents(ctx, &sessionv1.StreamEventsRequest{Parent: s, AfterSeq: 2}))
		},
		"RunTurn": func() error {
			return refusal(f.RunTurn(ctx, &sessionv1.RunTurnRequest{Parent: s, Text: "hello", AfterSeq: 1 << 60}))
		},
		"Converse": func() error {
			_, err := f.converse(ctx, t, s, 2).Recv()
			return err
		},
	} {
		if err := open(); status.Code(err) != codes.OutOfRange || !apierr.Is(err, sessionv1.ErrorReason_ERROR_REASON_SEQ_OUT_OF_RANGE) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if got := f.states(ctx, t, s); got != "" {
		t.Errorf("a refused turn was accepted: %s", got)
	}
}

func TestAQuietStreamSaysHowFarItIs(t *testing.T) {
	t.Parallel()
	f := start(t, hello)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	stream, err := f.StreamEvents(ctx, &sessionv1.StreamEventsRequest{Parent: f.session(ctx, t)})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for len(got) < 3 {
		resp, err := stream.Recv()
		if err != nil {
			t.Fatal(err)
		}
		if e := resp.GetEvent(); e != nil {
			got = append(got, sessionv1.EventName(e))
		} else if p := resp.GetProgress(); p.GetSeq() == 1 {
			got = append(got, "progress")
		} else {
			t.Errorf("progress says %d, want 1", p.GetSeq())
		}
	}
	if want := "session.created progress progress"; strings.Join(got, " ") != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestADeletedSessionEndsItsFollowers(t *testing.T) {
	t.Parallel()
	f := start(t, hello)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	s := f.session(ctx, t)
	stream, err := f.StreamEvents(ctx, &sessionv1.StreamEventsRequest{Parent: s})
	for err == nil {
		var resp *sessionv1.StreamEventsResponse
		if resp, err = stream.Recv(); resp.GetEvent() != nil {
			_, err = f.DeleteSession(ctx, &sessionv1.DeleteSessionRequest{Name: s, RequestId: "once"})
		}
	}
	if status.Code(err) != codes.NotFound || !apierr.Is(err, sessionv1.ErrorReason_ERROR_REASON_SESSION_NOT_FOUND) {
		t.Errorf("the stream ended with %v", err)
	}
}

func TestALateRepetitionOfADeletionSparesANewSession(t *testing.T) {
	t.Parallel()
	f := start(t, hello)
	ctx := t.Context()
	gone := &sessionv1.DeleteSessionRequest{Name: "sessions/same", RequestId: "once"}
	for _, id := range []string{"first", "second"} {
		if _, err := f.CreateSession(ctx, &sessionv1.CreateSessionRequest{SessionId: "same", RequestId: id}); err != nil {
			t.Fatal(err)
		}
		if _, err := f.DeleteSession(ctx, gone); err != nil {
			t.Fatal(err)
		}
	}
	if got := strings.Join(f.peers.deleted, ", "); got != "tools sessions/same, sandbox sessions/same" {
		t.Errorf("the peers were told to delete %s", got)
	}
	if _, err := f.GetSession(ctx, &sessionv1.GetSessionRequest{Name: "sessions/same"}); err != nil {
		t.Error(err)
	}
}

func TestPagesOfMessagesShowEachOnce(t *testing.T) {
	t.Parallel()
	f := start(t, hello, func(c *session.Config) { c.CompactAt = 0 }) // nothing but what is said
	ctx := t.Context()
	s := f.session(ctx, t)
	long := strings.Repeat("x", 300_000)
	for range 6 {
		f.turn(ctx, t, s, long)
	}
	for _, size := range []int32{1, 3, 1000} {
		seen := map[string]bool{}
		pages := 0
		for token := ""; ; pages++ {
			resp, err := f.ListMessages(ctx, &sessionv1.ListMessagesRequest{Parent: s, PageSize: size, PageToken: token})
			if err != nil {
				t.Fatal(err)
			}
			for _, m := range resp.Messages {
				if seen[m.Name] {
					t.Errorf("page size %d shows %s twice", size, m.Name)
				}
				seen[m.Name] = true
			}
			if token = resp.NextPageToken; token == "" {
				break
			}
		}
		if len(seen) != 12 || pages == 0 {
			t.Errorf("page size %d shows %d messages on %d pages, want 12 on more than one: they have more than a page's bytes", size, len(seen), pages+1)
		}
	}
}

// converse opens a conversation.
func (f *fixture) converse(ctx context.Context, t *testing.T, session string, after int64) grpc.BidiStreamingClient[sessionv1.ConverseRequest, sessionv1.ConverseResponse] {
	t.Helper()
	stream, err := f.Converse(ctx)
	if err != nil {
		t.Fatal(err)
	}
	say(t, stream, &sessionv1.ConverseRequest{Kind: &sessionv1.ConverseRequest_Open{Open: &sessionv1.ConverseOpen{Session: session, AfterSeq: after}}})
	return stream
}

func say(t *testing.T, stream grpc.BidiStreamingClient[sessionv1.ConverseRequest, sessionv1.ConverseResponse], r *sessionv1.ConverseRequest) {
	t.Helper()
	if err := stream.Send(r); err != nil && !errors.Is(err, io.EOF) {
		t.Fatal(err)
	}
}

// hear receives until want says that it is enough.
func hear(t *testing.T, stream grpc.BidiStreamingClient[sessionv1.ConverseRequest, sessionv1.ConverseResponse], want func(*sessionv1.ConverseResponse) bool) *sessionv1.ConverseResponse {
	t.Helper()
	for {
		r, err := stream.Recv()
		if err != nil {
			t.Fatal(err)
		}
		if want(r) {
			return r
		}
	}
}

func answers(r *sessionv1.ConverseResponse) bool {
	return r.GetAccepted() != nil || r.GetRejected() != nil
}

func message(session, text, id string) *sessionv1.ConverseRequest {
	return &sessionv1.ConverseRequest{Kind: &sessionv1.ConverseRequest_CreateTurn{CreateTurn: &sessionv1.CreateTurnRequest{Parent: session, Text: text, RequestId: id}}}
}

func TestAConversationTakesEveryInput(t *testing.T) {
	t.Parallel()
	f := start(t, asking)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	s := f.session(ctx, t)
	stream := f.converse(ctx, t, s, 0)
	say(t, stream, message(s, "write", "mine"))
	if a := hear(t, stream, answers).GetAccepted(); a.GetRequestId() != "mine" || a.GetTurn().GetName() == "" {
		t.Errorf("the message was answered with %v", a)
	}
	say(t, stream, message(s, "another", "mine"))
	if r := hear(t, stream, answers).GetRejected(); status.FromProto(r.GetStatus()).Code() != codes.AlreadyExists {
		t.Errorf("another message under the same id was answered with %v", r)
	}
	ask := hear(t, stream, func(r *sessionv1.ConverseResponse) bool { return r.GetEvent().GetApprovalRequested() != nil }).GetEvent().GetApprovalRequested()
	approval := &sessionv1.ResolveApprovalRequest{Parent: s, CallId: ask.CallId, Digest: ask.Digest, Approved: true}
	say(t, stream, &sessionv1.ConverseRequest{Kind: &sessionv1.ConverseRequest_ResolveApproval{ResolveApproval: approval}})
	if a := hear(t, stream, answers).GetAccepted(); a.GetRequestId() == "" {
		t.Errorf("the approval got no request id: %v", a)
	}
	say(t, stream, &sessionv1.ConverseRequest{Kind: &sessionv1.ConverseRequest_SubmitToolResult{SubmitToolResult: &sessionv1.SubmitToolResultRequest{Parent: s, CallId: "none"}}})
	if r := hear(t, stream, answers).GetRejected(); !apierr.Is(status.ErrorProto(r.GetStatus()), sessionv1.ErrorReason_ERROR_REASON_CALL_NOT_FOUND) {
		t.Errorf("an unexpected result was answered with %v", r)
	}
	say(t, stream, &sessionv1.ConverseRequest{Kind: &sessionv1.ConverseRequest_Interrupt{Interrupt: &sessionv1.InterruptSessionRequest{Name: "sessions/other"}}})
	if r := hear(t, stream, answers).GetRejected(); status.FromProto(r.GetStatus()).Code() != codes.InvalidArgument {
		t.Errorf("an input for another session was answered with %v", r)
	}
	// After half a close the events go on.
	say(t, stream, message(s, "last", ""))
	hear(t, stream, answers)
	if err := stream.CloseSend(); err != nil {
		t.Fatal(err)
	}
	end := hear(t, stream, func(r *sessionv1.ConverseResponse) bool { return r.GetEvent().GetTurnFinished().GetFinalText() == "ok" })
	if end.GetEvent().GetTurnFinished().GetState() != sessionv1.TurnState_TURN_STATE_COMPLETE {
		t.Errorf("the last turn ended %v", end)
	}
}

func TestAConversationThatDoesNotBeginWithOpenIsRefused(t *testing.T) {
	t.Parallel()
	f := start(t, hello)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	s := f.session(ctx, t)
	stream, err := f.Converse(ctx)
	if err != nil {
		t.Fatal(err)
	}
	say(t, stream, message(s, "hello", ""))
	if _, err := stream.Recv(); status.Code(err) != codes.InvalidArgument {
		t.Errorf("a message first: %v", err)
	}
	if stream, err = f.Converse(ctx); err != nil {
		t.Fatal(err)
	}
	if err := stream.CloseSend(); err != nil {
		t.Fatal(err)
	}
	if _, err := stream.Recv(); status.Code(err) != codes.InvalidArgument {
		t.Errorf("nothing at all: %v", err)
	}
	if _, err := f.converse(ctx, t, "sessions/none", 0).Recv(); !apierr.Is(err, sessionv1.ErrorReason_ERROR_REASON_SESSION_NOT_FOUND) {
		t.Errorf("a session that is not there: %v", err)
	}
	stream = f.converse(ctx, t, s, 0)
	say(t, stream, &sessionv1.ConverseRequest{Kind: &sessionv1.ConverseRequest_Open{Open: &sessionv1.ConverseOpen{Session: s}}})
	if r := hear(t, stream, answers).GetRejected(); status.FromProto(r.GetStatus()).Code() != codes.InvalidArgument {
		t.Errorf("open a second time was answered with %v", r)
	}
	if got := f.states(ctx, t, s); got != "" {
		t.Errorf("a refused message became a turn: %s", got)
	}
}

func TestAFollowerThatReadsNothingDuringATurnThenReadsAllOfIt(t *testing.T) {
	t.Parallel()
	f := start(t, `
turns:
  - when: long
    steps: [{text: [`+strings.Repeat(strings.Repeat("word ", 400)+", ", 200)+`end]}]
`, func(c *session.Config) { c.FollowerBuffer = 16 << 10 })
	ctx := t.Context()
	s := f.session(ctx, t)
	stream, err := f.StreamEvents(ctx, &sessionv1.StreamEventsRequest{Parent: s})
	if err != nil {
		t.Fatal(err)
	}
	f.waitForEnd(ctx, t, f.create(ctx, t, s, "long").Name)
	var log []*sessionv1.Event
	for len(log) == 0 || log[len(log)-1].GetTurnFinished() == nil {
		resp, err := stream.Recv()
		if err != nil {
			t.Fatal(err)
		}
		if e := resp.GetEvent(); e != nil {
			log = append(log, e)
		}
	}
	if err := tiles(log); err != nil {
		t.Error(err)
	}
	if got := len(text(log)); got != 200*len(strings.TrimSpace(strings.Repeat("word ", 400)))+len("end") {
		t.Errorf("the stream showed %d bytes of text", got)
	}
}
