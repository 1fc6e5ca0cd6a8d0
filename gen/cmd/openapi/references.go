package main

import (
	"fmt"
	"strings"

	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
)

const schemaPrefix = "#/components/schemas/"

// completeSchemas adds the messages without fields to which only an operation of addTransfers refers. It fails for any
// other reference that leads nowhere.
func completeSchemas(doc object) error {
	schemas := doc["components"].(object)["schemas"].(object)
	for _, ref := range references(doc, nil) {
		name, ok := strings.CutPrefix(ref, schemaPrefix)
		if !ok {
			return fmt.Errorf("the reference %s is of no schema", ref)
		}
		if schemas[name] != nil {
			continue
		}
		d, err := protoregistry.GlobalFiles.FindDescriptorByName(protoreflect.FullName(name))
		if m, ok := d.(protoreflect.MessageDescriptor); err != nil || !ok || m.Fields().Len() > 0 {
			return fmt.Errorf("the reference %s leads nowhere: no RPC with an HTTP rule uses this message, so the plugin leaves it out", ref)
		}
		schemas[name] = object{"type": "object"}
	}
	return nil
}

// references appends every $ref of a value to a list.
func references(value any, found []string) []string {
	switch v := value.(type) {
	case object:
		for name, inner := range v {
			if ref, ok := inner.(string); ok && name == "$ref" {
				found = append(found, ref)
			}
			found = references(inner, found)
		}
	case []any:
		for _, inner := range v {
			found = references(inner, found)
		}
	}
	return found
}
