package rpc

import (
	"google.golang.org/grpc/encoding"
	_ "google.golang.org/grpc/encoding/proto" // registers the codec of messages
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/proto"

	"github.com/fairlead/fairlead/services/internal/kit/itemlimit"
)

// Frame is a message of any type, as its bytes. A program that passes messages on receives and sends frames, so that
// it neither parses nor changes them. Sending a frame uses it up.
type Frame struct{ data mem.BufferSlice }

// NewFrame returns a frame with these bytes, which the caller must not change afterwards.
func NewFrame(b []byte) *Frame { return &Frame{mem.BufferSlice{mem.SliceBuffer(b)}} }

// Bytes returns a copy of the frame's bytes.
func (f *Frame) Bytes() []byte { return f.data.Materialize() }

// FrameCodec is the codec of messages, which also takes frames. All servers of this package have it; calls with frames
// need the option grpc.ForceCodecV2(FrameCodec{}).
type FrameCodec struct{}

var messages = encoding.GetCodecV2("proto")

// Marshal implements encoding.CodecV2.
func (FrameCodec) Marshal(v any) (mem.BufferSlice, error) {
	if f, ok := v.(*Frame); ok {
		data := f.data
		f.data = nil
		return data, nil
	}
	return messages.Marshal(v)
}

// Unmarshal implements encoding.CodecV2.
func (FrameCodec) Unmarshal(data mem.BufferSlice, v any) error {
	if f, ok := v.(*Frame); ok {
		data.Ref()
		f.data = data
		return nil
	}
	m, ok := v.(proto.Message)
	if !ok {
		return messages.Unmarshal(data, v)
	}
	b := data.MaterializeToBuffer(mem.DefaultBufferPool())
	defer b.Free()
	// Of a list that is too long, validation needs no more than one item too many.
	return proto.Unmarshal(itemlimit.CutWire(b.ReadOnlyData(), m.ProtoReflect().Descriptor()), m)
}

// Name implements encoding.CodecV2.
func (FrameCodec) Name() string { return messages.Name() }
