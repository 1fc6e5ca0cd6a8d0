package limits

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"buf.build/gen/go/bufbuild/protovalidate/protocolbuffers/go/buf/validate"
	"google.golang.org/genproto/googleapis/api/annotations"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/dynamicpb"

	_ "github.com/fairlead/fairlead/gen/go/fairlead/tools/v1" // registers its RPCs
	"github.com/fairlead/fairlead/services/internal/kit/access"
	"github.com/fairlead/fairlead/services/internal/kit/principal"
	"github.com/fairlead/fairlead/services/internal/kit/prove"
)

// list is a list or map in the request of a public RPC.
type list struct {
	rpc  protoreflect.MethodDescriptor
	path []protoreflect.FieldDescriptor // down to the list
	most int                            // 0: it has no limit
}

// publicRPCs returns the RPCs that clients may call.
func publicRPCs(t *testing.T) (all []protoreflect.MethodDescriptor) {
	t.Helper()
	protoregistry.GlobalFiles.RangeFiles(func(file protoreflect.FileDescriptor) bool {
		for i := range file.Services().Len() {
			s := file.Services().Get(i)
			for j := range s.Methods().Len() {
				m := s.Methods().Get(j)
				if rule, err := access.Of(nameOf(m)); err == nil && strings.HasPrefix(string(file.Package()), "fairlead.") && rule.Role < principal.RoleService {
					all = append(all, m)
				}
			}
		}
		return true
	})
	slices.SortFunc(all, func(a, b protoreflect.MethodDescriptor) int {
		return strings.Compare(string(a.FullName()), string(b.FullName()))
	})
	if len(all) < 100 {
		t.Fatalf("found %d RPCs", len(all))
	}
	return all
}

// nameOf returns the name of an RPC as gRPC has it.
func nameOf(m protoreflect.MethodDescriptor) string {
	return "/" + string(m.Parent().FullName()) + "/" + string(m.Name())
}

// listsOf returns the lists of a request, also in its messages and in the items of its lists.
func listsOf(m protoreflect.MethodDescriptor) (all []list) {
	var walk func(d protoreflect.MessageDescriptor, above []protoreflect.FieldDescriptor)
	walk = func(d protoreflect.MessageDescriptor, above []protoreflect.FieldDescriptor) {
		if slices.ContainsFunc(above, func(f protoreflect.FieldDescriptor) bool { return f.ContainingMessage() == d }) {
			return
		}
		for i := range d.Fields().Len() {
			f := d.Fields().Get(i)
			path := append(slices.Clone(above), f)
			if f.IsList() || f.IsMap() {
				rules, _ := proto.GetExtension(f.Options(), validate.E_Field).(*validate.FieldRules)
				all = append(all, list{m, path, int(max(rules.GetRepeated().GetMaxItems(), rules.GetMap().GetMaxPairs()))})
			}
			inner := f.Message()
			if f.IsMap() {
				inner = f.MapValue().Message()
			}
			if inner != nil && strings.HasPrefix(string(inner.FullName()), "fairlead.") {
				walk(inner, path)
			}
		}
	}
	walk(m.Input(), nil)
	return all
}

// name returns the path of the list, such as "session.mcp_servers".
func (l list) name() string {
	var names []string
	for i, f := range l.path {
		name := string(f.Name())
		if i < len(l.path)-1 && f.IsList() {
			name += "[0]"
		} else if i < len(l.path)-1 && f.IsMap() {
			name += `["k"]`
		}
		names = append(names, name)
	}
	return strings.Join(names, ".")
}

// message returns a request whose list has n items, which are empty.
func (l list) message(n int) proto.Message {
	m := dynamicpb.NewMessage(l.rpc.Input())
	at := m.ProtoReflect()
	for _, f := range l.path[:len(l.path)-1] {
		switch {
		case f.IsMap():
			at = at.Mutable(f).Map().Mutable(protoreflect.ValueOfString("k").MapKey()).Message()
		case f.IsList():
			at = at.Mutable(f).List().AppendMutable().Message()
		default:
			at = at.Mutable(f).Message()
		}
	}
	f := l.path[len(l.path)-1]
	if f.IsMap() {
		entries := at.Mutable(f).Map()
		for i := range n {
			entries.Set(protoreflect.ValueOfString(strconv.Itoa(i)).MapKey(), entries.NewValue())
		}
		return m
	}
	items := at.Mutable(f).List()
	for range n {
		items.Append(items.NewElement())
	}
	return m
}

var (
	variable = regexp.MustCompile(`\{([a-z_.]+)=([^}]+)\}|\{([a-z_.]+)\}`)
	star     = regexp.MustCompile(`\*+`)
)

// rest returns the HTTP request of an RPC whose body has its lists. It has the names of resources that do not exist.
func (l list) rest() (method, path string, inBody bool) {
	rule, _ := proto.GetExtension(l.rpc.Options(), annotations.E_Http).(*annotations.HttpRule)
	for method, template := range map[string]string{"POST": rule.GetPost(), "PUT": rule.GetPut(), "PATCH": rule.GetPatch()} {
		if template == "" {
			continue
		}
		path := variable.ReplaceAllStringFunc(template, func(v string) string {
			parts := variable.FindStringSubmatch(v)
			return star.ReplaceAllString(parts[2]+strings.Repeat("*", min(1, len(parts[3]))), "x")
		})
		return method, path, rule.GetBody() == "*" || rule.GetBody() == string(l.path[0].Name())
	}
	return "", "", false
}

// requests returns the request with n items for each door.
func (l list) requests(t *testing.T, n int) (all []request) {
	t.Helper()
	m := l.message(n)
	wire, json := encoded(t, m)
	all = append(all, request{"gRPC", nameOf(l.rpc), "", wire})
	if !l.rpc.IsStreamingClient() {
		all = append(all, request{"gRPC-Web", nameOf(l.rpc), "POST", webFrame(wire)})
	}
	method, path, inBody := l.rest()
	if !inBody || l.rpc.IsStreamingClient() {
		return all
	}
	rule, _ := proto.GetExtension(l.rpc.Options(), annotations.E_Http).(*annotations.HttpRule)
	if body := rule.GetBody(); body != "*" {
		f := l.rpc.Input().Fields().ByName(protoreflect.Name(body))
		if f.IsList() || f.IsMap() {
			return all
		}
		_, json = encoded(t, m.ProtoReflect().Get(f).Message().Interface())
	}
	return append(all, request{"REST", path, method, json})
}

// describes reports whether an answer names the list, as text of either case.
func (l list) describes(a answer) bool {
	name := string(l.path[len(l.path)-1].Name())
	return strings.Contains(a.text, name) && strings.Contains(a.text, "at most")
}

func TestEveryListOfARequestHasALimit(t *testing.T) {
	for _, m := range publicRPCs(t) {
		for _, l := range listsOf(m) {
			if l.most == 0 {
				t.Errorf("%s of %s has no limit; write max_items or max_pairs into the proto", l.name(), nameOf(m))
			}
		}
	}
}

func TestListsAreJudgedBeforeTheirItems(t *testing.T) {
	s := serve(t)
	var all []list
	seen := map[string]bool{}
	for _, m := range publicRPCs(t) {
		for _, l := range listsOf(m) {
			key := string(m.FullName()) + string(l.path[len(l.path)-1].FullName()) // the same list in another place is judged by the same code
			if l.most > 0 && !seen[key] {
				seen[key] = true
				all = append(all, l)
			}
		}
	}
	const n = 10_000
	tried := 0
	for _, l := range prove.Sample(all, 6) {
		twice := l.requests(t, 2*n)
		for i, r := range l.requests(t, n) {
			a := s.refuse(t, r, twice[i])
			tried++
			if r.door == "gRPC-Web" { // the answer is binary
				if !strings.Contains(a.text, fmt.Sprintf("grpc-status: %d", invalid)) {
					t.Errorf("%s over %s: %.300q", l.name(), r.door, a.text)
				}
				continue
			}
			if !l.describes(a) || strings.Count(a.text, `"field"`) > 10 {
				t.Errorf("%s of %s over %s: %.500s", l.name(), r.name, r.door, a.text)
			}
		}
	}
	t.Logf("%d lists, %d requests", len(all), 2*tried)
}
