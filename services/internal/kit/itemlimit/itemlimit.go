// Package itemlimit judges how many items the lists of a request have before it looks at the items.
//
// The limits are those of the contract: max_items of a list, max_pairs of a map. A decoder that builds a million
// items needs far more memory than the request has bytes. So CutJSON and CutWire shorten an encoded list that is too
// long to one item more than its limit. Check then refuses the message, without a look at its items.
package itemlimit

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"

	"buf.build/gen/go/bufbuild/protovalidate/protocolbuffers/go/buf/validate"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// Violation is a list with too many items.
type Violation struct {
	// Path is the path of the list by proto field names, such as "config.env[2].keys".
	Path string
	// Text says what the list must be.
	Text string
}

// plan has the fields of a message that are limited lists, or contain some.
type plan struct {
	byName   map[string]*field // under both of its names
	byNumber map[protoreflect.FieldNumber]*field
}

// field is a limited list, or a field with limited lists below it.
type field struct {
	desc protoreflect.FieldDescriptor
	most int // 0: no limit
	// below is the plan of the field's messages: the value, the list's items or the map's values. It is nil if they have
	// no limited list.
	below *plan
}

var (
	plansMutex sync.Mutex
	plans      = map[protoreflect.MessageDescriptor]*plan{}
)

// planOf returns the plan of a message; nil if no list in it has a limit.
func planOf(m protoreflect.MessageDescriptor) *plan {
	plansMutex.Lock()
	defer plansMutex.Unlock()
	p, known := plans[m]
	if !known && limited(m, map[protoreflect.FullName]bool{}) {
		p = makePlan(m)
	}
	plans[m] = p
	return p
}

// makePlan returns the plan of a message with limited lists. The caller holds plansMutex.
func makePlan(m protoreflect.MessageDescriptor) *plan {
	if p := plans[m]; p != nil {
		return p
	}
	p := &plan{byName: map[string]*field{}, byNumber: map[protoreflect.FieldNumber]*field{}}
	plans[m] = p // before its fields, because messages may contain themselves
	for i := range m.Fields().Len() {
		d := m.Fields().Get(i)
		f := &field{desc: d, most: limitOf(d)}
		if below := messageOf(d); below != nil && limited(below, map[protoreflect.FullName]bool{}) {
			f.below = makePlan(below)
		}
		if f.most > 0 || f.below != nil {
			p.byName[d.JSONName()], p.byName[string(d.Name())], p.byNumber[d.Number()] = f, f, f
		}
	}
	return p
}

// limited reports whether a message has a limited list at any depth.
func limited(m protoreflect.MessageDescriptor, seen map[protoreflect.FullName]bool) bool {
	if seen[m.FullName()] {
		return false
	}
	seen[m.FullName()] = true
	for i := range m.Fields().Len() {
		d := m.Fields().Get(i)
		if limitOf(d) > 0 {
			return true
		}
		if below := messageOf(d); below != nil && limited(below, seen) {
			return true
		}
	}
	return false
}

// messageOf returns the message of a field, of a list's items or of a map's values; nil if they are scalars.
func messageOf(d protoreflect.FieldDescriptor) protoreflect.MessageDescriptor {
	if d.IsMap() {
		return d.MapValue().Message()
	}
	return d.Message()
}

// limitOf returns how many items a list or map may have; 0 if it has no limit.
func limitOf(d protoreflect.FieldDescriptor) int {
	if !d.IsList() && !d.IsMap() {
		return 0
	}
	rules, _ := proto.GetExtension(d.Options(), validate.E_Field).(*validate.FieldRules)
	if d.IsMap() {
		return int(rules.GetMap().GetMaxPairs())
	}
	return int(rules.GetRepeated().GetMaxItems())
}

// Check returns the lists of a message that are too long, at most as many as the caller wants. It looks into the items
// of the other lists only.
func Check(m protoreflect.Message, most int) []Violation {
	c := checker{left: most}
	if p := planOf(m.Descriptor()); p != nil {
		c.message(p, m, "")
	}
	slices.SortFunc(c.found, func(a, b Violation) int { return strings.Compare(a.Path, b.Path) }) // Range has no order
	return c.found
}

// checker collects violations until it has enough.
type checker struct {
	found []Violation
	left  int
}

func (c *checker) message(p *plan, m protoreflect.Message, path string) {
	m.Range(func(d protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		if f := p.byNumber[d.Number()]; f != nil {
			c.field(f, v, join(path, string(d.Name())))
		}
		return c.left > 0
	})
}

func (c *checker) field(f *field, v protoreflect.Value, path string) {
	switch {
	case f.desc.IsMap():
		if c.tooMany(f, v.Map().Len(), path, "entries") || f.below == nil {
			return
		}
		v.Map().Range(func(k protoreflect.MapKey, v protoreflect.Value) bool {
			c.message(f.below, v.Message(), fmt.Sprintf("%s[%q]", path, k.String()))
			return c.left > 0
		})
	case f.desc.IsList():
		if c.tooMany(f, v.List().Len(), path, "items") || f.below == nil {
			return
		}
		for i := 0; i < v.List().Len() && c.left > 0; i++ {
			c.message(f.below, v.List().Get(i).Message(), path+"["+strconv.Itoa(i)+"]")
		}
	default:
		c.message(f.below, v.Message(), path)
	}
}

// tooMany reports whether a list is too long, and notes it.
func (c *checker) tooMany(f *field, n int, path, items string) bool {
	if f.most == 0 || n <= f.most {
		return false
	}
	c.left--
	c.found = append(c.found, Violation{Path: path, Text: fmt.Sprintf("must have at most %d %s", f.most, items)})
	return true
}

func join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}
