package audit

import (
	"context"
	"strings"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/fairlead/fairlead/services/internal/kit/access"
	"github.com/fairlead/fairlead/services/internal/kit/apierr"
	"github.com/fairlead/fairlead/services/internal/kit/audit"
	"github.com/fairlead/fairlead/services/internal/kit/principal"
	"github.com/fairlead/fairlead/services/internal/kit/rpc"
)

// own is the prefix of this service's RPCs.
const own = "/fairlead.session.v1."

// syncedServices are the services whose changes are written before they are answered; so are all deletions.
var syncedServices = []string{"IdentityService", "WebhookService", "TriggerService", "AgentService"}

// Call records a call that has ended, unless it only reads or a service made it.
func (r *Recorder) Call(ctx context.Context, c rpc.AuditedCall) error {
	if !strings.HasPrefix(c.Method, own) {
		return nil
	}
	p, ok := principal.From(ctx)
	if !ok {
		p, ok = rpc.Identified(ctx)
	}
	if !ok || p.Role >= principal.RoleService {
		return nil
	}
	rule, err := access.Of(c.Method)
	if err != nil || strings.HasSuffix(rule.Scope, ".read") {
		return err
	}
	e := audit.Entry{
		Tenant: p.Tenant, Time: time.Now(), User: p.User, Credential: p.Credential, Client: c.Client,
		Method: Method(c.Method), Code: Code(c.Err), Reason: apierr.Reason(c.Err),
	}
	e.Resource, e.RequestID = resource(c.Request, c.Response), field(c.Request, "request_id")
	return r.Record(ctx, e, isSynced(c.Method))
}

// Method returns the name of an RPC in entries, of its full name in gRPC.
func Method(full string) string { return strings.Replace(full[1:], "/", ".", 1) }

func isSynced(method string) bool {
	service, name, _ := strings.Cut(strings.TrimPrefix(method, own), "/")
	for _, s := range syncedServices {
		if s == service {
			return true
		}
	}
	return strings.HasPrefix(name, "Delete")
}

// Code returns the name of a result's code as google.rpc.Code writes it, such as PERMISSION_DENIED.
func Code(err error) string {
	var b strings.Builder
	text := apierr.Code(err).String()
	if text == "OK" {
		return text
	}
	for i, c := range text {
		if i > 0 && c >= 'A' && c <= 'Z' {
			b.WriteByte('_')
		}
		b.WriteRune(c)
	}
	return strings.ToUpper(b.String())
}

// resource returns the name of what a call made, or of what it was about.
func resource(request, response any) string {
	name := field(request, "name")
	if name == "" {
		name = made(response)
	}
	for _, f := range []protoreflect.Name{"parent", "session", "user"} {
		if name == "" {
			name = field(request, f)
		}
	}
	return name
}

// field returns a text field of a message, or "".
func field(m any, name protoreflect.Name) string {
	msg, ok := m.(proto.Message)
	if !ok || msg == nil {
		return ""
	}
	r := msg.ProtoReflect()
	f := r.Descriptor().Fields().ByName(name)
	if !r.IsValid() || f == nil || f.Kind() != protoreflect.StringKind || f.IsList() {
		return ""
	}
	return r.Get(f).String()
}

// made returns the name of the resource in the first field of a response, or "".
func made(response any) string {
	msg, ok := response.(proto.Message)
	if !ok || msg == nil || !msg.ProtoReflect().IsValid() || msg.ProtoReflect().Descriptor().Fields().Len() == 0 {
		return ""
	}
	f := msg.ProtoReflect().Descriptor().Fields().Get(0)
	if f.Message() == nil || f.IsList() || f.IsMap() || !msg.ProtoReflect().Has(f) {
		return ""
	}
	return field(msg.ProtoReflect().Get(f).Message().Interface(), "name")
}
