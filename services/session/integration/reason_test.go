package integration

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	commonv1 "github.com/fairlead/fairlead/gen/go/fairlead/common/v1"
	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/internal/kit/apierr"
	"github.com/fairlead/fairlead/services/session/internal/store"
	"github.com/fairlead/fairlead/services/session/internal/store/faulty"
)

// firstTurnReason is where the reasons of TurnError begin; those below are
// answers of RPCs.
const firstTurnReason = sessionv1.ErrorReason_ERROR_REASON_MAX_STEPS

// refusals bring about every reason that an RPC can answer.
var refusals = map[sessionv1.ErrorReason]struct {
	code codes.Code
	do   func(ctx context.Context, t *testing.T, f *fixture, db *faulty.Store) error
}{
	sessionv1.ErrorReason_ERROR_REASON_SESSION_NOT_FOUND: {codes.NotFound, func(ctx context.Context, _ *testing.T, f *fixture, _ *faulty.Store) error {
		_, err := f.GetSession(ctx, &sessionv1.GetSessionRequest{Name: "sessions/none"})
		return err
	}},
	sessionv1.ErrorReason_ERROR_REASON_OTHER_USER: {codes.PermissionDenied, func(ctx context.Context, _ *testing.T, f *fixture, _ *faulty.Store) error {
		_, err := sessionv1.NewUserServiceClient(f.conn).DeleteUserStorage(ctx, &sessionv1.DeleteUserStorageRequest{Name: "users/another/storage"})
		return err
	}},
	sessionv1.ErrorReason_ERROR_REASON_MCP_SERVER_NOT_FOUND: {codes.NotFound, func(ctx context.Context, _ *testing.T, f *fixture, _ *faulty.Store) error {
		_, err := sessionv1.NewMcpServiceClient(f.conn).GetUserMcpServer(ctx, &sessionv1.GetUserMcpServerRequest{Name: "users/me/mcpServers/none"})
		return err
	}},
	sessionv1.ErrorReason_ERROR_REASON_MCP_NAME_TAKEN: {codes.InvalidArgument, func(ctx context.Context, _ *testing.T, f *fixture, _ *faulty.Store) error {
		f.peers.lack("operators")
		defer f.peers.lack("")
		_, err := f.CreateSession(ctx, &sessionv1.CreateSessionRequest{Session: &sessionv1.Session{McpServers: []*commonv1.McpServer{wiki("operators")}}})
		return err
	}},
	sessionv1.ErrorReason_ERROR_REASON_INVALID_MCP_SERVER: {codes.InvalidArgument, func(ctx context.Context, _ *testing.T, f *fixture, _ *faulty.Store) error {
		_, err := f.CreateSession(ctx, &sessionv1.CreateSessionRequest{Session: &sessionv1.Session{McpServers: []*commonv1.McpServer{wiki("a"), wiki("a")}}})
		return err
	}},
	sessionv1.ErrorReason_ERROR_REASON_INVALID_PERMISSIONS: {codes.InvalidArgument, func(ctx context.Context, _ *testing.T, f *fixture, _ *faulty.Store) error {
		f.peers.lack("Write(")
		defer f.peers.lack("")
		_, err := f.CreateSession(ctx, &sessionv1.CreateSessionRequest{Session: &sessionv1.Session{Permissions: &commonv1.PermissionRules{Deny: []string{"Write("}}}})
		return err
	}},
	sessionv1.ErrorReason_ERROR_REASON_TURN_NOT_FOUND: {codes.NotFound, func(ctx context.Context, t *testing.T, f *fixture, _ *faulty.Store) error {
		_, err := f.GetTurn(ctx, &sessionv1.GetTurnRequest{Name: f.session(ctx, t) + "/turns/none"})
		return err
	}},
	sessionv1.ErrorReason_ERROR_REASON_AGENT_NOT_FOUND: {codes.NotFound, func(ctx context.Context, _ *testing.T, f *fixture, _ *faulty.Store) error {
		_, err := f.CreateSession(ctx, &sessionv1.CreateSessionRequest{Session: &sessionv1.Session{Agent: "agents/none"}})
		return err
	}},
	sessionv1.ErrorReason_ERROR_REASON_AGENT_MISCONFIGURED: {codes.FailedPrecondition, func(ctx context.Context, t *testing.T, f *fixture, _ *faulty.Store) error {
		f.peers.lack("Bash")
		f.restart(t)
		defer func() { f.peers.lack(""); f.restart(t) }()
		return f.refused(ctx, t, "agents/tester")
	}},
	sessionv1.ErrorReason_ERROR_REASON_SESSION_EXISTS: {codes.AlreadyExists, func(ctx context.Context, _ *testing.T, f *fixture, _ *faulty.Store) error {
		_, _ = f.CreateSession(ctx, &sessionv1.CreateSessionRequest{SessionId: "mine"})
		_, err := f.CreateSession(ctx, &sessionv1.CreateSessionRequest{SessionId: "mine"})
		return err
	}},
	sessionv1.ErrorReason_ERROR_REASON_REQUEST_ID_REUSED: {codes.AlreadyExists, func(ctx context.Context, t *testing.T, f *fixture, _ *faulty.Store) error {
		s := f.session(ctx, t)
		_, _ = f.CreateTurn(ctx, &sessionv1.CreateTurnRequest{Parent: s, Text: "a", RequestId: "r"})
		_, err := f.CreateTurn(ctx, &sessionv1.CreateTurnRequest{Parent: s, Text: "b", RequestId: "r"})
		return err
	}},
	sessionv1.ErrorReason_ERROR_REASON_SESSION_DELETING: {codes.FailedPrecondition, func(ctx context.Context, t *testing.T, f *fixture, _ *faulty.Store) error {
		f.peers.setKeeping(true)
		if _, err := f.DeleteSession(ctx, &sessionv1.DeleteSessionRequest{Name: f.sessionAs(ctx, t, "gone")}); err != nil {
			t.Fatal(err)
		}
		_, err := f.CreateSession(ctx, &sessionv1.CreateSessionRequest{SessionId: "gone"})
		return err
	}},
	sessionv1.ErrorReason_ERROR_REASON_SESSION_ACTIVE: {codes.FailedPrecondition, func(ctx context.Context, t *testing.T, f *fixture, _ *faulty.Store) error {
		s := f.waiting(ctx, t)
		_, err := f.DeleteSession(ctx, &sessionv1.DeleteSessionRequest{Name: s})
		return err
	}},
	sessionv1.ErrorReason_ERROR_REASON_TURN_ACTIVE: {codes.FailedPrecondition, func(ctx context.Context, t *testing.T, f *fixture, _ *faulty.Store) error {
		_, err := f.CreateTurn(ctx, &sessionv1.CreateTurnRequest{Parent: f.waiting(ctx, t), Text: "x", OnActive: sessionv1.OnActive_ON_ACTIVE_REJECT})
		return err
	}},
	sessionv1.ErrorReason_ERROR_REASON_CALL_NOT_WAITING: {codes.FailedPrecondition, func(ctx context.Context, t *testing.T, f *fixture, _ *faulty.Store) error {
		s := f.session(ctx, t)
		f.create(ctx, t, s, "write")
		_, err := f.SubmitToolResult(ctx, &sessionv1.SubmitToolResultRequest{Parent: s, CallId: f.waitForAsk(ctx, t, s).CallId})
		return err
	}},
	sessionv1.ErrorReason_ERROR_REASON_DIGEST_MISMATCH: {codes.FailedPrecondition, func(ctx context.Context, t *testing.T, f *fixture, _ *faulty.Store) error {
		s := f.session(ctx, t)
		f.create(ctx, t, s, "write")
		_, err := f.ResolveApproval(ctx, &sessionv1.ResolveApprovalRequest{Parent: s, CallId: f.waitForAsk(ctx, t, s).CallId, Digest: "other"})
		return err
	}},
	sessionv1.ErrorReason_ERROR_REASON_QUESTION_MISMATCH: {codes.FailedPrecondition, func(ctx context.Context, t *testing.T, f *fixture, _ *faulty.Store) error {
		s := f.session(ctx, t)
		f.create(ctx, t, s, "ask me")
		_, err := f.AnswerQuestion(ctx, &sessionv1.AnswerQuestionRequest{Parent: s, CallId: f.waitForQuestion(ctx, t, s, "1").CallId, QuestionId: "2", Action: decline})
		return err
	}},
	sessionv1.ErrorReason_ERROR_REASON_SEQ_OUT_OF_RANGE: {codes.OutOfRange, func(ctx context.Context, t *testing.T, f *fixture, _ *faulty.Store) error {
		return refusal(f.StreamEvents(ctx, &sessionv1.StreamEventsRequest{Parent: f.session(ctx, t), AfterSeq: 9}))
	}},
	sessionv1.ErrorReason_ERROR_REASON_BAD_PAGE_TOKEN: {codes.InvalidArgument, func(ctx context.Context, _ *testing.T, f *fixture, _ *faulty.Store) error {
		_, err := f.ListSessions(ctx, &sessionv1.ListSessionsRequest{PageToken: "nonsense"})
		return err
	}},
	sessionv1.ErrorReason_ERROR_REASON_STALE_EPOCH: {codes.Aborted, func(ctx context.Context, _ *testing.T, f *fixture, db *faulty.Store) error {
		db.Fail(faulty.GetSession, 1, faulty.Before, fmt.Errorf("driver words: %w", store.ErrStaleEpoch))
		_, err := f.GetSession(ctx, &sessionv1.GetSessionRequest{Name: "sessions/any"})
		return err
	}},
	sessionv1.ErrorReason_ERROR_REASON_STORE_UNAVAILABLE: {codes.Unavailable, func(ctx context.Context, _ *testing.T, f *fixture, db *faulty.Store) error {
		db.Fail(faulty.GetSession, 1, faulty.Before, fmt.Errorf("driver words: %w", store.ErrUnavailable))
		_, err := f.GetSession(ctx, &sessionv1.GetSessionRequest{Name: "sessions/any"})
		return err
	}},
	sessionv1.ErrorReason_ERROR_REASON_QUEUE_FULL: {codes.ResourceExhausted, func(ctx context.Context, t *testing.T, f *fixture, db *faulty.Store) error {
		s := f.session(ctx, t)
		db.Fail(faulty.Submit, 1, faulty.Before, fmt.Errorf("driver words: %w", store.ErrQueueFull))
		_, err := f.CreateTurn(ctx, &sessionv1.CreateTurnRequest{Parent: s, Text: "x"})
		return err
	}},
	sessionv1.ErrorReason_ERROR_REASON_TOOL_NAME_TAKEN: {codes.InvalidArgument, func(ctx context.Context, t *testing.T, f *fixture, _ *faulty.Store) error {
		_, err := f.CreateTurn(ctx, &sessionv1.CreateTurnRequest{Parent: f.session(ctx, t), Text: "x", ClientTools: []*sessionv1.ClientTool{{Name: "mine"}, {Name: "mine"}}})
		return err
	}},
	sessionv1.ErrorReason_ERROR_REASON_LIMIT_ABOVE_CEILING: {codes.InvalidArgument, func(ctx context.Context, t *testing.T, f *fixture, _ *faulty.Store) error {
		_, err := f.CreateTurn(ctx, &sessionv1.CreateTurnRequest{Parent: f.session(ctx, t), Text: "x", Limits: &sessionv1.TurnLimits{MaxOutputTokens: 1 << 62}})
		return err
	}},
	sessionv1.ErrorReason_ERROR_REASON_AGENT_GONE: {codes.FailedPrecondition, func(ctx context.Context, t *testing.T, f *fixture, _ *faulty.Store) error {
		s := f.session(ctx, t)
		f.stop()
		tester := f.config.Agents["tester"]
		tester.Prompt = "Another revision."
		f.config.Agents["tester"] = tester
		f.run(t)
		_, err := f.CreateTurn(ctx, &sessionv1.CreateTurnRequest{Parent: s, Text: "x"})
		return err
	}},
}

// waiting makes a session whose turn waits for an approval.
func (f *fixture) waiting(ctx context.Context, t *testing.T) string {
	t.Helper()
	s := f.session(ctx, t)
	f.create(ctx, t, s, "write")
	f.waitForAsk(ctx, t, s)
	return s
}

func TestEveryReasonThatAnRPCAnswersIsBroughtAbout(t *testing.T) {
	t.Parallel()
	for n, name := range sessionv1.ErrorReason_name {
		r := sessionv1.ErrorReason(n)
		c, ok := refusals[r]
		if !ok {
			if r != sessionv1.ErrorReason_ERROR_REASON_UNSPECIFIED && r < firstTurnReason {
				t.Errorf("no case brings about %s", name)
			}
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var db *faulty.Store
			opened := 0
			f := startFaulty(t, asking, func(s *faulty.Store) {
				db = s
				if opened++; opened > 1 { // after a restart the revision is not found
					s.Fail(faulty.GetAgentRevision, 1, faulty.Before, fmt.Errorf("driver words: %w", store.ErrNotFound))
				}
			})
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
			defer cancel()
			err := c.do(ctx, t, f, db)
			if got, want := apierr.Reason(err), apierr.Name(r); got != want || status.Code(err) != c.code {
				t.Errorf("got %s %v, want %s %s", got, err, c.code, want)
			}
			if apierr.ErrorDomain(err) != "session.fairlead.dev" || strings.Contains(apierr.Message(err), "driver words") || len(apierr.Message(err)) < 30 {
				t.Errorf("the error is of %q and says %q", apierr.ErrorDomain(err), apierr.Message(err))
			}
		})
	}
}
