package host

import (
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"buf.build/gen/go/bufbuild/protovalidate/protocolbuffers/go/buf/validate"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	commonv1 "github.com/fairlead/fairlead/gen/go/fairlead/common/v1"
	"github.com/fairlead/fairlead/services/internal/kit/access"
	"github.com/fairlead/fairlead/services/internal/kit/principal"
)

// checked are the fields with a session that the option does not name, with the reason.
var checked = map[string]string{
	"/fairlead.tools.v1.OperationService/ListOperations session":             "an operation names its user, and the list leaves out others",
	"/fairlead.tools.v1.GrantService/ListGrants session":                     "a grant names its user, and the list leaves out others",
	"/fairlead.tools.v1.ProfileService/ExplainCall session":                  "it reads the caller's own grants",
	"/fairlead.session.v1.SessionService/ListSessions parent":                "a session names its user, and the list leaves out others",
	"/fairlead.session.v1.SessionService/ListApprovals session":              "the list leaves out what waits in sessions of other users",
	"/fairlead.session.v1.SessionService/InterruptSession turn":              "the handler refuses one of another session",
	"/fairlead.session.v1.SessionService/SetPermissionMode turn":             "the handler refuses one of another session",
	"/fairlead.session.v1.SessionService/Converse interrupt.turn":            "the handler refuses one of another session",
	"/fairlead.session.v1.SessionService/Converse answer_question.parent":    "the handler refuses another session than the open one",
	"/fairlead.session.v1.WebhookService/CreateWebhook webhook.session":      "it is for operators, who see every session",
	"/fairlead.session.v1.FeedbackService/CreateFeedback feedback.turn":      "the handler refuses one of another session",
	"/fairlead.session.v1.CheckpointService/RewindSession checkpoint":        "the handler refuses one of another session",
	"/fairlead.session.v1.CheckpointService/RewindSession before_turn":       "the handler refuses one of another session",
	"/fairlead.session.v1.SessionService/ForkSession turn":                   "the handler refuses one of another session",
	"/fairlead.session.v1.SessionService/Converse create_turn.parent":        "the handler refuses another session than the open one",
	"/fairlead.session.v1.SessionService/Converse interrupt.name":            "the handler refuses another session than the open one",
	"/fairlead.session.v1.SessionService/Converse resolve_approval.parent":   "the handler refuses another session than the open one",
	"/fairlead.session.v1.SessionService/Converse submit_tool_result.parent": "the handler refuses another session than the open one",
}

// open are the RPCs that need no credential, with the reason.
var open = map[string]string{
	"/fairlead.session.v1.McpService/FinishMcpLogin":  "a browser comes back with the state of the login, a secret that counts once",
	"/fairlead.session.v1.TriggerService/FireTrigger": "a delivery has the trigger's secret, or is signed with it",
}

var scopeForm = regexp.MustCompile(`^[a-z]+\.(read|write)$`)

func TestEachRPCSaysWhatACallerNeeds(t *testing.T) {
	n, exceptions, opened := 0, maps.Clone(checked), map[string]bool{}
	eachRPC(func(method string, rpc protoreflect.MethodDescriptor) {
		n++
		rule, err := access.Of(method)
		if err != nil {
			t.Error(err)
			return
		}
		if rule.Role == principal.RoleService {
			return
		}
		if rule.Open {
			if _, listed := open[method]; !listed {
				t.Errorf("%s needs no credential, and is not listed here with the reason", method)
			}
			opened[method] = true
			return
		}
		if !scopeForm.MatchString(rule.Scope) {
			t.Errorf("%s: the scope %q is not like sessions.read", method, rule.Scope)
		}
		for _, field := range sessionFields(rpc.Input(), nil) {
			_, exception := exceptions[method+" "+field]
			delete(exceptions, method+" "+field)
			if field != dotted(rule.Session) && !exception {
				t.Errorf("%s: the field %s names a session, and the option names %q", method, field, dotted(rule.Session))
			}
		}
		for _, p := range []access.Path{rule.Session, rule.User} {
			if s := pattern(p); len(p) > 0 && !strings.Contains(s, "sessions/") && !strings.Contains(s, "users/") {
				t.Errorf("%s: the field %s has the pattern %q, which is no session's or user's", method, dotted(p), s)
			}
		}
	})
	t.Logf("%d RPCs", n)
	for field := range exceptions {
		t.Errorf("%s names no session, or does not exist", field)
	}
	for method := range open {
		if !opened[method] {
			t.Errorf("%s is listed as open, and needs a credential", method)
		}
	}
	if n < 80 {
		t.Errorf("there are only %d RPCs", n)
	}
}

func TestRolesAreThoseOfTheSchema(t *testing.T) {
	for number, name := range commonv1.Role_name {
		want := strings.ToLower(strings.TrimPrefix(name, "ROLE_"))
		if want == "unspecified" {
			want = "none"
		}
		if got := principal.Role(number).String(); got != want {
			t.Errorf("role %d is %s, and %s in the schema", number, got, want)
		}
	}
}

// eachRPC calls f for each RPC of Fairlead that is linked.
func eachRPC(f func(method string, rpc protoreflect.MethodDescriptor)) {
	protoregistry.GlobalFiles.RangeFiles(func(file protoreflect.FileDescriptor) bool {
		if !strings.HasPrefix(string(file.Package()), "fairlead.") {
			return true
		}
		for i := range file.Services().Len() {
			s := file.Services().Get(i)
			for j := range s.Methods().Len() {
				rpc := s.Methods().Get(j)
				f("/"+string(s.FullName())+"/"+string(rpc.Name()), rpc)
			}
		}
		return true
	})
}

// sessionFields returns the fields of a request that name a session, or something in one.
func sessionFields(m protoreflect.MessageDescriptor, above []protoreflect.FullName) (fields []string) {
	if slices.Contains(above, m.FullName()) {
		return nil
	}
	above = append(slices.Clone(above), m.FullName())
	for i := range m.Fields().Len() {
		f := m.Fields().Get(i)
		switch {
		case f.IsMap():
		case f.Kind() == protoreflect.StringKind:
			if strings.Contains(pattern(access.Path{f}), "sessions/") {
				fields = append(fields, string(f.Name()))
			}
		case f.Message() != nil:
			for _, inner := range sessionFields(f.Message(), above) {
				fields = append(fields, string(f.Name())+"."+inner)
			}
		}
	}
	return fields
}

// pattern returns the patterns that a field, or each of its elements, must match.
func pattern(p access.Path) string {
	if len(p) == 0 {
		return ""
	}
	rules, _ := proto.GetExtension(p[len(p)-1].Options(), validate.E_Field).(*validate.FieldRules)
	return rules.GetString().GetPattern() + rules.GetRepeated().GetItems().GetString().GetPattern()
}

func dotted(p access.Path) string {
	var names []string
	for _, f := range p {
		names = append(names, string(f.Name()))
	}
	return strings.Join(names, ".")
}
