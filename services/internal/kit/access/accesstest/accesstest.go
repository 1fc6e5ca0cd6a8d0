// Package accesstest describes services with the option access, for the kit's tests: they link no generated
// code, which has the real one.
package accesstest

import (
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/dynamicpb"

	"github.com/fairlead/fairlead/services/internal/kit/principal"
)

// Option is the content of the option.
type Option struct {
	Role                 principal.Role
	Scope, Session, User string
	Open                 bool
}

// option is the extension, as in proto/fairlead/common/v1/access.proto.
var option = register()

func register() protoreflect.ExtensionType {
	field := func(name string, number int32, typ descriptorpb.FieldDescriptorProto_Type) *descriptorpb.FieldDescriptorProto {
		return &descriptorpb.FieldDescriptorProto{
			Name: &name, Number: &number, Type: &typ, Label: descriptorpb.FieldDescriptorProto_LABEL_OPTIONAL.Enum(),
		}
	}
	const str, msg = descriptorpb.FieldDescriptorProto_TYPE_STRING, descriptorpb.FieldDescriptorProto_TYPE_MESSAGE
	role := field("role", 1, descriptorpb.FieldDescriptorProto_TYPE_ENUM)
	role.TypeName = proto.String(".fairlead.common.v1.Role")
	extension := field("access", 50520, msg)
	extension.TypeName, extension.Extendee = proto.String(".fairlead.common.v1.Access"), proto.String(".google.protobuf.MethodOptions")
	roles := &descriptorpb.EnumDescriptorProto{Name: proto.String("Role")}
	for _, r := range []principal.Role{principal.RoleNone, principal.RoleViewer, principal.RoleUser, principal.RoleOperator, principal.RoleAdmin, principal.RoleService} {
		roles.Value = append(roles.Value, &descriptorpb.EnumValueDescriptorProto{Name: proto.String(r.String()), Number: proto.Int32(int32(r))})
	}
	f := Register(&descriptorpb.FileDescriptorProto{
		Name: proto.String("fairlead/common/v1/access.proto"), Package: proto.String("fairlead.common.v1"), Syntax: proto.String("proto3"),
		Dependency: []string{"google/protobuf/descriptor.proto"}, EnumType: []*descriptorpb.EnumDescriptorProto{roles},
		MessageType: []*descriptorpb.DescriptorProto{{Name: proto.String("Access"), Field: []*descriptorpb.FieldDescriptorProto{
			role, field("scope", 2, str), field("session", 3, str), field("user", 4, str), field("open", 5, descriptorpb.FieldDescriptorProto_TYPE_BOOL),
		}}},
		Extension: []*descriptorpb.FieldDescriptorProto{extension},
	})
	x := dynamicpb.NewExtensionType(f.Extensions().Get(0))
	if err := protoregistry.GlobalTypes.RegisterExtension(x); err != nil {
		panic(err)
	}
	return x
}

// Register links a file.
func Register(f *descriptorpb.FileDescriptorProto) protoreflect.FileDescriptor {
	fd, err := protodesc.NewFile(f, protoregistry.GlobalFiles)
	if err == nil {
		err = protoregistry.GlobalFiles.RegisterFile(fd)
	}
	if err != nil {
		panic(err)
	}
	return fd
}

// Method describes an RPC of a message type to itself. Without an option the RPC has none.
func Method(name, typ string, streams bool, o *Option) *descriptorpb.MethodDescriptorProto {
	m := &descriptorpb.MethodDescriptorProto{
		Name: &name, InputType: &typ, OutputType: &typ, ClientStreaming: &streams, ServerStreaming: &streams, Options: &descriptorpb.MethodOptions{},
	}
	if o == nil {
		return m
	}
	access := option.New().Message()
	fields := access.Descriptor().Fields()
	access.Set(fields.ByName("role"), protoreflect.ValueOfEnum(protoreflect.EnumNumber(o.Role)))
	for name, value := range map[protoreflect.Name]string{"scope": o.Scope, "session": o.Session, "user": o.User} {
		access.Set(fields.ByName(name), protoreflect.ValueOfString(value))
	}
	access.Set(fields.ByName("open"), protoreflect.ValueOfBool(o.Open))
	m.Options.ProtoReflect().Set(option.TypeDescriptor(), protoreflect.ValueOfMessage(access))
	return m
}
