package main

import (
	"context"
	"fmt"
	"io"
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	"github.com/fairlead/fairlead/services/allinone/internal/terminal"
	"github.com/fairlead/fairlead/services/internal/kit/id"
)

// A command about a resource is a field of its group, of the type lists, shows or does. The type's first parameter is a
// struct with the command's arguments and flags, which makes the request and says how the answer is printed. The
// descriptors of the API say the rest: the method of a request, its pages, its request id, and where its answer has the
// resource. A group's tag set:"one=NAME" names the resource in the help of --json.

// requester are the arguments and flags of a command, which make its request. If they have a method ready, it checks
// them and reads files before.
type requester interface {
	request() proto.Message
}

func ready(flags any) error {
	if f, ok := flags.(interface{ ready() error }); ok {
		return f.ready()
	}
	return nil
}

// lists is a command that prints resources, in rows or one JSON object per line. A row has pairs of a column and its cell.
type lists[F interface {
	requester
	row(x T) [][]string
}, T proto.Message] struct {
	Flags F `embed:""`
	target
}

// Run prints the resources.
func (c lists[F, T]) Run(ctx context.Context, s stdio) error {
	if err := ready(&c.Flags); err != nil {
		return err
	}
	return c.with(ctx, s, func(ctx context.Context, b *backend) error {
		limit := 0
		if f, ok := any(c.Flags).(interface{ limit() int }); ok {
			limit = f.limit()
		}
		found, err := all[T](ctx, b, c.Flags.request(), limit)
		if err != nil {
			return terminal.Explained(err)
		}
		if asJSON(c.Flags) {
			return printJSON(s.out, found)
		}
		width := 60
		if _, ok := any(c.Flags).(interface{ isInFull() }); ok {
			width = 0
		}
		return table(s.out, rowsOf(found, c.Flags.row), width)
	})
}

// shows is a command that prints what one request returns: a resource, or the whole answer.
type shows[F interface {
	requester
	show(s stdio, x A) error
}, A proto.Message] struct {
	Flags F `embed:""`
	target
}

// Run makes the request and prints its answer.
func (c shows[F, A]) Run(ctx context.Context, s stdio) error {
	if err := ready(&c.Flags); err != nil {
		return err
	}
	return c.answer(ctx, s, c.Flags, c.Flags.request(), func(answer proto.Message) error {
		x := resourceOf[A](answer)
		if asJSON(c.Flags) {
			return writeJSON(s.out, x)
		}
		return c.Flags.show(s, x)
	})
}

// does is a command whose answer says nothing. It prints what done returns, unless that is empty.
type does[F interface {
	requester
	done() string
}] struct {
	Flags F `embed:""`
	target
}

// Run makes the request.
func (c does[F]) Run(ctx context.Context, s stdio) error {
	if err := ready(&c.Flags); err != nil {
		return err
	}
	return c.answer(ctx, s, c.Flags, c.Flags.request(), func(proto.Message) (err error) {
		if said := c.Flags.done(); said != "" {
			_, err = fmt.Fprintln(s.out, said)
		}
		return err
	})
}

// once marks flags whose request is not repeated after a lost connection. Other requests are, if they have a request id.
type once struct{}

func (once) isOnce() {}

// inFull marks flags of a command that prints long cells in full.
type inFull struct{}

func (inFull) isInFull() {}

// lasting marks flags of a command whose effect needs a server that runs on.
type lasting struct{}

func (lasting) isLasting() {}

// answer makes a request of flags and calls f with its answer.
func (t target) answer(ctx context.Context, s stdio, flags any, r proto.Message, f func(answer proto.Message) error) error {
	return t.with(ctx, s, func(ctx context.Context, b *backend) (err error) {
		if c, ok := flags.(interface {
			complete(ctx context.Context, b *backend, r proto.Message) error
		}); ok {
			if err := c.complete(ctx, b, r); err != nil {
				return terminal.Explained(err)
			}
		}
		ask := b.repeat
		if _, ok := flags.(interface{ isOnce() }); ok {
			ask = b.ask
		}
		answer, err := ask(ctx, r)
		if err != nil {
			return terminal.Explained(err)
		}
		if _, ok := flags.(interface{ isLasting() }); ok && b.address == "" {
			_, _ = io.WriteString(s.err, idle)
		}
		return f(answer)
	})
}

// idle is said by commands whose effect needs a server that runs on, if it ends with the command.
const idle = "No server runs after this command. Start one to send what is due: fairlead serve\n"

// jsonList, jsonOne and plainJSON are the flags that print JSON.
type (
	jsonList struct {
		JSON bool `name:"json" help:"Print one JSON ${one} per line."`
	}
	jsonOne struct {
		JSON bool `name:"json" help:"Print the ${one} as JSON."`
	}
	plainJSON struct {
		JSON bool `name:"json" help:"Print JSON."`
	}
)

func (f jsonList) asJSON() bool { return f.JSON }

func (f jsonOne) asJSON() bool { return f.JSON }

func (f plainJSON) asJSON() bool { return f.JSON }

func asJSON(flags any) bool {
	f, ok := flags.(interface{ asJSON() bool })
	return ok && f.asJSON()
}

// methods has the methods of the API by the type of their request, which each has for itself.
var methods = sync.OnceValue(func() map[protoreflect.FullName]protoreflect.MethodDescriptor {
	found := map[protoreflect.FullName]protoreflect.MethodDescriptor{}
	protoregistry.GlobalFiles.RangeFiles(func(file protoreflect.FileDescriptor) bool {
		for i := range file.Services().Len() {
			for all, n := file.Services().Get(i).Methods(), 0; n < all.Len(); n++ {
				found[all.Get(n).Input().FullName()] = all.Get(n)
			}
		}
		return true
	})
	return found
})

// ask makes a request. If it has a request id, it gets one.
func (b *backend) ask(ctx context.Context, r proto.Message) (proto.Message, error) {
	method := methods()[r.ProtoReflect().Descriptor().FullName()]
	if f := method.Input().Fields().ByName("request_id"); f != nil && !r.ProtoReflect().Has(f) {
		r.ProtoReflect().Set(f, protoreflect.ValueOfString(id.New()))
	}
	output, err := protoregistry.GlobalTypes.FindMessageByName(method.Output().FullName())
	if err != nil {
		return nil, err
	}
	answer := output.New().Interface()
	return answer, b.conn.Invoke(ctx, fmt.Sprintf("/%s/%s", method.Parent().FullName(), method.Name()), r, answer, grpc.StaticMethod())
}

// repeat makes a request. If it has a request id, it is repeated after a lost connection.
func (b *backend) repeat(ctx context.Context, r proto.Message) (answer proto.Message, err error) {
	if r.ProtoReflect().Descriptor().Fields().ByName("request_id") == nil {
		return b.ask(ctx, r)
	}
	err = retry(ctx, func() error {
		answer, err = b.ask(ctx, r)
		return err
	})
	return answer, err
}

// get makes a request and returns the resource in its answer.
func get[A proto.Message](ctx context.Context, b *backend, r proto.Message) (none A, err error) {
	answer, err := b.ask(ctx, r)
	if err != nil {
		return none, err
	}
	return resourceOf[A](answer), nil
}

// change is get for a request that is repeated after a lost connection.
func change[A proto.Message](ctx context.Context, b *backend, r proto.Message) (x A, err error) {
	err = retry(ctx, func() error {
		x, err = get[A](ctx, b, r)
		return err
	})
	return x, err
}

// resourceOf returns an answer, or the resource of type A in it.
func resourceOf[A proto.Message](answer proto.Message) A {
	if x, ok := answer.(A); ok {
		return x
	}
	var none A
	fields := answer.ProtoReflect().Descriptor().Fields()
	for i := range fields.Len() {
		if f := fields.Get(i); f.Message() == none.ProtoReflect().Descriptor() {
			return answer.ProtoReflect().Get(f).Message().Interface().(A)
		}
	}
	return none
}

// all lists resources, at most limit of them; 0 means all. The request has fields for pages, and the answer one field with the resources.
func all[T proto.Message](ctx context.Context, b *backend, r proto.Message, limit int) (found []T, err error) {
	var none T
	m := r.ProtoReflect()
	fields := m.Descriptor().Fields()
	err = pages(ctx, limit, func(size int32, token string) (int, string, error) {
		m.Set(fields.ByName("page_size"), protoreflect.ValueOfInt32(size))
		m.Set(fields.ByName("page_token"), protoreflect.ValueOfString(token))
		resp, err := b.ask(ctx, r)
		if err != nil {
			return 0, "", err
		}
		answer, got := resp.ProtoReflect(), 0
		answer.Range(func(f protoreflect.FieldDescriptor, v protoreflect.Value) bool {
			if f.IsList() && f.Message() == none.ProtoReflect().Descriptor() {
				got = v.List().Len()
				for i := range got {
					found = append(found, v.List().Get(i).Message().Interface().(T))
				}
			}
			return true
		})
		return got, answer.Get(answer.Descriptor().Fields().ByName("next_page_token")).String(), nil
	})
	return found, err
}

// pageSize is how many are asked for at once.
const pageSize = 200

// pages asks for pages until there are no more, or limit are there; 0 means all.
func pages(ctx context.Context, limit int, ask func(size int32, token string) (got int, next string, err error)) error {
	token := ""
	for left := limit; ctx.Err() == nil; {
		size := int32(pageSize)
		if limit > 0 {
			size = min(size, int32(min(left, pageSize)))
		}
		got, next, err := ask(size, token)
		if err != nil || next == "" {
			return err
		}
		if left -= got; limit > 0 && left <= 0 {
			return nil
		}
		token = next
	}
	return context.Cause(ctx)
}
