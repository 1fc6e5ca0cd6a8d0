package auth

import (
	"context"
	"fmt"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/fairlead/fairlead/services/internal/kit/apierr"
	"github.com/fairlead/fairlead/services/internal/kit/principal"
)

// The internal RPC of session that knows the keys. The kit imports no generated code, so it makes the messages by
// reflection; a program that uses RemoteKeys links them.
const (
	keyService  = "/fairlead.session.v1.KeyService/"
	keyMessages = "fairlead.session.v1."
)

// RemoteKeys returns the keys that the session service knows. The connection is to its peer listener.
func RemoteKeys(session grpc.ClientConnInterface) Keys { return remoteKeys{session} }

type remoteKeys struct{ session grpc.ClientConnInterface }

// ResolveKey implements Keys.
func (k remoteKeys) ResolveKey(ctx context.Context, sha256 []byte) (r Resolved, err error) {
	answer, err := k.ask(ctx, "ResolveKey", func(ask protoreflect.Message) {
		ask.Set(field(ask, "sha256"), protoreflect.ValueOfBytes(sha256))
	})
	if err != nil {
		return r, err
	}
	return fromMessage(answer), nil
}

// MostRole implements Keys.
func (k remoteKeys) MostRole(ctx context.Context, tenant, user string) (principal.Role, error) {
	answer, err := k.ask(ctx, "ResolveUser", func(ask protoreflect.Message) {
		ask.Set(field(ask, "tenant"), protoreflect.ValueOfString(tenant))
		ask.Set(field(ask, "user"), protoreflect.ValueOfString(user))
	})
	if err != nil {
		return principal.RoleNone, err
	}
	return principal.Role(answer.Get(field(answer, "role")).Enum()), nil
}

// ask calls an RPC.
func (k remoteKeys) ask(ctx context.Context, rpc string, fill func(ask protoreflect.Message)) (protoreflect.Message, error) {
	ask, err := message(protoreflect.FullName(keyMessages + rpc + "Request"))
	if err != nil {
		return nil, err
	}
	answer, err := message(protoreflect.FullName(keyMessages + rpc + "Response"))
	if err != nil {
		return nil, err
	}
	fill(ask)
	service := principal.Service(principal.Default().Tenant, principal.Default().User)
	err = k.session.Invoke(principal.With(ctx, service), keyService+rpc, ask.Interface(), answer.Interface())
	if apierr.Code(err) == codes.Unauthenticated && apierr.ErrorDomain(err) != apierr.Domain { // that domain refuses this service
		err = fmt.Errorf("%w: %s", ErrRefused, apierr.Reason(err))
	}
	return answer, err
}

func fromMessage(m protoreflect.Message) (r Resolved) {
	text := func(name protoreflect.Name) string { return m.Get(field(m, name)).String() }
	r.Principal = principal.Principal{
		Tenant: text("tenant"), User: text("user"), Role: principal.Role(m.Get(field(m, "role")).Enum()), Credential: text("credential"),
	}
	scopes := m.Get(field(m, "scopes")).List()
	for i := range scopes.Len() {
		r.Scopes = append(r.Scopes, scopes.Get(i).String())
	}
	if f := field(m, "expire_time"); m.Has(f) {
		if at, ok := m.Get(f).Message().Interface().(*timestamppb.Timestamp); ok {
			r.Expire = at.AsTime()
		}
	}
	return r
}

func message(name protoreflect.FullName) (protoreflect.Message, error) {
	t, err := protoregistry.GlobalTypes.FindMessageByName(name)
	if err != nil {
		return nil, fmt.Errorf("this program does not link %s: %w", name, err)
	}
	return t.New(), nil
}

func field(m protoreflect.Message, name protoreflect.Name) protoreflect.FieldDescriptor {
	return m.Descriptor().Fields().ByName(name)
}
