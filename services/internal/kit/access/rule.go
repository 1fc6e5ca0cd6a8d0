// Package access enforces what a caller needs for each RPC: the option fairlead.common.v1.access in the
// descriptors. An RPC without the option is refused.
package access

import (
	"errors"
	"fmt"
	"strings"
	"sync"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	"github.com/fairlead/fairlead/services/internal/kit/principal"
)

// Option is the name of the option in the schema. This package finds it by reflection, because the kit imports
// no generated code.
const Option protoreflect.FullName = "fairlead.common.v1.access"

// Rule is what an RPC needs.
type Rule struct {
	Role    principal.Role
	Scope   string
	Session Path // of the request's session; empty if it names none
	User    Path // of the request's user; empty if it names none
	// Open means that the RPC needs no credential: the service checks a secret in its request. The rest is empty.
	Open bool
}

// Path leads to a string field of a message, through fields of fields.
type Path []protoreflect.FieldDescriptor

// Of returns the value of the field in m, or "" if a message on the way is not set.
func (p Path) Of(m protoreflect.Message) string {
	if len(p) == 0 {
		return ""
	}
	for _, f := range p[:len(p)-1] {
		if !m.Has(f) {
			return ""
		}
		m = m.Get(f).Message()
	}
	return m.Get(p[len(p)-1]).String()
}

// foreign has the rules of services that others define. They call RPCs of Fairlead as their caller, which have rules of
// their own.
var foreign = map[protoreflect.FullName]Rule{"lf.a2a.v1.A2AService": {Role: principal.RoleViewer}}

// rules caches the rules by the RPC's full name, as "/package.Service/Method".
var rules sync.Map

// Of returns the rule of an RPC, by its full name in gRPC. The RPC must be in a linked descriptor, with the
// option.
func Of(method string) (Rule, error) {
	if r, ok := rules.Load(method); ok {
		return r.(Rule), nil //nolint:forcetypeassert // the map has only rules
	}
	name := protoreflect.FullName(strings.Replace(strings.TrimPrefix(method, "/"), "/", ".", 1))
	d, err := protoregistry.GlobalFiles.FindDescriptorByName(name)
	if err != nil {
		return Rule{}, fmt.Errorf("access to %s: %w", method, err)
	}
	rpc, ok := d.(protoreflect.MethodDescriptor)
	if !ok {
		return Rule{}, fmt.Errorf("access to %s: it is not an RPC", method)
	}
	r, err := read(rpc)
	if err != nil {
		return Rule{}, fmt.Errorf("access to %s: %w", method, err)
	}
	rules.Store(method, r)
	return r, nil
}

// Open reports whether an RPC needs no credential. Its context has no principal, whatever the caller sends.
func Open(method string) bool {
	r, err := Of(method)
	return err == nil && r.Open
}

// read reads the option of an RPC.
func read(rpc protoreflect.MethodDescriptor) (r Rule, err error) {
	x, err := protoregistry.GlobalTypes.FindExtensionByName(Option)
	if err != nil {
		return r, err
	}
	if r, ok := foreign[rpc.Parent().FullName()]; ok {
		return r, nil
	}
	if !proto.HasExtension(rpc.Options(), x) {
		return r, errors.New("the RPC has no option access, so nothing may call it")
	}
	option := rpc.Options().ProtoReflect().Get(x.TypeDescriptor()).Message()
	get := func(name protoreflect.Name) protoreflect.Value {
		return option.Get(option.Descriptor().Fields().ByName(name))
	}
	r.Role, r.Scope = principal.Role(get("role").Enum()), get("scope").String()
	switch r.Open = get("open").Bool(); {
	case r.Open && (r.Role != principal.RoleNone || r.Scope != "" || get("session").String() != "" || get("user").String() != ""):
		return r, errors.New("the option access is open, and names what only callers with a credential have")
	case r.Open:
		return r, nil
	case r.Role == principal.RoleNone:
		return r, errors.New("the option access names no role")
	}
	if r.Session, err = path(rpc.Input(), get("session").String()); err != nil {
		return r, err
	}
	r.User, err = path(rpc.Input(), get("user").String())
	return r, err
}

// path finds a string field by its dotted name.
func path(m protoreflect.MessageDescriptor, dotted string) (p Path, err error) {
	if dotted == "" {
		return nil, nil
	}
	for name := range strings.SplitSeq(dotted, ".") {
		if m == nil {
			return nil, fmt.Errorf("the option access names the field %s, which is not in a message", dotted)
		}
		f := m.Fields().ByName(protoreflect.Name(name))
		if f == nil || f.Cardinality() == protoreflect.Repeated {
			return nil, fmt.Errorf("the option access names the field %s, which does not exist once", dotted)
		}
		p, m = append(p, f), f.Message()
	}
	if p[len(p)-1].Kind() != protoreflect.StringKind {
		return nil, fmt.Errorf("the option access names the field %s, which is not a string", dotted)
	}
	return p, nil
}
