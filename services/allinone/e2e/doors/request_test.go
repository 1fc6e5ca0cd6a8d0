package doors

import (
	"errors"
	"regexp"
	"slices"
	"strings"
	"testing"

	"buf.build/gen/go/bufbuild/protovalidate/protocolbuffers/go/buf/validate"
	"buf.build/go/protovalidate"
	"google.golang.org/genproto/googleapis/api/annotations"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/internal/kit/access"
	"github.com/fairlead/fairlead/services/internal/kit/principal"
)

// door is an RPC.
type door struct {
	name string // as /package.Service/Method
	rpc  protoreflect.MethodDescriptor
	rule access.Rule
}

// short returns the name without the package.
func (d door) short() string { return string(d.rpc.Parent().Name()) + "." + string(d.rpc.Name()) }

func (d door) internal() bool { return d.rule.Role >= principal.RoleService }

// reads reports whether the RPC changes nothing.
func (d door) reads() bool { return strings.HasSuffix(d.rule.Scope, ".read") }

// follows reports whether a read goes on for ever.
func (d door) follows() bool {
	return d.reads() && d.rpc.IsStreamingServer() && strings.HasPrefix(string(d.rpc.Name()), "Stream")
}

// doors returns every RPC of Fairlead.
func doors(t *testing.T) (all []door) {
	t.Helper()
	protoregistry.GlobalFiles.RangeFiles(func(file protoreflect.FileDescriptor) bool {
		if !strings.HasPrefix(string(file.Package()), "fairlead.") {
			return true
		}
		for i := range file.Services().Len() {
			s := file.Services().Get(i)
			for j := range s.Methods().Len() {
				d := door{name: "/" + string(s.FullName()) + "/" + string(s.Methods().Get(j).Name()), rpc: s.Methods().Get(j)}
				var err error
				if d.rule, err = access.Of(d.name); err != nil {
					t.Error(err)
					continue
				}
				all = append(all, d)
			}
		}
		return true
	})
	slices.SortFunc(all, func(a, b door) int { return strings.Compare(a.name, b.name) })
	return all
}

// further are fields that a handler needs and the schema does not ask for, as JSON.
var further = map[string]string{
	"ModelService.CreateModel":              `{"spec":{"target":"scripted:default"}}`,
	"ModelService.UpdateModel":              `{"spec":{"target":"scripted:default"}}`,
	"ModelService.GetModel":                 `{"name":"models/tenant:quick"}`,
	"ModelProxyService.CallModel":           `{"method":"GET"}`,
	"McpService.SetUserMcpServer":           `{"server":{"name":"hers"}}`,
	"IdentityService.UpdateUser":            `{"title":"x"}`,
	"IdentityService.CreateUser":            `{"userId":"newcomer"}`,
	"IdentityService.CreateTenant":          `{"tenantId":"newcomer"}`,
	"FeedbackService.CreateFeedback":        `{"feedback":{"value":"FEEDBACK_VALUE_POSITIVE","step":0}}`,
	"RepositoryService.AddRepository":       `{"repositoryId":"other"}`,
	"SessionService.SubmitToolResult":       `{"content":[{"text":{"text":"12"}}]}`,
	"SessionFileService.WriteSessionFile":   `{"start":{"path":"a.md"}}`,
	"SessionFileService.ImportSessionFiles": `{"start":{"path":"unpacked"}}`,
}

// current checks that what the test says of single RPCs is about RPCs that there are.
func current(t *testing.T, all []door) {
	t.Helper()
	names := map[string]bool{}
	for _, d := range all {
		names[d.short()] = true
	}
	for _, listed := range []map[string]string{further, excuses} {
		for name := range listed {
			if !names[name] {
				t.Errorf("%s is listed, and is no RPC", name)
			}
		}
	}
}

// writer writes a valid request for any RPC.
type writer struct {
	t      *testing.T
	names  map[string]string
	values map[string]string
	absent map[string]bool // kinds that are missing
	broad  bool            // names only what it must
	door   door
}

// request returns a request that names the resources.
func (w writer) request() proto.Message {
	w.t.Helper()
	m := newMessage(w.t, w.door.rpc.Input())
	w.fill(m.ProtoReflect(), nil)
	if text := further[w.door.short()]; text != "" && !w.door.internal() {
		more := newMessage(w.t, w.door.rpc.Input())
		if err := protojson.Unmarshal([]byte(text), more); err != nil {
			w.t.Fatalf("%s: what it further needs: %v", w.door.short(), err)
		}
		proto.Merge(m, more)
	}
	if call, ok := m.(*sessionv1.CallModelRequest); ok { // its path names the session once more
		call.Path = "/anthropic/" + call.Session + "/v1/models"
	}
	if rewind, ok := m.(*sessionv1.RewindSessionRequest); ok { // it names one place
		rewind.BeforeTurn = ""
	}
	for range 10 {
		err := protovalidate.Validate(m)
		var invalid *protovalidate.ValidationError
		if !errors.As(err, &invalid) {
			if err != nil {
				w.t.Fatalf("%s: %v", w.door.short(), err)
			}
			return m
		}
		for _, v := range invalid.Violations {
			w.repair(m.ProtoReflect(), v.Proto)
		}
	}
	w.t.Fatalf("%s: no valid request can be made from its descriptor: %v; add what is missing to `further`", w.door.short(), protovalidate.Validate(m))
	return nil
}

func newMessage(t *testing.T, d protoreflect.MessageDescriptor) proto.Message {
	t.Helper()
	typ, err := protoregistry.GlobalTypes.FindMessageByName(d.FullName())
	if err != nil {
		t.Fatal(err)
	}
	return typ.New().Interface()
}

// fill sets every field that names a resource, also in messages of the message.
func (w writer) fill(m protoreflect.Message, above []protoreflect.FullName) {
	w.t.Helper()
	d := m.Descriptor()
	if slices.Contains(above, d.FullName()) {
		return
	}
	above = append(slices.Clone(above), d.FullName())
	for i := range d.Fields().Len() {
		f := d.Fields().Get(i)
		if f.IsList() || f.IsMap() || outputOnly(f) {
			continue
		}
		if o := f.ContainingOneof(); o != nil && !o.IsSynthetic() && m.WhichOneof(o) != nil {
			continue
		}
		switch {
		case f.Kind() == protoreflect.StringKind:
			if kind := kindOf(pattern(f)); kind != "" && (!w.broad || !optional(f)) {
				m.Set(f, protoreflect.ValueOfString(w.resource(kind)))
			}
		case f.Message() != nil && strings.HasPrefix(string(f.Message().FullName()), "fairlead.") && namesResources(f.Message(), above):
			inner := m.NewField(f)
			w.fill(inner.Message(), above)
			if populated(inner.Message()) {
				m.Set(f, inner)
			}
		}
	}
}

func populated(m protoreflect.Message) (some bool) {
	m.Range(func(protoreflect.FieldDescriptor, protoreflect.Value) bool { some = true; return false })
	return some
}

// namesResources reports whether a message names a resource, or one in it does.
func namesResources(d protoreflect.MessageDescriptor, above []protoreflect.FullName) bool {
	if slices.Contains(above, d.FullName()) {
		return false
	}
	above = append(slices.Clone(above), d.FullName())
	for i := range d.Fields().Len() {
		f := d.Fields().Get(i)
		if f.Kind() == protoreflect.StringKind && kindOf(pattern(f)) != "" || f.Message() != nil && namesResources(f.Message(), above) {
			return true
		}
	}
	return false
}

func (w writer) resource(kind string) string {
	w.t.Helper()
	name := w.names[kind]
	if name == "" {
		if !w.absent[kind] {
			w.t.Errorf("%s names a %s, and the test makes none; make one in furnish", w.door.short(), kind)
		}
		w.absent[kind] = true
		return strings.ReplaceAll(kind, "*", "x")
	}
	return name
}

// repair sets the field that breaks a rule. The id of a rule of a whole message begins with the field.
func (w writer) repair(m protoreflect.Message, v *validate.Violation) {
	head, _, _ := strings.Cut(v.GetRuleId(), ".")
	elements := v.GetField().GetElements()
	for i, e := range elements {
		f := fieldOf(m, e.GetFieldName())
		if f == nil {
			return
		}
		inside := f.Message() != nil && !f.IsList() && !f.IsMap()
		if !inside || i == len(elements)-1 && fieldOf(m.NewField(f).Message(), head) == nil {
			w.set(m, f)
			return
		}
		m = m.Mutable(f).Message()
	}
	if f := fieldOf(m, head); f != nil {
		w.set(m, f)
	}
}

// fieldOf returns a field, or the first one of a oneof.
func fieldOf(m protoreflect.Message, name string) protoreflect.FieldDescriptor {
	if o := m.Descriptor().Oneofs().ByName(protoreflect.Name(name)); o != nil {
		return o.Fields().Get(0)
	}
	return m.Descriptor().Fields().ByName(protoreflect.Name(name))
}

func (w writer) set(m protoreflect.Message, f protoreflect.FieldDescriptor) {
	switch {
	case f.IsMap():
	case f.IsList():
		list := m.Mutable(f).List()
		if f.Message() != nil {
			list.AppendMutable()
		} else if f.Kind() == protoreflect.StringKind {
			list.Append(protoreflect.ValueOfString(w.sample(f)))
		}
	case f.Message() != nil:
		m.Set(f, m.NewField(f))
	default:
		m.Set(f, w.scalar(f))
	}
}

func (w writer) scalar(f protoreflect.FieldDescriptor) protoreflect.Value {
	switch f.Kind() {
	case protoreflect.StringKind:
		return protoreflect.ValueOfString(w.sample(f))
	case protoreflect.BytesKind:
		return protoreflect.ValueOfBytes([]byte("x"))
	case protoreflect.BoolKind:
		return protoreflect.ValueOfBool(true)
	case protoreflect.EnumKind:
		return protoreflect.ValueOfEnum(f.Enum().Values().Get(min(1, f.Enum().Values().Len()-1)).Number())
	case protoreflect.Int64Kind:
		return protoreflect.ValueOfInt64(1)
	case protoreflect.Uint32Kind:
		return protoreflect.ValueOfUint32(1)
	case protoreflect.Uint64Kind:
		return protoreflect.ValueOfUint64(1)
	default:
		return protoreflect.ValueOfInt32(1)
	}
}

// samples are values for fields of many forms.
var samples = []string{"x1", "1", "X", "full", "sessions/x", "0 3 1 1 *", "https://git.invalid/a/code.git", "sessions.read"}

// sample returns a value that a field may have.
func (w writer) sample(f protoreflect.FieldDescriptor) string {
	if v := w.values[string(f.Name())]; v != "" {
		return v
	}
	if f.Name() == "profile" {
		return "full"
	}
	form, err := regexp.Compile(pattern(f))
	for _, s := range samples {
		if err == nil && form.MatchString(s) {
			return s
		}
	}
	return "x"
}

func outputOnly(f protoreflect.FieldDescriptor) bool {
	b, _ := proto.GetExtension(f.Options(), annotations.E_FieldBehavior).([]annotations.FieldBehavior)
	return slices.Contains(b, annotations.FieldBehavior_OUTPUT_ONLY)
}

func pattern(f protoreflect.FieldDescriptor) string {
	rules, _ := proto.GetExtension(f.Options(), validate.E_Field).(*validate.FieldRules)
	return rules.GetString().GetPattern()
}

var literal = regexp.MustCompile(`^[a-zA-Z]+$`)

// kindOf returns the kind of resource that a pattern describes, as "sessions/*/turns/*", or "".
func kindOf(pattern string) string {
	pattern = strings.TrimPrefix(pattern, "^$|")
	pattern = strings.NewReplacer("tenant:", "", "^", "", "$", "", "(", "", ")?", "", ")", "").Replace(strings.ReplaceAll(pattern, "[^/]", "[x]"))
	if !strings.Contains(pattern, "/") {
		return ""
	}
	var kind []string
	for i, part := range strings.Split(pattern, "/") {
		switch {
		case literal.MatchString(part):
			kind = append(kind, part)
		case i == 0 || !strings.HasPrefix(part, "["):
			return ""
		default:
			kind = append(kind, "*")
		}
	}
	return strings.Join(kind, "/")
}
