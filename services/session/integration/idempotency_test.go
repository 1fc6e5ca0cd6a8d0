package integration

import (
	"context"
	"strconv"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	commonv1 "github.com/fairlead/fairlead/gen/go/fairlead/common/v1"
	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/internal/kit/apierr"
)

// withoutKey are the mutations that need no request_id, with the reason.
var withoutKey = map[string]string{
	"McpService.CompleteMcpArgument": "it asks, and changes nothing",
	"McpService.LoginMcpServer":      "each one begins a login of its own, which is nothing until it ends",
	"McpService.LogoutMcpServer":     "repeating it changes nothing",
	"McpService.FinishMcpLogin":      "a login ends once",
	"FileService.AppendFile":         "it adds bytes at an offset, which is another one afterwards",
	"TriggerService.FireTrigger":     "a delivery has a name of its own",
	"McpService.WatchMcpResource":    "it looks, and changes nothing",
	"RuntimeService.Attach":          "what a process says of a turn counts once by the turn's step",
	"ModelProxyService.CallModel":    "the APIs behind it know no such id: each call is one of its own",
}

// repeated gives for a mutation a request and another one under the same id. s
// is a session whose turn waits for a person.
type repeated func(ctx context.Context, t *testing.T, f *fixture, s string) (request, other proto.Message)

// mutations are all that take one request. Where the request says nothing but
// what it is about there is no other: request ids have what they are about in
// their scope.
var mutations = map[string]repeated{
	"SessionService.CreateSession": func(context.Context, *testing.T, *fixture, string) (proto.Message, proto.Message) {
		return &sessionv1.CreateSessionRequest{RequestId: "r"}, &sessionv1.CreateSessionRequest{RequestId: "r", SessionId: "x"}
	},
	"SessionService.DeleteSession": func(ctx context.Context, t *testing.T, f *fixture, _ string) (proto.Message, proto.Message) {
		return &sessionv1.DeleteSessionRequest{Name: f.session(ctx, t), RequestId: "r"}, nil
	},
	"SessionService.CreateTurn": func(_ context.Context, _ *testing.T, _ *fixture, s string) (proto.Message, proto.Message) {
		return &sessionv1.CreateTurnRequest{Parent: s, Text: "a", RequestId: "r"}, &sessionv1.CreateTurnRequest{Parent: s, Text: "b", RequestId: "r"}
	},
	"SessionService.InterruptSession": func(_ context.Context, _ *testing.T, _ *fixture, s string) (proto.Message, proto.Message) {
		return &sessionv1.InterruptSessionRequest{Name: s, RequestId: "r"}, &sessionv1.InterruptSessionRequest{Name: s, CancelQueued: true, RequestId: "r"}
	},
	"SessionService.SetPermissionMode": func(_ context.Context, _ *testing.T, _ *fixture, s string) (proto.Message, proto.Message) {
		return &sessionv1.SetPermissionModeRequest{Name: s, PermissionMode: commonv1.PermissionMode_PERMISSION_MODE_PLAN, RequestId: "r"},
			&sessionv1.SetPermissionModeRequest{Name: s, PermissionMode: commonv1.PermissionMode_PERMISSION_MODE_DEFAULT, RequestId: "r"}
	},
	"SessionService.CompactSession": func(_ context.Context, _ *testing.T, _ *fixture, s string) (proto.Message, proto.Message) {
		return &sessionv1.CompactSessionRequest{Name: s, RequestId: "r"}, &sessionv1.CompactSessionRequest{Name: s, Instructions: "x", RequestId: "r"}
	},
	"SessionService.ForkSession": func(ctx context.Context, t *testing.T, f *fixture, _ string) (proto.Message, proto.Message) {
		s := f.session(ctx, t)
		return &sessionv1.ForkSessionRequest{Name: s, RequestId: "r"}, &sessionv1.ForkSessionRequest{Name: s, Title: "x", RequestId: "r"}
	},
	"SessionService.ResolveApproval": func(ctx context.Context, t *testing.T, f *fixture, s string) (proto.Message, proto.Message) {
		asked := f.waitForAsk(ctx, t, s)
		r := &sessionv1.ResolveApprovalRequest{Parent: s, CallId: asked.CallId, Digest: asked.Digest, Approved: true, RequestId: "r"}
		other := proto.CloneOf(r)
		other.Approved = false
		return r, other
	},
	"SessionService.AnswerQuestion": func(ctx context.Context, t *testing.T, f *fixture, _ string) (proto.Message, proto.Message) {
		s := f.session(ctx, t)
		f.create(ctx, t, s, "ask me")
		asked := f.waitForQuestion(ctx, t, s, "1")
		return &sessionv1.AnswerQuestionRequest{Parent: s, CallId: asked.CallId, QuestionId: "1", Action: decline, RequestId: "r"},
			&sessionv1.AnswerQuestionRequest{Parent: s, CallId: asked.CallId, QuestionId: "1", Action: closing, RequestId: "r"}
	},
	"SessionService.SubmitToolResult": func(ctx context.Context, t *testing.T, f *fixture, _ string) (proto.Message, proto.Message) {
		s := f.session(ctx, t)
		if _, err := f.CreateTurn(ctx, &sessionv1.CreateTurnRequest{Parent: s, Text: "client", ClientTools: []*sessionv1.ClientTool{{Name: "where"}}}); err != nil {
			t.Fatal(err)
		}
		waits := f.waitFor(ctx, t, s, func(e *sessionv1.Event) bool { return e.GetTurnWaiting() != nil }).GetTurnWaiting()
		return &sessionv1.SubmitToolResultRequest{Parent: s, CallId: waits.CallIds[0], RequestId: "r"},
			&sessionv1.SubmitToolResultRequest{Parent: s, CallId: waits.CallIds[0], IsError: true, RequestId: "r"}
	},
	"FeedbackService.CreateFeedback": func(ctx context.Context, t *testing.T, f *fixture, _ string) (proto.Message, proto.Message) {
		s := f.session(ctx, t)
		turn := f.turn(ctx, t, s, "hello")[0].Turn
		r := &sessionv1.CreateFeedbackRequest{Parent: s, Feedback: &sessionv1.Feedback{Turn: turn, Value: sessionv1.FeedbackValue_FEEDBACK_VALUE_POSITIVE}, RequestId: "r"}
		other := proto.CloneOf(r)
		other.Feedback.Value = sessionv1.FeedbackValue_FEEDBACK_VALUE_NEGATIVE
		return r, other
	},
	"CheckpointService.CreateCheckpoint": func(ctx context.Context, t *testing.T, f *fixture, _ string) (proto.Message, proto.Message) {
		s := f.session(ctx, t)
		return &sessionv1.CreateCheckpointRequest{Parent: s, RequestId: "r"},
			&sessionv1.CreateCheckpointRequest{Parent: s, Checkpoint: &sessionv1.Checkpoint{Description: "x"}, RequestId: "r"}
	},
	"CheckpointService.RewindSession": func(ctx context.Context, t *testing.T, f *fixture, _ string) (proto.Message, proto.Message) {
		s := f.session(ctx, t)
		made, err := f.points().CreateCheckpoint(ctx, &sessionv1.CreateCheckpointRequest{Parent: s})
		if err != nil {
			t.Fatal(err)
		}
		return &sessionv1.RewindSessionRequest{Name: s, Checkpoint: made.Checkpoint.Name, RequestId: "r"},
			&sessionv1.RewindSessionRequest{Name: s, LatestButOne: true, RequestId: "r"}
	},
	"ScheduleService.CreateSchedule": func(_ context.Context, _ *testing.T, _ *fixture, s string) (proto.Message, proto.Message) {
		r := newSchedule(s)
		other := proto.CloneOf(r)
		other.Schedule.Text = "y"
		return r, other
	},
	"ScheduleService.PauseSchedule": func(ctx context.Context, t *testing.T, f *fixture, s string) (proto.Message, proto.Message) {
		name := f.schedule(ctx, t, s)
		return &sessionv1.PauseScheduleRequest{Name: name, Paused: true, RequestId: "r"}, &sessionv1.PauseScheduleRequest{Name: name, RequestId: "r"}
	},
	"ScheduleService.DeleteSchedule": func(ctx context.Context, t *testing.T, f *fixture, s string) (proto.Message, proto.Message) {
		return &sessionv1.DeleteScheduleRequest{Name: f.schedule(ctx, t, s), RequestId: "r"}, nil
	},
	"TriggerService.CreateTrigger": func(_ context.Context, _ *testing.T, _ *fixture, s string) (proto.Message, proto.Message) {
		r := &sessionv1.CreateTriggerRequest{Trigger: &sessionv1.Trigger{Session: s, Text: "a"}, RequestId: "r"}
		other := proto.CloneOf(r)
		other.Trigger.Text = "b"
		return r, other
	},
	"TriggerService.PauseTrigger": func(ctx context.Context, t *testing.T, f *fixture, s string) (proto.Message, proto.Message) {
		name := f.trigger(ctx, t, &sessionv1.Trigger{Session: s, Text: "a"}).name
		return &sessionv1.PauseTriggerRequest{Name: name, Paused: true, RequestId: "r"}, &sessionv1.PauseTriggerRequest{Name: name, RequestId: "r"}
	},
	"TriggerService.RotateTriggerSecret": func(ctx context.Context, t *testing.T, f *fixture, s string) (proto.Message, proto.Message) {
		name := f.trigger(ctx, t, &sessionv1.Trigger{Session: s, Text: "a"}).name
		return &sessionv1.RotateTriggerSecretRequest{Name: name, RequestId: "r"}, &sessionv1.RotateTriggerSecretRequest{Name: name, RevokeOld: true, RequestId: "r"}
	},
	"TriggerService.DeleteTrigger": func(ctx context.Context, t *testing.T, f *fixture, s string) (proto.Message, proto.Message) {
		return &sessionv1.DeleteTriggerRequest{Name: f.trigger(ctx, t, &sessionv1.Trigger{Session: s, Text: "a"}).name, RequestId: "r"}, nil
	},
	"TriggerService.FireTrigger": func(ctx context.Context, t *testing.T, f *fixture, s string) (proto.Message, proto.Message) {
		by := f.trigger(ctx, t, &sessionv1.Trigger{Session: s, Text: "a", Proof: sessionv1.TriggerProof_TRIGGER_PROOF_ADDRESS})
		return &sessionv1.FireTriggerRequest{Name: by.name, Secret: by.secret, Delivery: "d", Payload: []byte("a")},
			&sessionv1.FireTriggerRequest{Name: by.name, Secret: by.secret, Delivery: "d", Payload: []byte("b")}
	},
	"WebhookService.CreateWebhook": func(context.Context, *testing.T, *fixture, string) (proto.Message, proto.Message) {
		r := newWebhook()
		other := proto.CloneOf(r)
		other.Webhook.Url += "b"
		return r, other
	},
	"RepositoryService.AddRepository": func(ctx context.Context, t *testing.T, f *fixture, s string) (proto.Message, proto.Message) {
		return &sessionv1.AddRepositoryRequest{Parent: s, Url: "https://git.example.com/org/app", RequestId: "r"},
			&sessionv1.AddRepositoryRequest{Parent: s, Url: "https://git.example.com/org/other", RequestId: "r"}
	},
	"RepositoryService.RemoveRepository": func(ctx context.Context, t *testing.T, f *fixture, _ string) (proto.Message, proto.Message) {
		return &sessionv1.RemoveRepositoryRequest{Name: f.session(ctx, t) + "/repositories/app", RequestId: "r"}, nil // during a turn it is refused
	},
	"RepositoryService.PushRepository": func(_ context.Context, _ *testing.T, _ *fixture, s string) (proto.Message, proto.Message) {
		return &sessionv1.PushRepositoryRequest{Name: s + "/repositories/app", Url: "https://git.example.com/org/app", RequestId: "r"}, nil // doing it twice is harmless
	},
	"FileService.CreateFile": func(context.Context, *testing.T, *fixture, string) (proto.Message, proto.Message) {
		return &sessionv1.CreateFileRequest{File: &sessionv1.File{Filename: "a"}, RequestId: "r"},
			&sessionv1.CreateFileRequest{File: &sessionv1.File{Filename: "b"}, RequestId: "r"}
	},
	"FileService.DeleteFile": func(ctx context.Context, t *testing.T, f *fixture, _ string) (proto.Message, proto.Message) {
		made, err := sessionv1.NewFileServiceClient(f.conn).CreateFile(ctx, &sessionv1.CreateFileRequest{})
		if err != nil {
			t.Fatal(err)
		}
		return &sessionv1.DeleteFileRequest{Name: made.File.Name, RequestId: "r"}, nil
	},
	"SessionFileService.MoveSessionFile": func(_ context.Context, _ *testing.T, f *fixture, s string) (proto.Message, proto.Message) {
		f.peers.putFile(s, "a")
		return &sessionv1.MoveSessionFileRequest{Parent: s, Path: "a", NewPath: "b", RequestId: "r"},
			&sessionv1.MoveSessionFileRequest{Parent: s, Path: "a", NewPath: "c", RequestId: "r"}
	},
	"SessionFileService.DeleteSessionFile": func(_ context.Context, _ *testing.T, f *fixture, s string) (proto.Message, proto.Message) {
		f.peers.putFile(s, "a")
		return &sessionv1.DeleteSessionFileRequest{Parent: s, Path: "a", RequestId: "r"},
			&sessionv1.DeleteSessionFileRequest{Parent: s, Path: "b", RequestId: "r"}
	},
	"UserService.DeleteUserStorage": func(context.Context, *testing.T, *fixture, string) (proto.Message, proto.Message) {
		return &sessionv1.DeleteUserStorageRequest{Name: "users/default/storage", RequestId: "r"}, nil
	},
	"UserService.SetUserVariable": func(context.Context, *testing.T, *fixture, string) (proto.Message, proto.Message) {
		return &sessionv1.SetUserVariableRequest{Name: "users/default/variables/A", Value: "1", RequestId: "r"},
			&sessionv1.SetUserVariableRequest{Name: "users/default/variables/A", Value: "2", RequestId: "r"}
	},
	"UserService.DeleteUserVariable": func(ctx context.Context, t *testing.T, f *fixture, _ string) (proto.Message, proto.Message) {
		_, err := sessionv1.NewUserServiceClient(f.conn).SetUserVariable(ctx, &sessionv1.SetUserVariableRequest{Name: "users/default/variables/B", Value: "1"})
		if err != nil {
			t.Fatal(err)
		}
		return &sessionv1.DeleteUserVariableRequest{Name: "users/default/variables/B", RequestId: "r"}, nil
	},
	"McpService.CompleteMcpArgument": func(ctx context.Context, t *testing.T, f *fixture, _ string) (proto.Message, proto.Message) {
		return &sessionv1.CompleteMcpArgumentRequest{Name: f.withWiki(ctx, t) + "/mcp/wiki", Argument: &commonv1.McpArgument{Of: &commonv1.McpArgument_Prompt{Prompt: "p"}, Name: "a"}}, nil
	},
	"McpService.LoginMcpServer": func(ctx context.Context, t *testing.T, f *fixture, _ string) (proto.Message, proto.Message) {
		return &sessionv1.LoginMcpServerRequest{Name: f.withWiki(ctx, t) + "/mcp/wiki"}, nil
	},
	"McpService.LogoutMcpServer": func(ctx context.Context, t *testing.T, f *fixture, _ string) (proto.Message, proto.Message) {
		return &sessionv1.LogoutMcpServerRequest{Name: f.withWiki(ctx, t) + "/mcp/wiki"}, nil
	},
	"McpService.FinishMcpLogin": func(context.Context, *testing.T, *fixture, string) (proto.Message, proto.Message) {
		return &sessionv1.FinishMcpLoginRequest{State: "s", Code: "c"}, nil
	},
	"McpService.SetUserMcpServer": func(context.Context, *testing.T, *fixture, string) (proto.Message, proto.Message) {
		return &sessionv1.SetUserMcpServerRequest{Name: "users/default/mcpServers/a", Server: wiki("a"), RequestId: "r"},
			&sessionv1.SetUserMcpServerRequest{Name: "users/default/mcpServers/a", Server: wiki("a", "Bearer x"), RequestId: "r"}
	},
	"McpService.DeleteUserMcpServer": func(ctx context.Context, t *testing.T, f *fixture, _ string) (proto.Message, proto.Message) {
		_, err := sessionv1.NewMcpServiceClient(f.conn).SetUserMcpServer(ctx, &sessionv1.SetUserMcpServerRequest{Name: "users/default/mcpServers/b", Server: wiki("b")})
		if err != nil {
			t.Fatal(err)
		}
		return &sessionv1.DeleteUserMcpServerRequest{Name: "users/default/mcpServers/b", RequestId: "r"}, nil
	},
	"WebhookService.RotateWebhookSecret": func(ctx context.Context, t *testing.T, f *fixture, _ string) (proto.Message, proto.Message) {
		made, err := sessionv1.NewWebhookServiceClient(f.conn).CreateWebhook(ctx, newWebhook())
		if err != nil {
			t.Fatal(err)
		}
		return &sessionv1.RotateWebhookSecretRequest{Name: made.Webhook.Name, RequestId: "r"},
			&sessionv1.RotateWebhookSecretRequest{Name: made.Webhook.Name, RevokeOld: true, RequestId: "r"}
	},
	"IdentityService.CreateTenant": func(context.Context, *testing.T, *fixture, string) (proto.Message, proto.Message) {
		return &sessionv1.CreateTenantRequest{TenantId: "acme", FirstKey: true, RequestId: "r"}, &sessionv1.CreateTenantRequest{TenantId: "other", FirstKey: true, RequestId: "r"}
	},
	"IdentityService.CreateUser": func(context.Context, *testing.T, *fixture, string) (proto.Message, proto.Message) {
		return &sessionv1.CreateUserRequest{UserId: "ann", RequestId: "r"}, &sessionv1.CreateUserRequest{UserId: "bob", RequestId: "r"}
	},
	"IdentityService.UpdateUser": func(ctx context.Context, t *testing.T, f *fixture, _ string) (proto.Message, proto.Message) {
		name := f.user(ctx, t, "ann")
		return &sessionv1.UpdateUserRequest{Name: name, Title: proto.String("Ann"), RequestId: "r"},
			&sessionv1.UpdateUserRequest{Name: name, Title: proto.String("Bob"), RequestId: "r"}
	},
	"IdentityService.DeleteUser": func(ctx context.Context, t *testing.T, f *fixture, _ string) (proto.Message, proto.Message) {
		return &sessionv1.DeleteUserRequest{Name: f.user(ctx, t, "ann"), RequestId: "r"}, nil
	},
	"IdentityService.CreateKey": func(context.Context, *testing.T, *fixture, string) (proto.Message, proto.Message) {
		return &sessionv1.CreateKeyRequest{FirstKey: true, RequestId: "r"}, &sessionv1.CreateKeyRequest{Key: &sessionv1.Key{Title: "x"}, FirstKey: true, RequestId: "r"}
	},
	"IdentityService.RevokeKey": func(ctx context.Context, t *testing.T, f *fixture, _ string) (proto.Message, proto.Message) {
		made, err := sessionv1.NewIdentityServiceClient(f.conn).CreateKey(ctx, &sessionv1.CreateKeyRequest{FirstKey: true})
		if err != nil {
			t.Fatal(err)
		}
		return &sessionv1.RevokeKeyRequest{Name: made.Key.Name, RequestId: "r"}, nil
	},
	"SessionService.UpdateSession": func(_ context.Context, _ *testing.T, _ *fixture, s string) (proto.Message, proto.Message) {
		return &sessionv1.UpdateSessionRequest{Name: s, Labels: map[string]string{"a": "1"}, RequestId: "r"},
			&sessionv1.UpdateSessionRequest{Name: s, Labels: map[string]string{"a": "2"}, RequestId: "r"}
	},
	"SessionService.ArchiveSession": func(ctx context.Context, t *testing.T, f *fixture, _ string) (proto.Message, proto.Message) {
		s := f.session(ctx, t)
		return &sessionv1.ArchiveSessionRequest{Name: s, RequestId: "r"}, &sessionv1.ArchiveSessionRequest{Name: s, Undo: true, RequestId: "r"}
	},
	"SkillService.CreateSkill": func(ctx context.Context, t *testing.T, f *fixture, _ string) (proto.Message, proto.Message) {
		return &sessionv1.CreateSkillRequest{File: f.skillFile(ctx, t, "pdf", "one"), RequestId: "r"},
			&sessionv1.CreateSkillRequest{File: f.skillFile(ctx, t, "pdf", "two"), RequestId: "r"}
	},
	"SkillService.UpdateSkill": func(ctx context.Context, t *testing.T, f *fixture, _ string) (proto.Message, proto.Message) {
		name := f.skill(ctx, t, "", "pdf").Name
		return &sessionv1.UpdateSkillRequest{Name: name, File: f.skillFile(ctx, t, "pdf", "two"), ExpectedVersion: 1, RequestId: "r"},
			&sessionv1.UpdateSkillRequest{Name: name, File: f.skillFile(ctx, t, "pdf", "three"), ExpectedVersion: 1, RequestId: "r"}
	},
	"SkillService.RollbackSkill": func(ctx context.Context, t *testing.T, f *fixture, _ string) (proto.Message, proto.Message) {
		name := f.skill(ctx, t, "", "pdf").Name
		return &sessionv1.RollbackSkillRequest{Name: name, Version: 1, ExpectedVersion: 1, RequestId: "r"},
			&sessionv1.RollbackSkillRequest{Name: name, Version: 1, ExpectedVersion: 2, RequestId: "r"}
	},
	"SkillService.ArchiveSkill": func(ctx context.Context, t *testing.T, f *fixture, _ string) (proto.Message, proto.Message) {
		name := f.skill(ctx, t, "", "pdf").Name
		return &sessionv1.ArchiveSkillRequest{Name: name, RequestId: "r"}, &sessionv1.ArchiveSkillRequest{Name: name, Undo: true, RequestId: "r"}
	},
	"SkillService.DeleteSkill": func(ctx context.Context, t *testing.T, f *fixture, _ string) (proto.Message, proto.Message) {
		return &sessionv1.DeleteSkillRequest{Name: f.skill(ctx, t, "", "pdf").Name, RequestId: "r"}, nil
	},
	"ModelService.CreateModel": func(context.Context, *testing.T, *fixture, string) (proto.Message, proto.Message) {
		return &sessionv1.CreateModelRequest{Spec: &sessionv1.ModelSpec{Target: "openai:gpt-5.5"}, RequestId: "r"},
			&sessionv1.CreateModelRequest{Spec: &sessionv1.ModelSpec{Target: "openai:gpt-5.4"}, RequestId: "r"}
	},
	"ModelService.UpdateModel": func(ctx context.Context, t *testing.T, f *fixture, _ string) (proto.Message, proto.Message) {
		name, spec := f.model(ctx, t, "fast"), &sessionv1.ModelSpec{Target: "openai:gpt-5.4"}
		return &sessionv1.UpdateModelRequest{Name: name, Spec: spec, ExpectedVersion: 1, RequestId: "r"},
			&sessionv1.UpdateModelRequest{Name: name, Spec: spec, ExpectedVersion: 2, RequestId: "r"}
	},
	"ModelService.DeleteModel": func(ctx context.Context, t *testing.T, f *fixture, _ string) (proto.Message, proto.Message) {
		return &sessionv1.DeleteModelRequest{Name: f.model(ctx, t, "fast"), RequestId: "r"}, nil
	},
	"EnvironmentService.CreateEnvironment": func(context.Context, *testing.T, *fixture, string) (proto.Message, proto.Message) {
		return &sessionv1.CreateEnvironmentRequest{Spec: &sessionv1.EnvironmentSpec{}, RequestId: "r"},
			&sessionv1.CreateEnvironmentRequest{Spec: &sessionv1.EnvironmentSpec{Description: "x"}, RequestId: "r"}
	},
	"EnvironmentService.UpdateEnvironment": func(ctx context.Context, t *testing.T, f *fixture, _ string) (proto.Message, proto.Message) {
		name := f.environment(ctx, t, "prod", &sessionv1.EnvironmentSpec{})
		return &sessionv1.UpdateEnvironmentRequest{Name: name, Spec: &sessionv1.EnvironmentSpec{}, ExpectedVersion: 1, RequestId: "r"},
			&sessionv1.UpdateEnvironmentRequest{Name: name, Spec: &sessionv1.EnvironmentSpec{}, ExpectedVersion: 2, RequestId: "r"}
	},
	"EnvironmentService.ArchiveEnvironment": func(ctx context.Context, t *testing.T, f *fixture, _ string) (proto.Message, proto.Message) {
		name := f.environment(ctx, t, "prod", &sessionv1.EnvironmentSpec{})
		return &sessionv1.ArchiveEnvironmentRequest{Name: name, RequestId: "r"}, &sessionv1.ArchiveEnvironmentRequest{Name: name, Undo: true, RequestId: "r"}
	},
	"AgentService.CreateAgent": func(context.Context, *testing.T, *fixture, string) (proto.Message, proto.Message) {
		return &sessionv1.CreateAgentRequest{Spec: fixer(1), RequestId: "r"}, &sessionv1.CreateAgentRequest{Spec: fixer(2), RequestId: "r"}
	},
	"AgentService.UpdateAgent": func(ctx context.Context, t *testing.T, f *fixture, _ string) (proto.Message, proto.Message) {
		name := f.createAgent(ctx, t, "fixer", fixer(1)).Name
		return &sessionv1.UpdateAgentRequest{Name: name, Spec: fixer(2), ExpectedVersion: 1, RequestId: "r"},
			&sessionv1.UpdateAgentRequest{Name: name, Spec: fixer(3), ExpectedVersion: 1, RequestId: "r"}
	},
	"AgentService.RollbackAgent": func(ctx context.Context, t *testing.T, f *fixture, _ string) (proto.Message, proto.Message) {
		name := f.createAgent(ctx, t, "fixer", fixer(1)).Name
		return &sessionv1.RollbackAgentRequest{Name: name, Version: 1, ExpectedVersion: 1, RequestId: "r"},
			&sessionv1.RollbackAgentRequest{Name: name, Version: 1, ExpectedVersion: 2, RequestId: "r"}
	},
	"AgentService.ArchiveAgent": func(ctx context.Context, t *testing.T, f *fixture, _ string) (proto.Message, proto.Message) {
		name := f.createAgent(ctx, t, "fixer", fixer(1)).Name
		return &sessionv1.ArchiveAgentRequest{Name: name, RequestId: "r"}, &sessionv1.ArchiveAgentRequest{Name: name, Undo: true, RequestId: "r"}
	},
	"WebhookService.DeleteWebhook": func(ctx context.Context, t *testing.T, f *fixture, _ string) (proto.Message, proto.Message) {
		made, err := sessionv1.NewWebhookServiceClient(f.conn).CreateWebhook(ctx, newWebhook())
		if err != nil {
			t.Fatal(err)
		}
		return &sessionv1.DeleteWebhookRequest{Name: made.Webhook.Name, RequestId: "r"}, nil
	},
}

func newSchedule(s string) *sessionv1.CreateScheduleRequest {
	return &sessionv1.CreateScheduleRequest{Parent: s, Schedule: &sessionv1.Schedule{Cron: "@yearly", Text: "x"}, RequestId: "r"}
}

// newWebhook is of an address that is public; nothing is sent, for no turn ends.
func newWebhook() *sessionv1.CreateWebhookRequest {
	return &sessionv1.CreateWebhookRequest{Webhook: &sessionv1.Webhook{Url: "https://8.8.8.8/"}, RequestId: "r"}
}

func (f *fixture) user(ctx context.Context, t *testing.T, id string) string {
	t.Helper()
	made, err := sessionv1.NewIdentityServiceClient(f.conn).CreateUser(ctx, &sessionv1.CreateUserRequest{UserId: id})
	if err != nil {
		t.Fatal(err)
	}
	return made.User.Name
}

func (f *fixture) schedule(ctx context.Context, t *testing.T, s string) string {
	t.Helper()
	made, err := sessionv1.NewScheduleServiceClient(f.conn).CreateSchedule(ctx, newSchedule(s))
	if err != nil {
		t.Fatal(err)
	}
	return made.Schedule.Name
}

// unaryMutations are the mutations of the API, as `Service.Method`. Every one of
// them, also those that stream, must have an idempotency key.
func unaryMutations(t *testing.T) map[string]protoreflect.MethodDescriptor {
	t.Helper()
	all := map[string]protoreflect.MethodDescriptor{}
	protoregistry.GlobalFiles.RangeFilesByPackage("fairlead.session.v1", func(file protoreflect.FileDescriptor) bool {
		for i := range file.Services().Len() {
			service := file.Services().Get(i)
			if service.Name() == "NodeService" || service.Name() == "KeyService" || service.Name() == "WorkService" {
				continue // internal; draining sets a state, so that doing it again changes nothing, resolving a key reads, and work items name their holder
			}
			for j := range service.Methods().Len() {
				m := service.Methods().Get(j)
				if access, ok := proto.GetExtension(m.Options(), commonv1.E_Access).(*commonv1.Access); ok && strings.HasSuffix(access.GetScope(), ".read") {
					continue // it changes nothing
				}
				name := string(service.Name()) + "." + string(m.Name())
				if reason := withoutKey[name]; hasKey(m.Input(), 2) == (reason != "") {
					t.Errorf("%s must have a request_id or a reason to have none; its reason is %q", name, reason)
				}
				if !m.IsStreamingClient() && !m.IsStreamingServer() {
					all[name] = m
				}
			}
		}
		return true
	})
	return all
}

// hasKey looks for a request_id in a message, or so deep in its parts.
func hasKey(m protoreflect.MessageDescriptor, depth int) bool {
	if m.Fields().ByName("request_id") != nil {
		return true
	}
	for i := range m.Fields().Len() {
		if part := m.Fields().Get(i).Message(); depth > 0 && part != nil && hasKey(part, depth-1) {
			return true
		}
	}
	return false
}

// TestEveryMutationIsDoneOnceUnderItsRequestID repeats requests, as they are and
// changed. A mutation that is not listed above fails the test.
func TestEveryMutationIsDoneOnceUnderItsRequestID(t *testing.T) {
	t.Parallel()
	for name, method := range unaryMutations(t) {
		build := mutations[name]
		if build == nil {
			t.Errorf("%s is not in the table of mutations", name)
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := start(t, asking)
			ctx := t.Context()
			s := f.session(ctx, t)
			f.create(ctx, t, s, "write")
			f.waitForAsk(ctx, t, s)
			request, other := build(ctx, t, f, s)
			first, err := f.invoke(ctx, method, request)
			if err != nil {
				t.Fatal(err)
			}
			again, err := f.invoke(ctx, method, request)
			if err != nil || nameOf(again) != nameOf(first) {
				t.Errorf("the same request: %v (%v), first it was %v", again, err, first)
			}
			if other == nil {
				return
			}
			if _, err := f.invoke(ctx, method, other); status.Code(err) != codes.AlreadyExists || !apierr.Is(err, sessionv1.ErrorReason_ERROR_REASON_REQUEST_ID_REUSED) {
				t.Errorf("another request under the same id: %v", err)
			}
		})
	}
}

// invoke makes a request by its descriptor.
func (f *fixture) invoke(ctx context.Context, m protoreflect.MethodDescriptor, request proto.Message) (proto.Message, error) {
	kind, err := protoregistry.GlobalTypes.FindMessageByName(m.Output().FullName())
	if err != nil {
		return nil, err
	}
	answer := kind.New().Interface()
	return answer, f.conn.Invoke(ctx, "/"+string(m.Parent().FullName())+"/"+string(m.Name()), request, answer)
}

// nameOf is what a mutation has made, and the secret that goes with it.
func nameOf(m proto.Message) string {
	switch r := m.(type) {
	case *sessionv1.CreateSessionResponse:
		return r.Session.Name
	case *sessionv1.CreateFileResponse:
		return r.File.Name
	case *sessionv1.MoveSessionFileResponse:
		return r.File.Path
	case *sessionv1.CreateFeedbackResponse:
		return r.Feedback.Name
	case *sessionv1.CreateCheckpointResponse:
		return r.Checkpoint.Name
	case *sessionv1.CreateTurnResponse:
		return r.Turn.Name
	case *sessionv1.InterruptSessionResponse:
		return r.Turn
	case *sessionv1.CreateScheduleResponse:
		return r.Schedule.Name
	case *sessionv1.CreateWebhookResponse:
		return r.Webhook.Name + " " + r.Secret
	case *sessionv1.CreateKeyResponse:
		return r.Key.Name
	case *sessionv1.CreateAgentResponse:
		return r.Agent.Name
	case *sessionv1.CreateModelResponse:
		return r.Model.Name
	case *sessionv1.UpdateModelResponse:
		return strconv.Itoa(int(r.Model.Version))
	case *sessionv1.CreateEnvironmentResponse:
		return r.Environment.Name
	case *sessionv1.UpdateEnvironmentResponse:
		return strconv.Itoa(int(r.Environment.Version))
	case *sessionv1.UpdateAgentResponse:
		return strconv.Itoa(int(r.Agent.Version))
	case *sessionv1.RollbackAgentResponse:
		return strconv.Itoa(int(r.Agent.Version))
	case *sessionv1.CreateTenantResponse:
		return r.Tenant.Name + " " + r.Key.Name
	default:
		return ""
	}
}
