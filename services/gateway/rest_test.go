package gateway_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"

	commonv1 "github.com/fairlead/fairlead/gen/go/fairlead/common/v1"
	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	toolsv1 "github.com/fairlead/fairlead/gen/go/fairlead/tools/v1"
	"github.com/fairlead/fairlead/services/gateway"
	"github.com/fairlead/fairlead/services/internal/kit/apierr"
	"github.com/fairlead/fairlead/services/internal/kit/auth/internaltoken"
	"github.com/fairlead/fairlead/services/internal/kit/principal"
)

func TestRequestsReachTheirRPC(t *testing.T) {
	f := &fake{}
	srv := serve(t, f)
	key := http.Header{"Idempotency-Key": {"k1"}}
	for _, c := range []struct {
		name string
		in   request
		want proto.Message
		body string
	}{
		{
			"a session is created from its resource", request{"POST", "/v1/sessions", `{"agent":"coder"}`, key},
			&sessionv1.CreateSessionRequest{Session: &sessionv1.Session{Agent: "coder"}, RequestId: "k1"},
			`{"name":"sessions/s1","agent":"coder","lastSeq":"1152921504606846976"}`,
		},
		{
			"a session needs no body", request{"POST", "/v1/sessions", "", key},
			&sessionv1.CreateSessionRequest{RequestId: "k1"}, `{"name":"sessions/s1","lastSeq":"1152921504606846976"}`,
		},
		{
			"an id of one's own is a query parameter", request{"POST", "/v1/sessions?session_id=mine", `{}`, key},
			&sessionv1.CreateSessionRequest{Session: &sessionv1.Session{}, SessionId: "mine", RequestId: "k1"}, "",
		},
		{"a session is read", request{"GET", "/v1/sessions/s1", "", nil}, &sessionv1.GetSessionRequest{Name: "sessions/s1"}, `{"name":"sessions/s1"}`},
		{
			"a list takes its page in lowerCamelCase", request{"GET", "/v1/sessions?pageSize=5&agent=coder", "", nil},
			&sessionv1.ListSessionsRequest{PageSize: 5, Agent: "coder"}, `{}`,
		},
		{
			"a list takes its page in snake_case", request{"GET", "/v1/sessions?page_size=5&page_token=x", "", nil},
			&sessionv1.ListSessionsRequest{PageSize: 5, PageToken: "x"}, `{}`,
		},
		{"a session is deleted", request{"DELETE", "/v1/sessions/s1", "", key}, &sessionv1.DeleteSessionRequest{Name: "sessions/s1", RequestId: "k1"}, `{}`},
		{
			"a turn has a short form", request{"POST", "/v1/sessions/s1/turns", `{"text":"hi"}`, key},
			&sessionv1.CreateTurnRequest{Parent: "sessions/s1", Text: "hi", RequestId: "k1"}, `{"name":"sessions/s1/turns/t1"}`,
		},
		{
			"a turn's key may be in its body", request{"POST", "/v1/sessions/s1/turns", `{"text":"hi","requestId":"k2"}`, nil},
			&sessionv1.CreateTurnRequest{Parent: "sessions/s1", Text: "hi", RequestId: "k2"}, "",
		},
		{
			"a body may repeat the path", request{"POST", "/v1/sessions/s1/turns", `{"parent":"sessions/s1","text":"hi"}`, key},
			&sessionv1.CreateTurnRequest{Parent: "sessions/s1", Text: "hi", RequestId: "k1"}, "",
		},
		{"the caller is not a user called me", request{"GET", "/v1/users/me", "", nil}, &sessionv1.GetCurrentUserRequest{}, `{"user":"users/ann"}`},
		{"a user is read", request{"GET", "/v1/users/bob@example.com", "", nil}, &sessionv1.GetUserRequest{Name: "users/bob@example.com"}, `{"name":"users/bob@example.com"}`},
		{
			"a user is created with its id", request{"POST", "/v1/users?user_id=bob", `{"role":"ROLE_OPERATOR"}`, key},
			&sessionv1.CreateUserRequest{UserId: "bob", User: &sessionv1.User{Role: commonv1.Role_ROLE_OPERATOR}, RequestId: "k1"}, "",
		},
		{
			"what the body has of a user is changed", request{"PATCH", "/v1/users/bob", `{"title":"","role":"ROLE_VIEWER"}`, key},
			&sessionv1.UpdateUserRequest{Name: "users/bob", Title: proto.String(""), Role: commonv1.Role_ROLE_VIEWER.Enum(), RequestId: "k1"}, "",
		},
		{
			"a key needs no body", request{"POST", "/v1/keys", "", key},
			&sessionv1.CreateKeyRequest{RequestId: "k1"}, `{"key":{"name":"keys/k1"},"secret":"fl_x"}`,
		},
		{
			"a key is revoked", request{"POST", "/v1/keys/k1:revoke", "", key},
			&sessionv1.RevokeKeyRequest{Name: "keys/k1", RequestId: "k1"}, `{"name":"keys/k1"}`,
		},
		{"a turn is read", request{"GET", "/v1/sessions/s1/turns/t1", "", nil}, &sessionv1.GetTurnRequest{Name: "sessions/s1/turns/t1"}, ""},
		{"turns are listed", request{"GET", "/v1/sessions/s1/turns", "", nil}, &sessionv1.ListTurnsRequest{Parent: "sessions/s1"}, ""},
		{
			"events are a page of JSON", request{"GET", "/v1/sessions/s1/events?after_seq=2", "", http.Header{"Accept": {"*/*"}}},
			&sessionv1.ListEventsRequest{Parent: "sessions/s1", AfterSeq: 2},
			`{"events":[{"firstSeq":"3","seq":"3","turn":"sessions/s1/turns/t1","step":1,"textDelta":{"text":"hi"}}]}`,
		},
		{"messages are listed", request{"GET", "/v1/sessions/s1/messages", "", nil}, &sessionv1.ListMessagesRequest{Parent: "sessions/s1"}, ""},
		{
			"an interrupt needs no body", request{"POST", "/v1/sessions/s1:interrupt", "", key},
			&sessionv1.InterruptSessionRequest{Name: "sessions/s1", RequestId: "k1"}, `{}`,
		},
		{
			"an approval is resolved",
			request{"POST", "/v1/sessions/s1/approvals:resolve", `{"callId":"t1.1.0","digest":"d","approved":true}`, key},
			&sessionv1.ResolveApprovalRequest{Parent: "sessions/s1", CallId: "t1.1.0", Digest: "d", Approved: true, RequestId: "k1"}, `{}`,
		},
		{
			"a tool result is submitted",
			request{"POST", "/v1/sessions/s1/toolResults", `{"callId":"t1.1.0","content":[{"text":{"text":"x"}}]}`, key},
			&sessionv1.SubmitToolResultRequest{Parent: "sessions/s1", CallId: "t1.1.0", RequestId: "k1", Content: []*commonv1.Content{
				{Kind: &commonv1.Content_Text{Text: &commonv1.Text{Text: "x"}}},
			}}, `{}`,
		},
		{"an agent is read", request{"GET", "/v1/agents/coder", "", nil}, &sessionv1.GetAgentRequest{Name: "agents/coder"}, ""},
		{"an agent is created", request{"POST", "/v1/agents?agent_id=fixer", `{"profile":"full","maxSteps":3}`, key}, &sessionv1.CreateAgentRequest{
			AgentId: "fixer", RequestId: "k1", Spec: &sessionv1.AgentSpec{Profile: "full", MaxSteps: 3},
		}, ""},
		{"an agent is changed", request{"PUT", "/v1/agents/fixer?expected_version=2", `{"profile":"full"}`, key}, &sessionv1.UpdateAgentRequest{
			Name: "agents/fixer", ExpectedVersion: 2, RequestId: "k1", Spec: &sessionv1.AgentSpec{Profile: "full"},
		}, ""},
		{"an agent's version is read", request{"GET", "/v1/agents/fixer/versions/2", "", nil}, &sessionv1.GetAgentVersionRequest{Name: "agents/fixer/versions/2"}, ""},
		{"agents are listed", request{"GET", "/v1/agents", "", nil}, &sessionv1.ListAgentsRequest{}, ""},
		{"budgets are listed", request{"GET", "/v1/budgets?session=sessions/s1", "", nil}, &sessionv1.ListBudgetsRequest{Session: "sessions/s1"}, ""},
		{"capabilities are told", request{"GET", "/v1/capabilities", "", nil}, &sessionv1.GetCapabilitiesRequest{}, `{"version":"v0","sandboxUnavailable":"away"}`},
		{"a tool is read", request{"GET", "/v1/tools/Bash", "", nil}, &toolsv1.GetToolRequest{Name: "tools/Bash"}, ""},
		{"tools are listed", request{"GET", "/v1/tools", "", nil}, &toolsv1.ListToolsRequest{}, ""},
		{"an operation is read", request{"GET", "/v1/operations/t1.1.0", "", nil}, &toolsv1.GetOperationRequest{Name: "operations/t1.1.0"}, ""},
		{
			"operations of a session are listed",
			request{"GET", "/v1/operations?session=sessions/s1", "", nil},
			&toolsv1.ListOperationsRequest{Session: "sessions/s1"}, "",
		},
		{
			"an operation is cancelled",
			request{"POST", "/v1/operations/t1.1.0:cancel", `{}`, key},
			&toolsv1.CancelOperationRequest{Name: "operations/t1.1.0", RequestId: "k1"}, "",
		},
		{
			"a schedule is created from its resource",
			request{"POST", "/v1/sessions/s1/schedules?schedule_id=c1", `{"cron":"30 6 * * 1-5","timeZone":"Europe/Berlin","text":"hi","onActive":"ON_ACTIVE_STEER"}`, key},
			&sessionv1.CreateScheduleRequest{
				Parent: "sessions/s1", ScheduleId: "c1", RequestId: "k1",
				Schedule: &sessionv1.Schedule{Cron: "30 6 * * 1-5", TimeZone: "Europe/Berlin", Text: "hi", OnActive: sessionv1.OnActive_ON_ACTIVE_STEER},
			}, `{"name":"sessions/s1/schedules/c1"}`,
		},
		{
			"a schedule is read", request{"GET", "/v1/sessions/s1/schedules/c1", "", nil},
			&sessionv1.GetScheduleRequest{Name: "sessions/s1/schedules/c1"}, `{"name":"sessions/s1/schedules/c1"}`,
		},
		{
			"schedules are listed", request{"GET", "/v1/sessions/s1/schedules?page_size=5", "", nil},
			&sessionv1.ListSchedulesRequest{Parent: "sessions/s1", PageSize: 5}, `{}`,
		},
		{
			"a schedule is paused", request{"POST", "/v1/sessions/s1/schedules/c1:pause", `{"paused":true}`, key},
			&sessionv1.PauseScheduleRequest{Name: "sessions/s1/schedules/c1", Paused: true, RequestId: "k1"},
			`{"name":"sessions/s1/schedules/c1","paused":true}`,
		},
		{
			"a schedule is deleted", request{"DELETE", "/v1/sessions/s1/schedules/c1", "", key},
			&sessionv1.DeleteScheduleRequest{Name: "sessions/s1/schedules/c1", RequestId: "k1"}, `{}`,
		},
		{
			"a webhook is created, and its secret told",
			request{"POST", "/v1/webhooks?webhookId=w1", `{"url":"https://example.com/hook","session":"sessions/s1"}`, key},
			&sessionv1.CreateWebhookRequest{
				WebhookId: "w1", RequestId: "k1", Webhook: &sessionv1.Webhook{Url: "https://example.com/hook", Session: "sessions/s1"},
			}, `{"webhook":{"name":"webhooks/w1"},"secret":"whsec_x"}`,
		},
		{"a webhook is read", request{"GET", "/v1/webhooks/w1", "", nil}, &sessionv1.GetWebhookRequest{Name: "webhooks/w1"}, `{"name":"webhooks/w1"}`},
		{
			"a webhook's secret is rotated", request{"POST", "/v1/webhooks/w1:rotateSecret", `{"revokeOld":true}`, key},
			&sessionv1.RotateWebhookSecretRequest{Name: "webhooks/w1", RevokeOld: true, RequestId: "k1"}, `{"webhook":{"name":"webhooks/w1"},"secret":"whsec_y"}`,
		},
		{
			"a rotation needs no body", request{"POST", "/v1/webhooks/w1:rotateSecret", "", key},
			&sessionv1.RotateWebhookSecretRequest{Name: "webhooks/w1", RequestId: "k1"}, "",
		},
		{"webhooks are listed", request{"GET", "/v1/webhooks?page_token=x", "", nil}, &sessionv1.ListWebhooksRequest{PageToken: "x"}, `{}`},
		{"a webhook is deleted", request{"DELETE", "/v1/webhooks/w1", "", key}, &sessionv1.DeleteWebhookRequest{Name: "webhooks/w1", RequestId: "k1"}, `{}`},
		{
			"deliveries are listed", request{"GET", "/v1/webhooks/w1/deliveries?page_size=2", "", nil},
			&sessionv1.ListDeliveriesRequest{Parent: "webhooks/w1", PageSize: 2}, `{}`,
		},
		{
			"messages are searched", request{"GET", "/v1/messages:search?query=two+words*&session=sessions/s1&pageSize=3", "", nil},
			&sessionv1.SearchMessagesRequest{Query: "two words*", Session: "sessions/s1", PageSize: 3}, `{}`,
		},
		{
			"a session is forked", request{"POST", "/v1/sessions/s1:fork", `{"turn":"sessions/s1/turns/t1","withoutFiles":true}`, key},
			&sessionv1.ForkSessionRequest{Name: "sessions/s1", Turn: "sessions/s1/turns/t1", WithoutFiles: true, RequestId: "k1"}, `{"name":"sessions/s2"}`,
		},
		{
			"a fork needs no body", request{"POST", "/v1/sessions/s1:fork", "", key},
			&sessionv1.ForkSessionRequest{Name: "sessions/s1", RequestId: "k1"}, `{"name":"sessions/s2"}`,
		},
		{
			"a checkpoint is made", request{"POST", "/v1/sessions/s1/checkpoints", `{"description":"d"}`, key},
			&sessionv1.CreateCheckpointRequest{Parent: "sessions/s1", Checkpoint: &sessionv1.Checkpoint{Description: "d"}, RequestId: "k1"},
			`{"name":"sessions/s1/checkpoints/c1","description":"d"}`,
		},
		{
			"an answer is judged", request{"POST", "/v1/sessions/s1/feedback", `{"turn":"sessions/s1/turns/t1","value":"FEEDBACK_VALUE_POSITIVE"}`, key},
			&sessionv1.CreateFeedbackRequest{Parent: "sessions/s1", Feedback: &sessionv1.Feedback{Turn: "sessions/s1/turns/t1", Value: sessionv1.FeedbackValue_FEEDBACK_VALUE_POSITIVE}, RequestId: "k1"},
			`{"name":"sessions/s1/feedback/f1","turn":"sessions/s1/turns/t1"}`,
		},
		{
			"feedback is listed", request{"GET", "/v1/sessions/s1/feedback?pageSize=2", "", nil},
			&sessionv1.ListFeedbackRequest{Parent: "sessions/s1", PageSize: 2}, `{}`,
		},
		{
			"a checkpoint is read", request{"GET", "/v1/sessions/s1/checkpoints/c1", "", nil},
			&sessionv1.GetCheckpointRequest{Name: "sessions/s1/checkpoints/c1"}, `{"name":"sessions/s1/checkpoints/c1"}`,
		},
		{
			"checkpoints are listed", request{"GET", "/v1/sessions/s1/checkpoints?pageSize=2", "", nil},
			&sessionv1.ListCheckpointsRequest{Parent: "sessions/s1", PageSize: 2}, `{}`,
		},
		{
			"a session is rewound", request{"POST", "/v1/sessions/s1:rewind", `{"checkpoint":"sessions/s1/checkpoints/c1"}`, key},
			&sessionv1.RewindSessionRequest{Name: "sessions/s1", Checkpoint: "sessions/s1/checkpoints/c1", RequestId: "k1"}, `{"checkpoint":"sessions/s1/checkpoints/c1"}`,
		},
		{
			"a session is rewound to its last checkpoint but one", request{"POST", "/v1/sessions/s1:rewind", `{"latestButOne":true}`, key},
			&sessionv1.RewindSessionRequest{Name: "sessions/s1", LatestButOne: true, RequestId: "k1"}, `{}`,
		},
		{
			"a session is compacted", request{"POST", "/v1/sessions/s1:compact", `{"instructions":"keep the names"}`, key},
			&sessionv1.CompactSessionRequest{Name: "sessions/s1", Instructions: "keep the names", RequestId: "k1"}, `{}`,
		},
		{
			"a compaction needs no body", request{"POST", "/v1/sessions/s1:compact", "", key},
			&sessionv1.CompactSessionRequest{Name: "sessions/s1", RequestId: "k1"}, `{}`,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := do(t, srv, c.in)
			if got.code != http.StatusOK {
				t.Fatalf("status %d: %s", got.code, got.body)
			}
			if c.body != "" && got.body != c.body+"\n" {
				t.Errorf("body\n%swant\n%s", got.body, c.body)
			}
			last, _ := f.last()
			if diff := cmp.Diff(c.want, last, protocmp.Transform()); diff != "" {
				t.Errorf("request (-want +got):\n%s", diff)
			}
			if ct, cc := got.header.Get("Content-Type"), got.header.Get("Cache-Control"); ct != "application/json" || cc != "no-store" {
				t.Errorf("Content-Type %q, Cache-Control %q", ct, cc)
			}
			if k := got.header.Get("Idempotency-Key"); c.in.header.Get("Idempotency-Key") != "" && k != "k1" {
				t.Errorf("Idempotency-Key %q, want k1", k)
			}
		})
	}
}

func TestAKeyIsMadeAndReturnedWhenThereIsNone(t *testing.T) {
	srv := serve(t, &fake{})
	got := do(t, srv, request{"POST", "/v1/sessions", "", nil})
	if key := got.header.Get("Idempotency-Key"); len(key) < 16 {
		t.Errorf("Idempotency-Key %q", key)
	}
}

func TestBadRequestsAreRefusedBeforeAnythingHappens(t *testing.T) {
	f := &fake{}
	srv := serve(t, f, func(c *gateway.Config) { c.MaxBody = 8 << 10 })
	turn := "/v1/sessions/s1/turns"
	long := strings.Repeat("x", 9<<10)
	for _, c := range []struct {
		name          string
		in            request
		code          int
		reason, field string
		words         string
	}{
		{"an unknown path", request{"GET", "/v1/nothing", "", nil}, 404, "PATH_NOT_FOUND", "", "/v1/nothing"},
		{"an unknown verb", request{"POST", "/v1/sessions/s1:explode", "", nil}, 404, "PATH_NOT_FOUND", "", ""},
		{"a path with one slash too many", request{"GET", "/v1/sessions/", "", nil}, 404, "PATH_NOT_FOUND", "", ""},
		{"a long unknown path is not repeated whole", request{"GET", "/" + long, "", nil}, 404, "PATH_NOT_FOUND", "", "…"},
		{"the verb of another collection", request{"POST", "/v1/sessions/s1:pause", `{}`, nil}, 404, "PATH_NOT_FOUND", "", ":pause"},
		{"a session's verb on all sessions", request{"POST", "/v1/sessions:fork", `{}`, nil}, 404, "PATH_NOT_FOUND", "", ":fork"},
		{"a verb on a schedule's session", request{"POST", "/v1/sessions/s1/schedules:pause", `{}`, nil}, 404, "PATH_NOT_FOUND", "", ""},
		{"a search by another method", request{"POST", "/v1/messages:search", `{}`, nil}, 405, "METHOD_NOT_ALLOWED", "", "GET, HEAD, OPTIONS"},
		{"a method that the path has not", request{"PUT", turn, `{}`, nil}, 405, "METHOD_NOT_ALLOWED", "", "GET, HEAD, OPTIONS, POST"},
		{"a verb by another method", request{"GET", "/v1/sessions/s1:interrupt", "", nil}, 405, "METHOD_NOT_ALLOWED", "", "OPTIONS, POST"},
		{"HEAD of a stream", request{"HEAD", "/v1/sessions/s1/events:stream", "", nil}, 405, "", "", ""},
		{"a method of another's making", request{"POST", "/v1/sessions/s1", "", http.Header{"X-Http-Method-Override": {"DELETE"}}}, 405, "METHOD_NOT_ALLOWED", "", ""},
		{"an unknown field", request{"POST", turn, `{"text":"x","shape":"red"}`, nil}, 400, "BODY_MALFORMED", "shape", "line 1, column 13"},
		{"a field given twice", request{"POST", turn, `{"text":"x","text":"y"}`, nil}, 400, "BODY_MALFORMED", "text", ""},
		{"a field of another type", request{"POST", turn, `{"text":5}`, nil}, 400, "BODY_MALFORMED", "text", ""},
		{"an unknown enum value", request{"POST", turn, `{"text":"x","onActive":"MAYBE"}`, nil}, 400, "BODY_MALFORMED", "onActive", ""},
		{"half an object", request{"POST", turn, `{"text":`, nil}, 400, "BODY_MALFORMED", "", "in the middle"},
		{"two objects", request{"POST", turn, `{"text":"x"} {"text":"y"}`, nil}, 400, "BODY_MALFORMED", "", "column 14"},
		{"an array", request{"POST", turn, `[]`, nil}, 400, "BODY_MALFORMED", "", ""},
		{"null", request{"POST", turn, `null`, nil}, 400, "BODY_MALFORMED", "", ""},
		{"bytes that are not UTF-8", request{"POST", turn, "{\"text\":\"\xff\"}", nil}, 400, "BODY_MALFORMED", "", "UTF-8"},
		{"a long unknown field is not repeated whole", request{"POST", turn, `{"` + long[:8000] + `":1}`, nil}, 400, "BODY_MALFORMED", "", "…"},
		{"a body that contradicts the path", request{"POST", turn, `{"parent":"sessions/s2","text":"x"}`, nil}, 400, "BODY_MALFORMED", "parent", ""},
		{"a body that is too large", request{"POST", turn, `{"text":"` + long + `"}`, nil}, 413, "BODY_TOO_LARGE", "", "8192"},
		{"a body of another type", request{"POST", turn, `text=x`, http.Header{"Content-Type": {"text/plain"}}}, 415, "UNSUPPORTED_MEDIA_TYPE", "", "application/json"},
		{"a body that is compressed", request{"POST", turn, "\x1f\x8b", http.Header{"Content-Encoding": {"gzip"}}}, 415, "UNSUPPORTED_ENCODING", "", "Content-Encoding says gzip; send the body as it is"},
		{"a stream's body that is compressed", request{"POST", turn + ":stream", "\x1f\x8b", http.Header{"Content-Encoding": {"identity", "br"}}}, 415, "UNSUPPORTED_ENCODING", "", "br"},
		{"a conversation that is compressed", request{"POST", "/v1/sessions:converse", "x", http.Header{"Content-Encoding": {"zstd"}}}, 415, "UNSUPPORTED_ENCODING", "", "zstd"},
		{"a file that is compressed", request{"POST", "/v1/sessions:import", "x", http.Header{"Content-Encoding": {"gzip"}}}, 415, "UNSUPPORTED_ENCODING", "", "gzip"},
		{"a text with half of a surrogate pair", request{"POST", turn, `{"text":"a\ud83d"}`, nil}, 400, "BODY_MALFORMED", "text", `\ud83d is half of a surrogate pair`},
		{"a slash at the end of a collection", request{"GET", "/v1/sessions/", "", nil}, 404, "PATH_NOT_FOUND", "", "leave out the slash at the end: /v1/sessions"},
		{"slashes at the end of a verb", request{"POST", turn + ":stream//", `{"text":"x"}`, nil}, 404, "PATH_NOT_FOUND", "", "leave out the slash at the end: " + turn + ":stream"},
		{"a slash at the end of a file", request{"GET", "/v1/sessions/s1:export/", "", nil}, 404, "PATH_NOT_FOUND", "", "leave out the slash"},
		{"a slash at the end of the specification", request{"GET", "/openapi.json/", "", nil}, 404, "PATH_NOT_FOUND", "", "leave out the slash"},
		{"a slash at the end of what is nowhere", request{"GET", "/v1/nothing/", "", nil}, 404, "PATH_NOT_FOUND", "", "lists the paths"},
		{"a body of no type", request{"POST", turn, `{}`, http.Header{"Content-Type": nil}}, 400, "INVALID_REQUEST", "text", "text or content is required"},
		{"a message without words", request{"POST", turn, `{}`, nil}, 400, "INVALID_REQUEST", "text", "text or content is required"},
		{"a malformed name", request{"GET", "/v1/sessions/UPPER", "", nil}, 400, "INVALID_REQUEST", "name", ""},
		{"an unknown query parameter", request{"GET", "/v1/sessions?shape=red", "", nil}, 400, "BAD_PARAMETER", "shape", ""},
		{"a query parameter given twice", request{"GET", "/v1/sessions?page_size=1&page_size=2", "", nil}, 400, "BAD_PARAMETER", "page_size", "more than once"},
		{"a query parameter under both names", request{"GET", "/v1/sessions?page_size=1&pageSize=2", "", nil}, 400, "BAD_PARAMETER", "", "more than once"},
		{"a path field as a query parameter", request{"GET", "/v1/sessions/s1?name=sessions/s2", "", nil}, 400, "BAD_PARAMETER", "name", ""},
		{"a page size in words", request{"GET", "/v1/sessions?page_size=ten", "", nil}, 400, "BAD_PARAMETER", "page_size", "whole number"},
		{"a negative page size", request{"GET", "/v1/sessions?page_size=-1", "", nil}, 400, "INVALID_REQUEST", "page_size", ""},
		{"a query that is none", request{"GET", "/v1/sessions?%zz", "", nil}, 400, "BAD_PARAMETER", "", ""},
		{"a query parameter that is not UTF-8", request{"GET", "/v1/sessions?page_token=%ff", "", nil}, 400, "BAD_PARAMETER", "page_token", "UTF-8"},
		{"a path that is not UTF-8", request{"GET", "/v1/sessions/%ff", "", nil}, 404, "PATH_NOT_FOUND", "", ""},
		{"a key that is not UTF-8", request{"POST", "/v1/sessions", "", http.Header{"Idempotency-Key": {"\xff"}}}, 400, "BAD_IDEMPOTENCY_KEY", "request_id", "UTF-8"},
		{"two keys", request{"POST", "/v1/sessions", "", http.Header{"Idempotency-Key": {"a", "b"}}}, 400, "BAD_IDEMPOTENCY_KEY", "request_id", ""},
		{"a key that is not the body's", request{"POST", turn, `{"text":"x","requestId":"b"}`, http.Header{"Idempotency-Key": {"a"}}}, 400, "BAD_IDEMPOTENCY_KEY", "request_id", "differ"},
		{"a key that is not the query's", request{"DELETE", "/v1/sessions/s1?requestId=b", "", http.Header{"Idempotency-Key": {"a"}}}, 400, "BAD_IDEMPOTENCY_KEY", "request_id", ""},
		{"a key with a space", request{"POST", "/v1/sessions", "", http.Header{"Idempotency-Key": {"a b"}}}, 400, "INVALID_REQUEST", "request_id", ""},
		{"a key that is too long", request{"POST", "/v1/sessions", "", http.Header{"Idempotency-Key": {long[:129]}}}, 400, "INVALID_REQUEST", "request_id", ""},
		{"a page of another site", request{"POST", "/v1/sessions", "", http.Header{"Origin": {"https://evil.example"}}}, 403, "CROSS_ORIGIN", "", "evil.example"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := do(t, srv, c.in)
			if got.code != c.code {
				t.Fatalf("status %d, want %d: %s", got.code, c.code, got.body)
			}
			if m, _ := f.last(); m != nil {
				t.Errorf("the service was asked: %v", m)
			}
			if c.in.method == "HEAD" {
				return
			}
			p := problemOf(t, got.body)
			if p.reason() != c.reason || (c.field != "" && p.field() != c.field) || !strings.Contains(p.Message, c.words) {
				t.Errorf("got reason %q, field %q, message %q; want %q, %q, %q", p.reason(), p.field(), p.Message, c.reason, c.field, c.words)
			}
			if len(got.body) > 2048 {
				t.Errorf("the answer has %d bytes", len(got.body))
			}
			if allow := got.header.Get("Allow"); (c.code == http.StatusMethodNotAllowed) != (allow != "") {
				t.Errorf("Allow: %q", allow)
			}
		})
	}
}

func TestErrorsOfServicesKeepTheirMeaning(t *testing.T) {
	f := &fake{}
	srv := serve(t, f)
	for _, c := range []struct {
		name   string
		err    error
		code   int
		reason string
		retry  string
	}{
		{"not found", noSuchSession(), 404, "SESSION_NOT_FOUND", ""},
		{"already exists", apierr.New(codes.AlreadyExists, "d", "REQUEST_ID_REUSED", "m"), 409, "REQUEST_ID_REUSED", ""},
		{"failed precondition", apierr.New(codes.FailedPrecondition, "d", "SESSION_ACTIVE", "m"), 400, "SESSION_ACTIVE", ""},
		{"exhausted, with the time to wait", apierr.New(codes.ResourceExhausted, "d", "QUEUE_FULL", "m", apierr.RetryAfter(1500*time.Millisecond)), 429, "QUEUE_FULL", "2"},
		{"unavailable, with the time to wait", apierr.New(codes.Unavailable, "d", "STORE_UNAVAILABLE", "m", apierr.RetryAfter(time.Millisecond)), 503, "STORE_UNAVAILABLE", "1"},
		{"a fault keeps its words to itself", errors.New("secret words"), 500, "INTERNAL", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			f.fail = c.err
			got := do(t, srv, request{"DELETE", "/v1/sessions/s9", "", http.Header{"Idempotency-Key": {"k1"}}})
			p := problemOf(t, got.body)
			if got.code != c.code || p.reason() != c.reason || got.header.Get("Retry-After") != c.retry || strings.Contains(got.body, "secret") {
				t.Errorf("status %d, Retry-After %q, body %s", got.code, got.header.Get("Retry-After"), got.body)
			}
			if key := got.header.Get("Idempotency-Key"); key != "k1" {
				t.Errorf("Idempotency-Key %q, want k1", key)
			}
		})
	}
}

func TestNothingOfAClientsHeadersReachesAService(t *testing.T) {
	f := &fake{}
	srv := serve(t, f)
	header := http.Header{
		"Grpc-Metadata-Fairlead-Internal-Token": {"e.y.J"},
		"Fairlead-Internal-Token":               {"e.y.J"},
		"Grpc-Timeout":                          {"1n"},
		"Proxy-Authorization":                   {"Bearer secret"},
		"Cookie":                                {"a=b"},
	}
	if got := do(t, srv, request{"GET", "/v1/sessions/s1", "", header}); got.code != http.StatusOK {
		t.Fatalf("status %d: %s", got.code, got.body)
	}
	_, md := f.last()
	if p := f.caller(); !reflect.DeepEqual(p, principal.Default()) || len(md.Get(internaltoken.MetadataKey)) != 1 {
		t.Errorf("principal %+v", p)
	}
	for k, v := range md {
		if strings.Contains(fmt.Sprint(v), "secret") || strings.Contains(k, "cookie") || strings.HasPrefix(k, "grpcgateway-") {
			t.Errorf("metadata %s: %q", k, v)
		}
	}
}

func TestHeadAndOptions(t *testing.T) {
	srv := serve(t, &fake{})
	head := do(t, srv, request{"HEAD", "/v1/sessions/s1", "", nil})
	if head.code != http.StatusOK || head.body != "" || head.header.Get("Content-Type") != "application/json" {
		t.Errorf("HEAD: %+v", head)
	}
	options := do(t, srv, request{"OPTIONS", "/v1/sessions/s1", "", nil})
	if options.code != http.StatusNoContent || options.header.Get("Allow") != "DELETE, GET, HEAD, OPTIONS, PATCH" {
		t.Errorf("OPTIONS: %+v", options)
	}
	if origin := options.header.Get("Access-Control-Allow-Origin"); origin != "" {
		t.Errorf("Access-Control-Allow-Origin: %q", origin)
	}
}

func TestTheSpecificationIsServed(t *testing.T) {
	srv := serve(t, &fake{})
	got := do(t, srv, request{"GET", "/openapi.json", "", nil})
	var doc struct {
		OpenAPI string
		Paths   map[string]map[string]any
	}
	if err := json.Unmarshal([]byte(got.body), &doc); err != nil || !strings.HasPrefix(doc.OpenAPI, "3.1") {
		t.Fatalf("status %d, version %q: %v", got.code, doc.OpenAPI, err)
	}
	if cc := got.header.Get("Cache-Control"); cc != "public, max-age=60" {
		t.Errorf("Cache-Control %q", cc)
	}
	again := do(t, srv, request{"GET", "/openapi.json", "", http.Header{"If-None-Match": {got.header.Get("ETag")}}})
	if again.code != http.StatusNotModified {
		t.Errorf("status %d for the same version, want 304", again.code)
	}
	if got := do(t, srv, request{"POST", "/openapi.json", "", nil}); got.code != http.StatusMethodNotAllowed || got.header.Get("Cache-Control") != "no-store" {
		t.Errorf("POST: status %d, Cache-Control %q", got.code, got.header.Get("Cache-Control"))
	}
}

func TestTooManyRequestsAreRefused(t *testing.T) {
	srv := serve(t, &fake{}, func(c *gateway.Config) { c.Rate, c.Burst = 0.001, 1 })
	if got := do(t, srv, request{"GET", "/v1/tools", "", nil}); got.code != http.StatusOK {
		t.Fatalf("the first: %+v", got)
	}
	got := do(t, srv, request{"GET", "/v1/tools", "", nil})
	if p := problemOf(t, got.body); got.code != http.StatusTooManyRequests || p.reason() != "TOO_MANY_REQUESTS" || got.header.Get("Retry-After") == "" {
		t.Errorf("the second: %+v", got)
	}
}
