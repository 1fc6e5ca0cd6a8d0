package rpc

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"

	"buf.build/gen/go/bufbuild/protovalidate/protocolbuffers/go/buf/validate"
	"buf.build/go/protovalidate"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/fairlead/fairlead/services/internal/kit/apierr"
	"github.com/fairlead/fairlead/services/internal/kit/id"
	"github.com/fairlead/fairlead/services/internal/kit/itemlimit"
)

// IdempotencyKey is the header metadata that returns the request's request_id, whether the caller or
// the server made it.
const IdempotencyKey = "idempotency-key"

// requestID returns the id of a request with a field request_id, and sets it if it is empty. It returns ""
// for other requests.
func requestID(m any) string {
	msg, ok := m.(proto.Message)
	if !ok {
		return ""
	}
	r := msg.ProtoReflect()
	f := r.Descriptor().Fields().ByName("request_id")
	if f == nil || f.Kind() != protoreflect.StringKind || f.Cardinality() == protoreflect.Repeated {
		return ""
	}
	if r.Get(f).String() == "" {
		r.Set(f, protoreflect.ValueOfString(id.New()))
	}
	return r.Get(f).String()
}

func requestIDUnary(ctx context.Context, req any, _ *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
	if key := requestID(req); key != "" && printable(key) {
		if err := grpc.SetHeader(ctx, metadata.Pairs(IdempotencyKey, key)); err != nil {
			return nil, err
		}
	}
	return next(ctx, req)
}

func requestIDStream(srv any, ss grpc.ServerStream, _ *grpc.StreamServerInfo, next grpc.StreamHandler) error {
	return next(srv, &requestIDReceiver{ServerStream: ss})
}

// requestIDReceiver handles the first message of a stream: later ones are inputs with ids of their own.
type requestIDReceiver struct {
	grpc.ServerStream
	first sync.Once
}

func (s *requestIDReceiver) RecvMsg(m any) error {
	if err := s.ServerStream.RecvMsg(m); err != nil {
		return err
	}
	var err error
	s.first.Do(func() {
		if key := requestID(m); key != "" && printable(key) {
			// A handler that sends its headers before it reads does without this one.
			if e := s.SetHeader(metadata.Pairs(IdempotencyKey, key)); e != nil && s.Context().Err() != nil {
				err = e
			}
		}
	})
	return err
}

// printable reports whether a key can be the value of a header; validation refuses the others with a better
// message.
func printable(key string) bool {
	return len(key) <= 256 && strings.IndexFunc(key, func(r rune) bool { return r < ' ' || r > '~' }) < 0
}

// validator checks messages against the rules in their schema.
type validator struct{ protovalidate.Validator }

func newValidator() validator { return validator{protovalidate.GlobalValidator} }

func (v validator) unary(ctx context.Context, req any, _ *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
	if err := v.check(req); err != nil {
		return nil, err
	}
	return next(ctx, req)
}

func (v validator) stream(srv any, ss grpc.ServerStream, _ *grpc.StreamServerInfo, next grpc.StreamHandler) error {
	return next(srv, validated{ss, v})
}

type validated struct {
	grpc.ServerStream
	v validator
}

func (s validated) RecvMsg(m any) error {
	if err := s.ServerStream.RecvMsg(m); err != nil {
		return err
	}
	return s.v.check(m)
}

// check returns INVALID_ARGUMENT with the first violations. It returns an error in the rules themselves unchanged,
// which becomes INTERNAL further up.
func (v validator) check(m any) error {
	msg, ok := m.(proto.Message)
	if !ok {
		return nil
	}
	if long := itemlimit.Check(msg.ProtoReflect(), apierr.MaxViolations); len(long) > 0 {
		return invalidLists(long)
	}
	err := v.Validate(msg)
	var invalid *protovalidate.ValidationError
	if err == nil || !errors.As(err, &invalid) {
		return err
	}
	shown := invalid.Violations[:min(len(invalid.Violations), apierr.MaxViolations)]
	opts := make([]apierr.Option, 0, len(shown))
	texts := make([]string, 0, len(shown))
	for _, violation := range shown {
		path := violationPath(msg.ProtoReflect().Descriptor(), violation.Proto)
		text := violation.Proto.GetMessage()
		if violation.Proto.GetRuleId() == "string.pattern" {
			text = cmp.Or(sayPattern(violation.RuleValue.String(), violation.FieldValue.String()), text)
		}
		if text == "" {
			text = "does not satisfy the rule " + violation.Proto.GetRuleId()
		}
		opts = append(opts, apierr.Field(path, text))
		texts = append(texts, strings.TrimPrefix(path+": "+text, ": "))
	}
	if more := len(invalid.Violations) - len(shown); more > 0 {
		texts = append(texts, fmt.Sprintf("and %d more", more))
	}
	return apierr.New(codes.InvalidArgument, apierr.Domain, apierr.ReasonInvalidRequest, "the request is invalid: "+strings.Join(texts, "; "), opts...)
}

// invalidLists returns INVALID_ARGUMENT for lists that are too long. Their items were not judged.
func invalidLists(long []itemlimit.Violation) error {
	var opts []apierr.Option
	var texts []string
	for _, l := range long {
		opts = append(opts, apierr.Field(l.Path, l.Text))
		texts = append(texts, l.Path+": "+l.Text)
	}
	return apierr.New(codes.InvalidArgument, apierr.Domain, apierr.ReasonInvalidRequest, "the request is invalid: "+strings.Join(texts, "; "), opts...)
}

// violationPath returns the path of the field of a violation. A rule of a whole message has no field: by
// convention the first part of its id names one, as in `text.required`.
func violationPath(m protoreflect.MessageDescriptor, v *validate.Violation) string {
	path := protovalidate.FieldPathString(v.GetField())
	for _, e := range v.GetField().GetElements() {
		f := m.Fields().ByNumber(protoreflect.FieldNumber(e.GetFieldNumber()))
		if f != nil && f.IsMap() {
			f = f.MapValue()
		}
		if f == nil || f.Message() == nil {
			return path // a field that is not a message, or a oneof
		}
		m = f.Message()
	}
	name, _, ofMessage := strings.Cut(v.GetRuleId(), ".") // `required` of a field is one word
	if !ofMessage || m.Fields().ByName(protoreflect.Name(name)) == nil {
		return path
	}
	return strings.TrimPrefix(path+"."+name, ".")
}
