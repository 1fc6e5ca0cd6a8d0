package server

import (
	"errors"
	"time"

	"google.golang.org/grpc/codes"

	toolsv1 "github.com/fairlead/fairlead/gen/go/fairlead/tools/v1"
	"github.com/fairlead/fairlead/services/internal/kit/apierr"
	"github.com/fairlead/fairlead/services/internal/kit/node"
	"github.com/fairlead/fairlead/services/internal/kit/page"
	"github.com/fairlead/fairlead/services/tools/internal/call"
	"github.com/fairlead/fairlead/services/tools/internal/login"
	"github.com/fairlead/fairlead/services/tools/internal/mcp"
	"github.com/fairlead/fairlead/services/tools/internal/policy"
	"github.com/fairlead/fairlead/services/tools/internal/store"
	"github.com/fairlead/fairlead/services/tools/internal/tool"
)

// domain is the domain of this service's errors.
const domain = "tools.fairlead.dev"

// sandboxDomain is the domain of the errors that are passed on unchanged: they
// are about the caller's own use of the sandbox.
const sandboxDomain = "sandbox.fairlead.dev"

// retryAfter is when to try again while something is out of reach.
const retryAfter = time.Second

// errToolNotFound says that there is no such tool.
var errToolNotFound = errors.New("there is no such tool")

// failure is the public form of one error.
type failure struct {
	is      error
	code    codes.Code
	reason  toolsv1.ErrorReason
	message string
	detail  func(subject string) apierr.Option
}

// failures is the only table of this service's errors.
var failures = []failure{
	{errToolNotFound, codes.NotFound, toolsv1.ErrorReason_ERROR_REASON_TOOL_NOT_FOUND, "there is no such tool; ListTools lists the tools", resource("fairlead.dev/Tool")},
	{policy.ErrProfileNotFound, codes.FailedPrecondition, toolsv1.ErrorReason_ERROR_REASON_PROFILE_NOT_FOUND, "there is no such permission profile; create it (POST /v1/profiles), configure it under profiles, or use full, read-only or ask-writes", precondition("PROFILE")},
	{store.ErrNoProfile, codes.NotFound, toolsv1.ErrorReason_ERROR_REASON_PROFILE_NOT_FOUND, "there is no such permission profile; ListProfiles lists them", resource("fairlead.dev/Profile")},
	{store.ErrProfileExists, codes.AlreadyExists, toolsv1.ErrorReason_ERROR_REASON_PROFILE_EXISTS, "there is a permission profile of this name; choose another, or update it", resource("fairlead.dev/Profile")},
	{errProfileReadOnly, codes.FailedPrecondition, toolsv1.ErrorReason_ERROR_REASON_PROFILE_READ_ONLY, "the permission profile is built in or of the server's configuration, and cannot be changed here; create another one", precondition("PROFILE")},
	{store.ErrProfileChanged, codes.Aborted, toolsv1.ErrorReason_ERROR_REASON_PROFILE_CHANGED, "the permission profile was changed since its etag was read; read it again, and repeat the change with the new etag", resource("fairlead.dev/Profile")},
	{store.ErrNoGrant, codes.NotFound, toolsv1.ErrorReason_ERROR_REASON_GRANT_NOT_FOUND, "there is no such grant; ListGrants lists them", resource("fairlead.dev/Grant")},
	{policy.ErrBypass, codes.FailedPrecondition, toolsv1.ErrorReason_ERROR_REASON_BYPASS_NOT_ALLOWED, "the mode bypass is not allowed; use another mode, or set allow-bypass in the configuration of tools", precondition("MODE")},
	{policy.ErrRules, codes.InvalidArgument, toolsv1.ErrorReason_ERROR_REASON_INVALID_RULE, "a permission rule is not valid; docs/permissions.md has their syntax", field("filters", "is not a valid rule")},
	{call.ErrGrant, codes.InvalidArgument, toolsv1.ErrorReason_ERROR_REASON_INVALID_GRANT, "the rule of the approval does not cover the call; name one that does", field("approval.rule", "does not cover the call")},
	{login.ErrNotConfigured, codes.FailedPrecondition, toolsv1.ErrorReason_ERROR_REASON_LOGIN_NOT_CONFIGURED, "users cannot log in to MCP servers; set mcp-login-key and mcp-login-callback in the configuration of tools", precondition("LOGIN")},
	{login.ErrRefused, codes.FailedPrecondition, toolsv1.ErrorReason_ERROR_REASON_LOGIN_REFUSED, "the login is unknown, used or too old, or the authorization server refused it; begin it again", precondition("LOGIN")},
	{login.ErrImpossible, codes.FailedPrecondition, toolsv1.ErrorReason_ERROR_REASON_LOGIN_NOT_POSSIBLE, "the user cannot log in to the MCP server", precondition("LOGIN")},
	{call.ErrIDReused, codes.AlreadyExists, toolsv1.ErrorReason_ERROR_REASON_CALL_ID_REUSED, "the call id was used for another call; make a new id for each call", resource("fairlead.dev/Call")},
	{call.ErrCallCancelled, codes.FailedPrecondition, toolsv1.ErrorReason_ERROR_REASON_CALL_CANCELLED, "the call was cancelled and cannot go on", precondition("CALL")},
	{call.ErrNotFound, codes.NotFound, toolsv1.ErrorReason_ERROR_REASON_CALL_NOT_FOUND, "there is no such call", resource("fairlead.dev/Call")},
	{call.ErrNotDelegated, codes.FailedPrecondition, toolsv1.ErrorReason_ERROR_REASON_CALL_NOT_DELEGATED, "the call was not handed to the caller, so its result cannot be reported", precondition("CALL")},
	{call.ErrDigestMismatch, codes.FailedPrecondition, toolsv1.ErrorReason_ERROR_REASON_DIGEST_MISMATCH, "the approval is for other arguments than the call's; ask again with the digest of this call", precondition("APPROVAL")},
	{call.ErrQuestionMismatch, codes.FailedPrecondition, toolsv1.ErrorReason_ERROR_REASON_QUESTION_MISMATCH, "the answer is not to the open question of the call; call again without an answer to get the question", precondition("QUESTION")},
	{call.ErrAnswer, codes.InvalidArgument, toolsv1.ErrorReason_ERROR_REASON_ANSWER_INVALID, "the answer does not keep to the form of its question", field("answer.content_json", "does not keep to the question's schema_json")},
	{store.ErrStaleEpoch, codes.FailedPrecondition, toolsv1.ErrorReason_ERROR_REASON_STALE_EPOCH, "the caller no longer holds the session, or the session was deleted", precondition("EPOCH")},
	{tool.ErrStaleEpoch, codes.FailedPrecondition, toolsv1.ErrorReason_ERROR_REASON_STALE_EPOCH, "the caller no longer holds the session, or the session was deleted", precondition("EPOCH")},
	{store.ErrNoOperation, codes.NotFound, toolsv1.ErrorReason_ERROR_REASON_OPERATION_NOT_FOUND, "there is no such operation; it may have been deleted after its time", resource("fairlead.dev/Operation")},
	{store.ErrRequestReused, codes.AlreadyExists, toolsv1.ErrorReason_ERROR_REASON_REQUEST_ID_REUSED, "the request id was used for another request; use a new one for a new request, and the old one only to repeat the same", resource("fairlead.dev/Request")},
	{call.ErrReplicaUnavailable, codes.Unavailable, toolsv1.ErrorReason_ERROR_REASON_REPLICA_UNAVAILABLE, "another replica makes the call and cannot be reached now; repeat the same call to continue it", retry},
	{mcp.ErrAway, codes.FailedPrecondition, toolsv1.ErrorReason_ERROR_REASON_MCP_SERVER_UNAVAILABLE, "the MCP server cannot be used now; the session's MCP status says what works", precondition("MCP_SERVER")},
	{mcp.ErrRefused, codes.FailedPrecondition, toolsv1.ErrorReason_ERROR_REASON_MCP_SERVER_REFUSED, "the MCP server refused the request", precondition("MCP_SERVER")},
	{errMCPDenied, codes.PermissionDenied, toolsv1.ErrorReason_ERROR_REASON_MCP_DENIED, "the agent's tools or permissions deny this; add the tool that reads what it is about, or change the profile", resource("fairlead.dev/McpServer")},
	{page.ErrBadToken, codes.InvalidArgument, toolsv1.ErrorReason_ERROR_REASON_BAD_PAGE_TOKEN, "the page token does not belong to this list; start again without a token", field("page_token", "is not a token of this list")},
	{store.ErrUnavailable, codes.Unavailable, toolsv1.ErrorReason_ERROR_REASON_STORE_UNAVAILABLE, "the tools service cannot reach its database; try again", retry},
	{tool.ErrUnavailable, codes.Unavailable, toolsv1.ErrorReason_ERROR_REASON_SANDBOX_UNAVAILABLE, "the sandbox service cannot be reached or is busy; repeat the same call to continue it", retry},
}

func resource(kind string) func(string) apierr.Option {
	return func(subject string) apierr.Option { return apierr.Resource(kind, subject, "") }
}

func precondition(kind string) func(string) apierr.Option {
	return func(subject string) apierr.Option { return apierr.Precondition(kind, subject, "") }
}

func field(path, fault string) func(string) apierr.Option {
	return func(string) apierr.Option { return apierr.Field(path, fault) }
}

func retry(string) apierr.Option { return apierr.RetryAfter(retryAfter) }

// outward converts an error for the caller. subject is what the request was
// about. The interceptors hide errors that are not in the table.
func outward(err error, subject string) error {
	if err == nil {
		return nil
	}
	if from := apierr.ErrorDomain(err); from == sandboxDomain || from == domain {
		return apierr.Forward(err) // of the sandbox, or of the replica that makes the call
	}
	if apierr.Reason(err) == node.ReasonNodeAway {
		return apierr.Forward(err) // it tells which server has the files
	}
	if errors.Is(err, tool.ErrClosing) {
		return apierr.New(codes.Unavailable, apierr.Domain, apierr.ReasonDraining, "the tools service is stopping; repeat the call", apierr.RetryAfter(retryAfter))
	}
	if no, ok := errors.AsType[*login.ImpossibleError](err); ok {
		return apierr.Of(codes.FailedPrecondition, toolsv1.ErrorReason_ERROR_REASON_LOGIN_NOT_POSSIBLE, "the user cannot log in to the MCP server: "+no.Why, apierr.Precondition("LOGIN", subject, no.Why))
	}
	if grant, ok := errors.AsType[*call.GrantError](err); ok {
		return apierr.Of(codes.InvalidArgument, toolsv1.ErrorReason_ERROR_REASON_INVALID_GRANT, grant.Why, apierr.Field("approval.rule", grant.Why))
	}
	if rules, ok := errors.AsType[*policy.RuleError](err); ok {
		return ruleError(rules)
	}
	for _, f := range failures {
		if errors.Is(err, f.is) {
			return apierr.Of(f.code, f.reason, f.message, f.detail(subject))
		}
	}
	return err
}

// maxRuleFaults bounds the faulty rules that an error names.
const maxRuleFaults = 10

// ruleError names the first faulty rules by their fields.
func ruleError(e *policy.RuleError) error {
	var fields []apierr.Option
	e.Fields(func(path, fault string) bool {
		fields = append(fields, apierr.Field(path, fault))
		return len(fields) < maxRuleFaults
	})
	return apierr.Of(codes.InvalidArgument, toolsv1.ErrorReason_ERROR_REASON_INVALID_RULE, e.Error(), fields...)
}
