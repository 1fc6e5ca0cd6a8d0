package rpc

import (
	"reflect"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// copies copies the messages of calls within the program, so that caller and handler never share one.
type copies struct{}

// owned is a message that only its receiver knows, which takes its parts.
type owned struct{ message any }

// Clone implements inprocgrpc.Cloner.
func (copies) Clone(in any) (any, error) {
	m, ok := in.(proto.Message)
	if !ok { // a frame
		data, err := FrameCodec{}.Marshal(in)
		return &owned{&Frame{data}}, err
	}
	if err := fits(m); err != nil {
		return nil, err
	}
	return &owned{proto.Clone(m)}, nil
}

// Copy implements inprocgrpc.Cloner.
func (copies) Copy(out, in any) error {
	own, mine := in.(*owned)
	if mine {
		in = own.message
	}
	to, isMessage := out.(proto.Message)
	from, wasMessage := in.(proto.Message)
	if !isMessage || !wasMessage || reflect.TypeOf(to) != reflect.TypeOf(from) || to.ProtoReflect().Descriptor() != from.ProtoReflect().Descriptor() {
		data, err := FrameCodec{}.Marshal(in)
		if err != nil {
			return err
		}
		return FrameCodec{}.Unmarshal(data, out)
	}
	proto.Reset(to)
	if mine {
		move(to.ProtoReflect(), from.ProtoReflect())
		return nil
	}
	if err := fits(from); err != nil {
		return err
	}
	proto.Merge(to, from)
	return nil
}

// move gives the parts of a message to another one of its type.
func move(to, from protoreflect.Message) {
	from.Range(func(f protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		to.Set(f, v)
		return true
	})
	to.SetUnknown(from.GetUnknown())
}

// fits refuses a message that no connection would carry.
func fits(m proto.Message) error {
	if n := proto.Size(m); n > MaxMessage {
		return status.Errorf(codes.ResourceExhausted, "the message has %d bytes, and at most %d are allowed", n, MaxMessage)
	}
	return nil
}
