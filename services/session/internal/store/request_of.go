package store

import (
	"crypto/sha256"

	"google.golang.org/protobuf/proto"
)

// RequestOf returns the idempotency key of a mutation: the digest covers the
// request without the fields that may differ when it is repeated.
func RequestOf(method, parent, id string, r proto.Message) Request {
	m := proto.Clone(r)
	fields := m.ProtoReflect().Descriptor().Fields()
	m.ProtoReflect().Clear(fields.ByName("request_id"))
	if f := fields.ByName("after_seq"); f != nil {
		m.ProtoReflect().Clear(f)
	}
	b, err := proto.MarshalOptions{Deterministic: true}.Marshal(m)
	if err != nil {
		panic(err) // a received message can be marshaled
	}
	sum := sha256.Sum256(b)
	return Request{Method: method, Parent: parent, ID: id, Digest: sum[:]}
}
