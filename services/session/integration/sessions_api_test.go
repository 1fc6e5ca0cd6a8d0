package integration

import (
	"slices"
	"testing"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/internal/kit/apierr"
)

func TestASessionBeginsWithItsFirstMessage(t *testing.T) {
	t.Parallel()
	f := start(t, hello)
	ctx := t.Context()
	r := &sessionv1.CreateSessionRequest{RequestId: "r", Session: &sessionv1.Session{
		Title: "one", MetadataJson: `{"n":1}`, FirstMessage: &sessionv1.FirstMessage{Text: "hello"},
	}}
	made, err := f.CreateSession(ctx, r)
	if err != nil || made.Session.FirstTurn == "" || made.Session.FirstMessage != nil || made.Session.MetadataJson != `{"n":1}` {
		t.Fatalf("%v, %v", made, err)
	}
	again, err := f.CreateSession(ctx, r)
	if err != nil || again.Session.Name != made.Session.Name || again.Session.FirstTurn != made.Session.FirstTurn {
		t.Errorf("repeated: %v, %v", again, err)
	}
	f.waitFor(ctx, t, made.Session.Name, func(e *sessionv1.Event) bool { return e.GetTurnFinished() != nil && e.Turn == made.Session.FirstTurn })
	turns, err := f.ListTurns(ctx, &sessionv1.ListTurnsRequest{Parent: made.Session.Name})
	if err != nil || len(turns.Turns) != 1 || turns.Turns[0].Name != made.Session.FirstTurn {
		t.Errorf("the turns are %v, %v", turns, err)
	}
	got, err := f.GetSession(ctx, &sessionv1.GetSessionRequest{Name: made.Session.Name})
	if err != nil || got.Session.FirstTurn != "" {
		t.Errorf("read later: %v, %v", got, err)
	}
	for field, s := range map[string]*sessionv1.Session{
		"session.first_message": {FirstMessage: &sessionv1.FirstMessage{Text: " "}},
		"session.metadata_json": {MetadataJson: "{"},
	} {
		_, err := f.CreateSession(ctx, &sessionv1.CreateSessionRequest{SessionId: "bad", Session: s})
		detail, _ := apierr.Detail[*errdetails.BadRequest](err)
		if status.Code(err) != codes.InvalidArgument || len(detail.GetFieldViolations()) != 1 || detail.FieldViolations[0].Field[:len(field)] != field {
			t.Errorf("%s: %v, %v", field, err, detail)
		}
	}
	_, err = f.GetSession(ctx, &sessionv1.GetSessionRequest{Name: "sessions/bad"})
	refusedAs(t, "a refused session", err, codes.NotFound, sessionv1.ErrorReason_ERROR_REASON_SESSION_NOT_FOUND)
}

func TestAnArchivedSessionIsReadAndNotWritten(t *testing.T) {
	t.Parallel()
	f := start(t, hello)
	ctx := t.Context()
	s := f.session(ctx, t)
	f.turn(ctx, t, s, "hello")
	archived, err := f.ArchiveSession(ctx, &sessionv1.ArchiveSessionRequest{Name: s})
	if err != nil || archived.Session.ArchiveTime == nil {
		t.Fatalf("%v, %v", archived, err)
	}
	_, turn := f.CreateTurn(ctx, &sessionv1.CreateTurnRequest{Parent: s, Text: "x"})
	_, point := f.points().CreateCheckpoint(ctx, &sessionv1.CreateCheckpointRequest{Parent: s})
	_, compact := f.CompactSession(ctx, &sessionv1.CompactSessionRequest{Name: s})
	for what, err := range map[string]error{"a turn": turn, "a checkpoint": point, "a compaction": compact} {
		refusedAs(t, what, err, codes.FailedPrecondition, sessionv1.ErrorReason_ERROR_REASON_ARCHIVED)
	}
	list := func(archived bool) int {
		resp, err := f.ListSessions(ctx, &sessionv1.ListSessionsRequest{Archived: archived})
		if err != nil {
			t.Fatal(err)
		}
		return len(resp.Sessions)
	}
	if list(false) != 0 || list(true) != 1 {
		t.Errorf("%d sessions and %d archived ones are listed", list(false), list(true))
	}
	if m, err := f.ListMessages(ctx, &sessionv1.ListMessagesRequest{Parent: s}); err != nil || len(m.Messages) != 2 {
		t.Errorf("its messages: %v, %v", m, err)
	}
	if _, err := f.ArchiveSession(ctx, &sessionv1.ArchiveSessionRequest{Name: s, Undo: true}); err != nil {
		t.Fatal(err)
	}
	f.turn(ctx, t, s, "hello")
}

func TestASessionReplacesTheOneWithItsKey(t *testing.T) {
	t.Parallel()
	f := start(t, asking)
	ctx := t.Context()
	create := func(id string, replace bool) error {
		_, err := f.CreateSession(ctx, &sessionv1.CreateSessionRequest{SessionId: id, Replace: replace, Session: &sessionv1.Session{Key: "chat/7"}})
		return err
	}
	if err := create("one", false); err != nil {
		t.Fatal(err)
	}
	f.create(ctx, t, "sessions/one", "write")
	f.waitForAsk(ctx, t, "sessions/one")
	taken := create("two", false)
	refusedAs(t, "a key that is taken", taken, codes.AlreadyExists, sessionv1.ErrorReason_ERROR_REASON_KEY_TAKEN)
	if info, _ := apierr.Detail[*errdetails.ErrorInfo](taken); info.GetMetadata()["session"] != "sessions/one" {
		t.Errorf("the error has %v", info)
	}
	_, err := f.ArchiveSession(ctx, &sessionv1.ArchiveSessionRequest{Name: "sessions/one"})
	refusedAs(t, "archiving during a turn", err, codes.FailedPrecondition, sessionv1.ErrorReason_ERROR_REASON_SESSION_ACTIVE)
	if err := create("two", true); err != nil {
		t.Fatal(err)
	}
	end := f.waitFor(ctx, t, "sessions/one", func(e *sessionv1.Event) bool { return e.GetTurnFinished() != nil })
	if end.GetTurnFinished().State != sessionv1.TurnState_TURN_STATE_INTERRUPTED {
		t.Errorf("the turn of the replaced session ended %v", end)
	}
	resp, err := f.ListSessions(ctx, &sessionv1.ListSessionsRequest{Key: "chat/7"})
	if err != nil || len(resp.Sessions) != 1 || resp.Sessions[0].Name != "sessions/two" || resp.Sessions[0].Key != "chat/7" {
		t.Errorf("with the key: %v, %v", resp, err)
	}
}

func TestSessionsAreFoundByWhatTheCallerKeepsWithThem(t *testing.T) {
	t.Parallel()
	f := start(t, asking)
	ctx := t.Context()
	for _, s := range []struct{ id, team string }{{"a", "x"}, {"b", "y"}, {"c", "x"}} {
		if _, err := f.CreateSession(ctx, &sessionv1.CreateSessionRequest{SessionId: s.id, Session: &sessionv1.Session{Labels: map[string]string{"team": s.team, "old": "1"}}}); err != nil {
			t.Fatal(err)
		}
	}
	f.create(ctx, t, "sessions/c", "write")
	f.waitForAsk(ctx, t, "sessions/c")
	title, metadata := "new", "[1]"
	updated, err := f.UpdateSession(ctx, &sessionv1.UpdateSessionRequest{
		Name: "sessions/b", Title: &title, MetadataJson: &metadata, Labels: map[string]string{"team": "z=1"}, RemoveLabels: []string{"old", "none"},
	})
	if err != nil || updated.Session.Title != "new" || updated.Session.MetadataJson != "[1]" || len(updated.Session.Labels) != 1 {
		t.Fatalf("updated %v, %v", updated, err)
	}
	for name, c := range map[string]struct {
		r    *sessionv1.ListSessionsRequest
		want []string
	}{
		"by label":         {&sessionv1.ListSessionsRequest{Labels: []string{"team=x"}}, []string{"c", "a"}},
		"by two labels":    {&sessionv1.ListSessionsRequest{Labels: []string{"team=z=1", "old=1"}}, nil},
		"by a new label":   {&sessionv1.ListSessionsRequest{Labels: []string{"team=z=1"}}, []string{"b"}},
		"waiting":          {&sessionv1.ListSessionsRequest{State: sessionv1.SessionState_SESSION_STATE_WAITING}, []string{"c"}},
		"idle, the oldest": {&sessionv1.ListSessionsRequest{State: sessionv1.SessionState_SESSION_STATE_IDLE, OldestFirst: true}, []string{"a", "b"}},
		"all":              {&sessionv1.ListSessionsRequest{Agent: "tester"}, []string{"c", "b", "a"}},
	} {
		var got []string
		r := c.r
		r.PageSize = 1
		for first := true; first || r.PageToken != ""; first = false {
			resp, err := f.ListSessions(ctx, r)
			if err != nil {
				t.Fatal(err)
			}
			for _, s := range resp.Sessions {
				got = append(got, s.Name[len("sessions/"):])
			}
			r.PageToken = resp.NextPageToken
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
	many := map[string]string{}
	for i := range 32 {
		many["l"+string(rune('a'+i%26))+string(rune('a'+i/26))] = ""
	}
	if _, err := f.UpdateSession(ctx, &sessionv1.UpdateSessionRequest{Name: "sessions/b", Labels: many}); status.Code(err) != codes.InvalidArgument {
		t.Errorf("too many labels: %v", err)
	}
	bad := "{"
	if _, err := f.UpdateSession(ctx, &sessionv1.UpdateSessionRequest{Name: "sessions/b", MetadataJson: &bad}); status.Code(err) != codes.InvalidArgument {
		t.Errorf("metadata that is not JSON: %v", err)
	}
}
