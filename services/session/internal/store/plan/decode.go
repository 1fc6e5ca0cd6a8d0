package plan

import (
	"fmt"
	"unicode/utf8"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	commonv1 "github.com/fairlead/fairlead/gen/go/fairlead/common/v1"
	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
)

// Most blocks of a long conversation are texts. These are decoded by hand, into
// memory that is allocated for many at once. proto.Unmarshal decodes all other
// blocks and any field that a newer version may have added.

// field is one field on the wire. at and end delimit its bytes.
type field struct {
	number  protowire.Number
	kind    protowire.Type
	varint  uint64
	at, end int
}

// wireBody is a body on the wire, held twice, so that strings can share its
// text.
type wireBody struct {
	bytes []byte
	text  string
}

// next reads the field at at and returns the index after it, or a negative one
// if no field can be read there.
func (b *wireBody) next(at, end int) (f field, next int) {
	number, kind, n := protowire.ConsumeTag(b.bytes[at:end])
	if n < 0 {
		return f, -1
	}
	at += n
	f = field{number: number, kind: kind}
	switch kind {
	case protowire.VarintType:
		if f.varint, n = protowire.ConsumeVarint(b.bytes[at:end]); n < 0 {
			return f, -1
		}
		return f, at + n
	case protowire.BytesType:
		size, n := protowire.ConsumeVarint(b.bytes[at:end])
		if n < 0 || size > uint64(end-at-n) {
			return f, -1
		}
		f.at = at + n
		f.end = f.at + int(size)
		return f, f.end
	default:
		return f, -1
	}
}

// string sets s to a field that must be UTF-8.
func (b *wireBody) string(f field, s *string) bool {
	*s = b.text[f.at:f.end]
	return f.kind == protowire.BytesType && utf8.ValidString(*s)
}

// only reads a message that has only field 1, of bytes.
func (b *wireBody) only(f field) (field, bool) {
	in, next := b.next(f.at, f.end)
	return in, next == f.end && in.number == 1 && in.kind == protowire.BytesType
}

// textParts is the memory of a block of text.
type textParts struct {
	block     sessionv1.Block
	inBlock   sessionv1.Block_Content
	content   commonv1.Content
	inContent commonv1.Content_Text
	text      commonv1.Text
}

// decoder decodes messages of one batch.
type decoder struct {
	spare  []textParts
	blocks []*sessionv1.Block
}

// message decodes a body into m, which is empty.
func (d *decoder) message(body *wireBody, at, end int, m *sessionv1.Message) error {
	if d.fast(body, at, end, m) {
		return nil
	}
	proto.Reset(m)
	if err := proto.Unmarshal(body.bytes[at:end], m); err != nil {
		return fmt.Errorf("read Message: %w", err)
	}
	return nil
}

// fast reports whether it could decode the whole body.
func (d *decoder) fast(body *wireBody, at, end int, m *sessionv1.Message) bool {
	first := len(d.blocks)
	for at < end {
		var f field
		if f, at = body.next(at, end); at < 0 {
			return false
		}
		ok := true
		switch {
		case f.number == 1:
			ok = body.string(f, &m.Name)
		case f.number == 2:
			ok = body.string(f, &m.Parent)
		case f.number == 3 && f.kind == protowire.VarintType:
			m.Role = sessionv1.Role(int32(f.varint))
		case f.number == 4 && f.kind == protowire.BytesType:
			ok = d.block(body, f)
		case f.number == 5:
			ok = body.string(f, &m.Turn)
		case f.number == 6 && f.kind == protowire.VarintType:
			m.Step = int32(f.varint)
		case f.number == 7 && f.kind == protowire.BytesType && m.CreateTime == nil:
			m.CreateTime = &timestamppb.Timestamp{}
			ok = proto.Unmarshal(body.bytes[f.at:f.end], m.CreateTime) == nil
		default:
			ok = false
		}
		if !ok {
			return false
		}
	}
	if n := len(d.blocks); n > first {
		m.Blocks = d.blocks[first:n:n]
	}
	return true
}

// block decodes a block and keeps it in d.blocks.
func (d *decoder) block(body *wireBody, f field) bool {
	if content, ok := body.only(f); ok {
		if text, ok := body.only(content); ok {
			return d.textBlock(body, text)
		}
	}
	b := &sessionv1.Block{}
	d.blocks = append(d.blocks, b)
	return proto.Unmarshal(body.bytes[f.at:f.end], b) == nil
}

// textBlock decodes the Text of a block.
func (d *decoder) textBlock(body *wireBody, f field) bool {
	if len(d.spare) == 0 {
		d.spare = make([]textParts, 64)
	}
	p := &d.spare[0]
	d.spare = d.spare[1:]
	if f.at < f.end {
		text, ok := body.only(f)
		if !ok || !body.string(text, &p.text.Text) {
			return false
		}
	}
	p.inContent.Text = &p.text
	p.content.Kind = &p.inContent
	p.inBlock.Content = &p.content
	p.block.Kind = &p.inBlock
	d.blocks = append(d.blocks, &p.block)
	return true
}
