package itemlimit

import (
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// CutWire returns an encoded message with every list that is too long cut to one item more than its limit. It returns
// data itself if no list is too long. It leaves other faults of the encoding to the parser.
func CutWire(data []byte, m protoreflect.MessageDescriptor) []byte {
	p := planOf(m)
	if p == nil {
		return data
	}
	if c := (cutter{}); !c.message(p, &counts{}, data, 0) {
		return data
	}
	c := cutter{writes: true}
	c.message(p, &counts{}, data, 0)
	return c.out
}

// counts has how many items the lists of a message have so far. A message that is no item of a list may come in
// several parts, which the parser merges.
type counts struct {
	items map[protoreflect.FieldNumber]int
	below map[protoreflect.FieldNumber]*counts
}

// add counts an item.
func (c *counts) add(n protoreflect.FieldNumber) int {
	if c.items == nil {
		c.items = map[protoreflect.FieldNumber]int{}
	}
	c.items[n]++
	return c.items[n]
}

// of returns the counts of a part of a message.
func (c *counts) of(f *field) *counts {
	n := f.desc.Number()
	if f.desc.IsList() || f.desc.IsMap() {
		return &counts{}
	}
	if c.below == nil {
		c.below = map[protoreflect.FieldNumber]*counts{}
	}
	if c.below[n] == nil {
		c.below[n] = &counts{}
	}
	return c.below[n]
}

// cutter reads an encoded message. It copies what it keeps if it writes.
type cutter struct {
	writes bool
	out    []byte
}

// message reads a message with this plan, and reports whether a list in it is too long. A cutter that does not write
// ends at the first such list.
func (c *cutter) message(p *plan, has *counts, data []byte, depth int) (over bool) {
	for len(data) > 0 {
		number, kind, head := protowire.ConsumeTag(data)
		if head < 0 {
			break
		}
		n := protowire.ConsumeFieldValue(number, kind, data[head:])
		if n < 0 {
			break
		}
		f := p.byNumber[number]
		if f != nil && f.most > 0 && has.add(number) > f.most {
			over = true
			if !c.writes {
				return true
			}
			if has.items[number] > f.most+1 {
				data = data[head+n:]
				continue
			}
		}
		if f != nil && f.below != nil && kind == protowire.BytesType && depth < deepest {
			value, _ := protowire.ConsumeBytes(data[head:])
			if c.below(f, has, number, value, depth) {
				over = true
				if !c.writes {
					return true
				}
			}
		} else {
			c.keep(data[:head+n])
		}
		data = data[head+n:]
	}
	c.keep(data) // the parser finds the fault
	return over
}

// below reads the message in a field.
func (c *cutter) below(f *field, has *counts, number protoreflect.FieldNumber, value []byte, depth int) (over bool) {
	p, inner := f.below, has.of(f)
	if f.desc.IsMap() { // an entry is a message with the fields key and value
		p = &plan{byNumber: map[protoreflect.FieldNumber]*field{2: {desc: f.desc.MapValue(), below: f.below}}}
	}
	outer := c.out
	c.out = nil
	over = c.message(p, inner, value, depth+1)
	if c.writes {
		c.out = protowire.AppendBytes(protowire.AppendTag(outer, number, protowire.BytesType), c.out)
	}
	return over
}

// keep copies a part of the message.
func (c *cutter) keep(part []byte) {
	if c.writes {
		c.out = append(c.out, part...)
	}
}
