package main

import (
	"slices"
	"strings"

	"buf.build/gen/go/bufbuild/protovalidate/protocolbuffers/go/buf/validate"
	"google.golang.org/genproto/googleapis/api/annotations"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
)

// rulesOf returns the validation rules of a field, which may be nil.
func rulesOf(f protoreflect.FieldDescriptor) *validate.FieldRules {
	r, _ := proto.GetExtension(f.Options(), validate.E_Field).(*validate.FieldRules)
	return r
}

// addRules gives the schemas of messages the validation rules of their fields, as far as JSON Schema can say them.
func addRules(schemas object) {
	for name, schema := range schemas {
		d, err := protoregistry.GlobalFiles.FindDescriptorByName(protoreflect.FullName(name))
		if err != nil {
			continue // a schema of the plugin's own
		}
		m, ok := d.(protoreflect.MessageDescriptor)
		properties, _ := schema.(object)["properties"].(object)
		if !ok || properties == nil {
			continue
		}
		for i := range m.Fields().Len() {
			f := m.Fields().Get(i)
			if p, ok := properties[f.JSONName()].(object); ok {
				addRule(p, rulesOf(f))
			}
		}
	}
}

// addRule adds what a field's rules say to its schema. 64-bit numbers are strings in JSON; their bounds stay out.
func addRule(schema object, r *validate.FieldRules) {
	switch {
	case r.GetString() != nil:
		addStringRule(schema, r.GetString())
	case r.GetInt32() != nil:
		n := r.GetInt32()
		if n.HasGte() {
			schema["minimum"] = n.GetGte()
		}
		if n.HasLte() {
			schema["maximum"] = n.GetLte()
		}
	case r.GetRepeated() != nil && r.GetRepeated().HasMaxItems():
		schema["maxItems"] = r.GetRepeated().GetMaxItems()
	case r.GetMap() != nil:
		if r.GetMap().HasMaxPairs() {
			schema["maxProperties"] = r.GetMap().GetMaxPairs()
		}
		if keys := r.GetMap().GetKeys().GetString(); keys != nil {
			names := object{}
			addStringRule(names, keys)
			schema["propertyNames"] = names
		}
		if values, ok := schema["additionalProperties"].(object); ok {
			addRule(values, r.GetMap().GetValues())
		}
	}
}

func addStringRule(schema object, r *validate.StringRules) {
	if r.HasPattern() {
		schema["pattern"] = r.GetPattern()
	}
	if r.HasMinLen() {
		schema["minLength"] = r.GetMinLen()
	}
	if r.HasMaxLen() {
		schema["maxLength"] = r.GetMaxLen()
	}
	if r.HasMaxBytes() { // a character has at least one byte
		schema["maxLength"] = r.GetMaxBytes()
	}
}

// inputs returns the request message of every operation, by operation id. RPCs without an HTTP rule are none: an
// internal service may have the name of a public one.
func inputs() map[string]protoreflect.MessageDescriptor {
	found := map[string]protoreflect.MessageDescriptor{}
	protoregistry.GlobalFiles.RangeFiles(func(file protoreflect.FileDescriptor) bool {
		for i := range file.Services().Len() {
			s := file.Services().Get(i)
			for j := range s.Methods().Len() {
				m := s.Methods().Get(j)
				if !proto.HasExtension(m.Options(), annotations.E_Http) {
					continue
				}
				found[string(s.Name())+"_"+string(m.Name())] = m.Input()
			}
		}
		return true
	})
	return found
}

// addParameterRules gives the parameters of an operation the rules of the fields that they fill, and query parameters
// the names that the proto gives them. Path parameters are part of the resource name in `name` or `parent`.
func addParameterRules(op object, input protoreflect.MessageDescriptor) {
	for _, p := range parameters(op) {
		schema := p["schema"].(object)
		if p["in"] == "path" {
			if pattern := pathPattern(input, p["name"].(string)); pattern != "" {
				schema["pattern"] = pattern
			}
			continue
		}
		if f := input.Fields().ByJSONName(p["name"].(string)); f != nil && p["in"] == "query" {
			p["name"] = string(f.Name())
			addRule(schema, rulesOf(f))
		}
	}
}

// pathPattern returns the rule of one id in the resource name, such as that after `sessions/`.
func pathPattern(input protoreflect.MessageDescriptor, parameter string) string {
	for _, name := range []protoreflect.Name{"parent", "name"} {
		f := input.Fields().ByName(name)
		if f == nil {
			continue
		}
		whole := strings.TrimSuffix(strings.TrimPrefix(rulesOf(f).GetString().GetPattern(), "^"), "$")
		parts := strings.Split(whole, "/")
		if i := slices.IndexFunc(parts, func(part string) bool { return singular[part] == parameter }); i >= 0 && i+1 < len(parts) {
			return "^" + parts[i+1] + "$"
		}
	}
	return ""
}
