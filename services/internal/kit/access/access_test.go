package access_test

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/dynamicpb"

	"github.com/fairlead/fairlead/services/internal/kit/access"
	"github.com/fairlead/fairlead/services/internal/kit/access/accesstest"
	"github.com/fairlead/fairlead/services/internal/kit/apierr"
	"github.com/fairlead/fairlead/services/internal/kit/principal"
)

// Desks/Read names a session, Desks/Converse one in a message of its first message, Desks/Edit a user.
var request = describe()

func describe() protoreflect.MessageDescriptor {
	const typ = ".fairlead.accesstest.v1.Request"
	field := func(name string, number int32) *descriptorpb.FieldDescriptorProto {
		return &descriptorpb.FieldDescriptorProto{
			Name: &name, Number: &number, Type: descriptorpb.FieldDescriptorProto_TYPE_STRING.Enum(), Label: descriptorpb.FieldDescriptorProto_LABEL_OPTIONAL.Enum(),
		}
	}
	open := field("open", 2)
	open.Type, open.TypeName = descriptorpb.FieldDescriptorProto_TYPE_MESSAGE.Enum(), proto.String(typ)
	method := func(name string, o *accesstest.Option) *descriptorpb.MethodDescriptorProto {
		return accesstest.Method(name, typ, name == "Converse", o)
	}
	return accesstest.Register(&descriptorpb.FileDescriptorProto{
		Name: proto.String("fairlead/accesstest/v1/desk.proto"), Package: proto.String("fairlead.accesstest.v1"), Syntax: proto.String("proto3"),
		MessageType: []*descriptorpb.DescriptorProto{{Name: proto.String("Request"), Field: []*descriptorpb.FieldDescriptorProto{field("name", 1), open}}},
		Service: []*descriptorpb.ServiceDescriptorProto{{Name: proto.String("Desks"), Method: []*descriptorpb.MethodDescriptorProto{
			method("Read", &accesstest.Option{Role: principal.RoleViewer, Scope: "desks.read", Session: "name"}),
			method("Edit", &accesstest.Option{Role: principal.RoleUser, Scope: "desks.write", User: "name"}),
			method("DeleteSession", &accesstest.Option{Role: principal.RoleUser, Scope: "desks.write", Session: "name"}),
			method("Rule", &accesstest.Option{Role: principal.RoleOperator}),
			method("Serve", &accesstest.Option{Role: principal.RoleService}),
			method("Converse", &accesstest.Option{Role: principal.RoleUser, Scope: "desks.write", Session: "open.name"}),
			method("Deliver", &accesstest.Option{Open: true}),
			method("Ajar", &accesstest.Option{Open: true, Scope: "desks.read"}),
			method("Forgotten", nil),
			method("Mistaken", &accesstest.Option{Role: principal.RoleUser, Session: "nome"}),
			method("Roleless", &accesstest.Option{Scope: "desks.read"}),
		}}},
	}).Messages().Get(0)
}

func named(name string) *dynamicpb.Message {
	m := dynamicpb.NewMessage(request)
	m.Set(request.Fields().ByName("name"), protoreflect.ValueOfString(name))
	return m
}

func opening(name string) *dynamicpb.Message {
	m := dynamicpb.NewMessage(request)
	m.Set(request.Fields().ByName("open"), protoreflect.ValueOfMessage(named(name)))
	return m
}

// ledger knows the owners of sessions: by tenant and name.
type ledger struct {
	owners map[string]string
	asked  int
	broken error
}

func (l *ledger) SessionOwner(ctx context.Context, session string) (string, error) {
	l.asked++
	return l.owners[principal.Tenant(ctx)+" "+session], l.broken
}

func (*ledger) SessionNotFound(session string) error {
	return apierr.New(codes.NotFound, "desks.fairlead.dev", "DESK_NOT_FOUND", "there is no "+session)
}

// call sends a request through the interceptors and reports whether it reached the handler.
func call(g *access.Gate, p principal.Principal, method string, req proto.Message) (reached bool, err error) {
	info := &grpc.UnaryServerInfo{FullMethod: "/fairlead.accesstest.v1.Desks/" + method}
	_, err = g.UnaryCaller(principal.With(context.Background(), p), req, info, func(ctx context.Context, req any) (any, error) {
		return g.UnaryRequest(ctx, req, info, func(context.Context, any) (any, error) { reached = true; return req, nil })
	})
	return reached, err
}

func TestCallersNeedTheRoleTheScopeAndTheResource(t *testing.T) {
	as := func(r principal.Role, scopes ...string) principal.Principal {
		return principal.Principal{Tenant: "acme", User: "ann", Role: r, Scopes: scopes}
	}
	const denied, missing, internal = "PERMISSION_DENIED ", "DESK_NOT_FOUND", "internal"
	for name, c := range map[string]struct {
		p      principal.Principal
		method string
		req    proto.Message
		want   string
	}{
		"a viewer reads its own session":                     {as(principal.RoleViewer), "Read", named("sessions/own"), ""},
		"a viewer reads something in its session":            {as(principal.RoleViewer), "Read", named("sessions/own/turns/1"), ""},
		"a user reads another user's session":                {as(principal.RoleUser), "Read", named("sessions/bobs"), missing},
		"a user reads something in another's session":        {as(principal.RoleUser), "Read", named("sessions/bobs/turns/1"), missing},
		"a user reads a session that does not exist":         {as(principal.RoleUser), "Read", named("sessions/none"), missing},
		"a user reads a session of another tenant":           {as(principal.RoleUser), "Read", named("sessions/other"), missing},
		"an operator reads another user's session":           {as(principal.RoleOperator), "Read", named("sessions/bobs"), ""},
		"a user deletes its session":                         {as(principal.RoleUser), "DeleteSession", named("sessions/own"), ""},
		"a user deletes another user's session":              {as(principal.RoleUser), "DeleteSession", named("sessions/bobs"), missing},
		"a user deletes a session that is gone":              {as(principal.RoleUser), "DeleteSession", named("sessions/none"), ""},
		"a user deletes something in a session that is gone": {as(principal.RoleUser), "DeleteSession", named("sessions/none/turns/1"), missing},
		"a request without a session":                        {as(principal.RoleUser), "Read", named(""), ""},
		"no role":                                            {as(principal.RoleNone), "Read", named("sessions/own"), denied + "viewer"},
		"a viewer edits itself":                              {as(principal.RoleViewer), "Edit", named("users/ann"), denied + "user"},
		"a user edits itself":                                {as(principal.RoleUser), "Edit", named("users/ann"), ""},
		"a user edits itself as me":                          {as(principal.RoleUser), "Edit", named("users/me/name"), ""},
		"a user edits something of itself":                   {as(principal.RoleUser), "Edit", named("users/ann/variables/A"), ""},
		"a user edits another user":                          {as(principal.RoleUser), "Edit", named("users/bob"), "OTHER_USER"},
		"a user edits a user whose name begins alike":        {as(principal.RoleUser), "Edit", named("users/anna"), "OTHER_USER"},
		"an operator edits another user":                     {as(principal.RoleOperator), "Edit", named("users/bob"), ""},
		"a user rules":                                       {as(principal.RoleUser), "Rule", named(""), denied + "operator"},
		"an administrator calls what is for services":        {as(principal.RoleAdmin), "Serve", named(""), denied + "service"},
		"a service calls what is for services":               {as(principal.RoleService), "Serve", named(""), ""},
		"a key with the scope":                               {as(principal.RoleUser, "desks.read"), "Read", named("sessions/own"), ""},
		"a key with another scope":                           {as(principal.RoleAdmin, "desks.write"), "Read", named("sessions/own"), denied + "desks.read"},
		"a user opens its own session":                       {as(principal.RoleUser), "Converse", opening("sessions/own"), ""},
		"a user opens another user's session":                {as(principal.RoleUser), "Converse", opening("sessions/bobs"), missing},
		"a message without the message with the session":     {as(principal.RoleUser), "Converse", named("sessions/bobs"), ""},
		"a user calls an open RPC":                           {as(principal.RoleUser), "Deliver", named("sessions/bobs"), ""},
		"an RPC that is open and has a scope":                {as(principal.RoleService), "Ajar", named(""), internal},
		"an RPC without the option":                          {as(principal.RoleService), "Forgotten", named(""), internal},
		"an RPC whose option names an unknown field":         {as(principal.RoleService), "Mistaken", named(""), internal},
		"an RPC whose option has no role":                    {as(principal.RoleService), "Roleless", named(""), internal},
		"an RPC that is in no descriptor":                    {as(principal.RoleService), "Unheard", named(""), internal},
	} {
		t.Run(name, func(t *testing.T) {
			l := &ledger{owners: map[string]string{"acme sessions/own": "ann", "acme sessions/bobs": "bob", "rival sessions/other": "ann"}}
			reached, err := call(access.NewGate(l), c.p, c.method, c.req)
			if reached != (c.want == "") || (err == nil) != (c.want == "") {
				t.Fatalf("reached the handler: %v, error %v", reached, err)
			}
			needed, isDenied := strings.CutPrefix(c.want, denied)
			switch {
			case c.want == internal:
				if apierr.Code(err) != codes.Unknown { // apierr makes INTERNAL of it
					t.Errorf("got %v", err)
				}
			case isDenied:
				if apierr.Code(err) != codes.PermissionDenied || !strings.Contains(apierr.Message(err), " "+needed+",") {
					t.Errorf("got %v, which does not name %q", err, needed)
				}
			case apierr.Reason(err) != c.want:
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestAForeignSessionLooksLikeNone(t *testing.T) {
	l := &ledger{owners: map[string]string{"acme sessions/x": "bob"}}
	ann := principal.Principal{Tenant: "acme", User: "ann", Role: principal.RoleUser}
	_, foreign := call(access.NewGate(l), ann, "Read", named("sessions/x"))
	_, missing := call(access.NewGate(&ledger{}), ann, "Read", named("sessions/x"))
	if foreign == nil || missing == nil || foreign.Error() != missing.Error() {
		t.Errorf("a foreign session: %v; none: %v", foreign, missing)
	}
}

func TestAServerWithoutOwnersRefusesSessionsOfUsers(t *testing.T) {
	g := access.NewGate(nil)
	ann := principal.Principal{Tenant: "acme", User: "ann", Role: principal.RoleUser}
	if reached, err := call(g, ann, "Read", named("sessions/x")); reached || err == nil {
		t.Errorf("a user: %v", err)
	}
	ann.Role = principal.RoleOperator
	if reached, err := call(g, ann, "Read", named("sessions/x")); !reached || err != nil {
		t.Errorf("an operator: %v", err)
	}
}

func TestAnOwnerIsRememberedForASecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &ledger{owners: map[string]string{"acme sessions/x": "ann"}}
		g, ann := access.NewGate(l), principal.Principal{Tenant: "acme", User: "ann", Role: principal.RoleUser}
		for range 3 {
			if _, err := call(g, ann, "Read", named("sessions/x")); err != nil {
				t.Fatal(err)
			}
		}
		if l.asked != 1 {
			t.Errorf("asked %d times", l.asked)
		}
		l.owners["acme sessions/x"] = "bob" // it was deleted, and bob has taken the id
		time.Sleep(time.Second)             //nolint:forbidigo // the bubble's clock
		if _, err := call(g, ann, "Read", named("sessions/x")); apierr.Code(err) != codes.NotFound {
			t.Errorf("after a second: %v", err)
		}
		for range 2 { // what does not exist is not remembered
			_, _ = call(g, ann, "Read", named("sessions/none"))
		}
		if l.asked != 4 {
			t.Errorf("asked %d times", l.asked)
		}
		l.broken = errors.New("the database is away")
		if _, err := call(g, ann, "Read", named("sessions/none")); !errors.Is(err, l.broken) {
			t.Errorf("without the database: %v", err)
		}
	})
}

// stream is a server stream of given messages.
type stream struct {
	grpc.ServerStream
	ctx  context.Context
	sent []proto.Message
}

func (s *stream) Context() context.Context { return s.ctx }

func (s *stream) RecvMsg(m any) error {
	if len(s.sent) == 0 {
		return io.EOF
	}
	proto.Merge(m.(proto.Message), s.sent[0]) //nolint:forcetypeassert // the test sends messages
	s.sent = s.sent[1:]
	return nil
}

func TestEachMessageOfAStreamIsChecked(t *testing.T) {
	g := access.NewGate(&ledger{owners: map[string]string{"acme sessions/own": "ann", "acme sessions/bobs": "bob"}})
	info := &grpc.StreamServerInfo{FullMethod: "/fairlead.accesstest.v1.Desks/Converse"}
	run := func(r principal.Role, sent ...proto.Message) (got int, err error) {
		s := &stream{ctx: principal.With(t.Context(), principal.Principal{Tenant: "acme", User: "ann", Role: r}), sent: sent}
		return got, g.StreamCaller(nil, s, info, func(_ any, ss grpc.ServerStream) error {
			return g.StreamRequest(nil, ss, info, func(_ any, ss grpc.ServerStream) error {
				for {
					if err := ss.RecvMsg(dynamicpb.NewMessage(request)); err != nil {
						return err
					}
					got++
				}
			})
		})
	}
	if n, err := run(principal.RoleUser, opening("sessions/own"), named("hello")); n != 2 || !errors.Is(err, io.EOF) {
		t.Errorf("%d messages, %v", n, err)
	}
	if n, err := run(principal.RoleUser, opening("sessions/bobs")); n != 0 || apierr.Code(err) != codes.NotFound {
		t.Errorf("another user's: %d messages, %v", n, err)
	}
	if n, err := run(principal.RoleUser, opening("sessions/own"), opening("sessions/bobs")); n != 1 || apierr.Code(err) != codes.NotFound {
		t.Errorf("another user's in the second message: %d messages, %v", n, err)
	}
	if n, err := run(principal.RoleViewer, opening("sessions/own")); n != 0 || apierr.Reason(err) != apierr.ReasonRoleRequired {
		t.Errorf("a viewer: %d messages, %v", n, err)
	}
}

func TestHealthAndReflectionNeedNoRole(t *testing.T) {
	g := access.NewGate(nil)
	for _, method := range []string{"/grpc.health.v1.Health/Check", "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo"} {
		info := &grpc.UnaryServerInfo{FullMethod: method}
		if _, err := g.UnaryCaller(t.Context(), nil, info, func(ctx context.Context, req any) (any, error) {
			return g.UnaryRequest(ctx, req, info, func(context.Context, any) (any, error) { return nil, nil })
		}); err != nil {
			t.Errorf("%s: %v", method, err)
		}
	}
}
