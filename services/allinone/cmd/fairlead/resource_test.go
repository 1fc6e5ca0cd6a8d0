package main

import (
	"testing"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/alecthomas/kong"
)

// fits reports whether the answer of a command's method has what the command prints.
func (c lists[F, T]) fits(answer protoreflect.MessageDescriptor) bool {
	var none T
	return answer.Fields().ByName("next_page_token") != nil && has(answer, none, true)
}

func (c shows[F, A]) fits(answer protoreflect.MessageDescriptor) bool {
	var none A
	return answer == none.ProtoReflect().Descriptor() || has(answer, none, false)
}

func (does[F]) fits(protoreflect.MessageDescriptor) bool { return true }

// has reports whether a message has exactly one field with the type of m.
func has(in protoreflect.MessageDescriptor, m proto.Message, list bool) bool {
	n := 0
	for i := range in.Fields().Len() {
		if f := in.Fields().Get(i); f.Message() == m.ProtoReflect().Descriptor() && f.IsList() == list {
			n++
		}
	}
	return n == 1
}

func (c lists[F, T]) flags() requester { return c.Flags }

func (c shows[F, A]) flags() requester { return c.Flags }

func (c does[F]) flags() requester { return c.Flags }

func TestCommandsFitTheDescriptorsOfTheirRequests(t *testing.T) {
	t.Parallel()
	parser, err := kong.New(new(commands))
	if err != nil {
		t.Fatal(err)
	}
	checked := 0
	err = kong.Visit(parser.Model, func(node kong.Visitable, next kong.Next) error {
		command, ok := node.(*kong.Node)
		if !ok || !command.Target.IsValid() {
			return next(nil)
		}
		c, ok := command.Target.Interface().(interface {
			flags() requester
			fits(answer protoreflect.MessageDescriptor) bool
		})
		if !ok {
			return next(nil)
		}
		r := c.flags().request()
		if method := methods()[r.ProtoReflect().Descriptor().FullName()]; method == nil || !c.fits(method.Output()) {
			t.Errorf("%s: no method for %s that returns what the command prints", command.Path(), r.ProtoReflect().Descriptor().FullName())
		}
		checked++
		return next(nil)
	})
	if err != nil || checked < 60 {
		t.Errorf("%d commands were checked: %v", checked, err)
	}
}
