package rpc_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"strings"
	"sync"
	"testing"

	"buf.build/gen/go/bufbuild/protovalidate/protocolbuffers/go/buf/validate"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/dynamicpb"

	"github.com/fairlead/fairlead/services/internal/kit/access/accesstest"
	"github.com/fairlead/fairlead/services/internal/kit/principal"
)

// The kit knows no service, so its tests describe one: message Note {request_id, text, items}, with an RPC of each kind.
const (
	unaryMethod  = "/fairlead.test.v1.Notes/Take"
	streamMethod = "/fairlead.test.v1.Notes/Exchange"
	openMethod   = "/fairlead.test.v1.Notes/Deliver"
)

var note = describe()

func describe() protoreflect.MessageDescriptor {
	field := func(name string, number int32, rules *validate.FieldRules) *descriptorpb.FieldDescriptorProto {
		o := &descriptorpb.FieldOptions{}
		if rules != nil {
			proto.SetExtension(o, validate.E_Field, rules)
		}
		return &descriptorpb.FieldDescriptorProto{
			Name: &name, Number: &number, Options: o, Label: descriptorpb.FieldDescriptorProto_LABEL_OPTIONAL.Enum(),
			Type: descriptorpb.FieldDescriptorProto_TYPE_STRING.Enum(),
		}
	}
	text := func(r *validate.StringRules) *validate.FieldRules {
		return &validate.FieldRules{Type: &validate.FieldRules_String_{String_: r}}
	}
	items := field("items", 3, nil)
	items.Type, items.Label = descriptorpb.FieldDescriptorProto_TYPE_MESSAGE.Enum(), descriptorpb.FieldDescriptorProto_LABEL_REPEATED.Enum()
	items.TypeName = proto.String(".fairlead.test.v1.Item")
	whole := &descriptorpb.MessageOptions{}
	proto.SetExtension(whole, validate.E_Message, &validate.MessageRules{Cel: []*validate.Rule{{
		Id: proto.String("key.reserved"), Message: proto.String("is reserved"), Expression: proto.String("this.key != 'reserved'"),
	}}})
	f := accesstest.Register(&descriptorpb.FileDescriptorProto{
		Name: proto.String("fairlead/test/v1/note.proto"), Package: proto.String("fairlead.test.v1"), Syntax: proto.String("proto3"),
		MessageType: []*descriptorpb.DescriptorProto{
			{Name: proto.String("Note"), Field: []*descriptorpb.FieldDescriptorProto{
				field("request_id", 1, text(&validate.StringRules{MaxLen: proto.Uint64(64)})),
				field("text", 2, text(&validate.StringRules{MinLen: proto.Uint64(1)})),
				items,
			}},
			{Name: proto.String("Item"), Options: whole, Field: []*descriptorpb.FieldDescriptorProto{
				field("key", 1, text(&validate.StringRules{Pattern: proto.String("^[a-z]+$")})),
			}},
		},
		Service: []*descriptorpb.ServiceDescriptorProto{
			{Name: proto.String("Notes"), Method: []*descriptorpb.MethodDescriptorProto{
				accesstest.Method("Take", ".fairlead.test.v1.Note", false, &accesstest.Option{Role: principal.RoleUser}),
				accesstest.Method("Deliver", ".fairlead.test.v1.Note", false, &accesstest.Option{Open: true}),
				accesstest.Method("Exchange", ".fairlead.test.v1.Note", true, &accesstest.Option{Role: principal.RoleUser}),
			}},
			{Name: proto.String("Inside"), Method: []*descriptorpb.MethodDescriptorProto{
				accesstest.Method("Take", ".fairlead.test.v1.Note", false, &accesstest.Option{Role: principal.RoleService}),
			}},
		},
	})
	return f.Messages().ByName("Note")
}

func get(m proto.Message, name protoreflect.Name) string {
	r := m.ProtoReflect()
	return r.Get(r.Descriptor().Fields().ByName(name)).String()
}

func newNote(text string, keys ...string) *dynamicpb.Message {
	m := dynamicpb.NewMessage(note)
	m.Set(note.Fields().ByName("text"), protoreflect.ValueOfString(text))
	list := m.Mutable(note.Fields().ByName("items")).List()
	for _, k := range keys {
		e := list.NewElement()
		e.Message().Set(e.Message().Descriptor().Fields().ByName("key"), protoreflect.ValueOfString(k))
		list.Append(e)
	}
	return m
}

// notes is the service. A nil function echoes.
type notes struct {
	take     func(ctx context.Context, in *dynamicpb.Message) (*dynamicpb.Message, error)
	exchange func(s grpc.ServerStream) error
}

func (n *notes) desc(name string, methods []grpc.MethodDesc, streams []grpc.StreamDesc) *grpc.ServiceDesc {
	return &grpc.ServiceDesc{ServiceName: name, HandlerType: (*any)(nil), Methods: methods, Streams: streams, Metadata: "fairlead/test/v1/note.proto"}
}

func (n *notes) unary(srv any, ctx context.Context, dec func(any) error, chain grpc.UnaryServerInterceptor) (any, error) { //nolint:revive // grpc-go's order
	return n.handler(unaryMethod)(srv, ctx, dec, chain)
}

// handler returns the handler of a unary RPC.
func (n *notes) handler(method string) grpc.MethodHandler {
	return func(_ any, ctx context.Context, dec func(any) error, chain grpc.UnaryServerInterceptor) (any, error) {
		in := dynamicpb.NewMessage(note)
		if err := dec(in); err != nil {
			return nil, err
		}
		return chain(ctx, in, &grpc.UnaryServerInfo{Server: n, FullMethod: method}, func(ctx context.Context, req any) (any, error) {
			if n.take == nil {
				return req, nil
			}
			return n.take(ctx, req.(*dynamicpb.Message))
		})
	}
}

func (n *notes) stream(_ any, s grpc.ServerStream) error {
	if n.exchange != nil {
		return n.exchange(s)
	}
	for {
		in := dynamicpb.NewMessage(note)
		if err := s.RecvMsg(in); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		if err := s.SendMsg(in); err != nil {
			return err
		}
	}
}

func (n *notes) RegisterPublic(s grpc.ServiceRegistrar) {
	s.RegisterService(n.desc("fairlead.test.v1.Notes",
		[]grpc.MethodDesc{{MethodName: "Take", Handler: n.unary}, {MethodName: "Deliver", Handler: n.handler(openMethod)}},
		[]grpc.StreamDesc{{StreamName: "Exchange", Handler: n.stream, ServerStreams: true, ClientStreams: true}}), n)
}

func (n *notes) RegisterPeer(s grpc.ServiceRegistrar) {
	s.RegisterService(n.desc("fairlead.test.v1.Inside", []grpc.MethodDesc{{MethodName: "Take", Handler: n.unary}}, nil), n)
}

func take(ctx context.Context, cc grpc.ClientConnInterface, in proto.Message, opts ...grpc.CallOption) (*dynamicpb.Message, error) {
	out := dynamicpb.NewMessage(note)
	return out, cc.Invoke(ctx, unaryMethod, in, out, opts...)
}

func exchange(ctx context.Context, cc grpc.ClientConnInterface) (grpc.ClientStream, error) {
	return cc.NewStream(ctx, &grpc.StreamDesc{ServerStreams: true, ClientStreams: true}, streamMethod)
}

// journal is a log that tests can read.
type journal struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (j *journal) Write(p []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.b.Write(p)
}

func (j *journal) String() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.b.String()
}

// lines returns the lines that contain every one of the words.
func (j *journal) lines(words ...string) []string {
	var found []string
	for l := range strings.Lines(j.String()) {
		all := true
		for _, w := range words {
			all = all && strings.Contains(l, w)
		}
		if all {
			found = append(found, l)
		}
	}
	return found
}

func newJournal(t *testing.T) (*journal, *slog.Logger) {
	j := &journal{}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("log:\n%s", j)
		}
	})
	return j, slog.New(slog.NewTextHandler(j, &slog.HandlerOptions{Level: slog.LevelDebug}))
}

func valueOf(s string) protoreflect.Value { return protoreflect.ValueOfString(s) }
