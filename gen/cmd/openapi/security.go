package main

import (
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	commonv1 "github.com/fairlead/fairlead/gen/go/fairlead/common/v1"
)

const credential = "bearer"

// secure says how callers prove who they are, for each operation, because some generators read only that place.
func secure(doc object) {
	doc["components"].(object)["securitySchemes"] = object{credential: object{
		"type": "http", "scheme": "bearer",
		"description": "An API key (`fairlead keys create`) or a token of a configured issuer. A server without keys takes every caller on its machine: leave the header out there.",
	}}
	open := openOperations()
	for _, item := range doc["paths"].(object) {
		for _, op := range item.(object) {
			op := op.(object)
			op["security"] = []any{object{credential: []any{}}, object{}}
			if open[op["operationId"].(string)] {
				op["security"] = []any{}
			}
		}
	}
}

// openOperations returns the operations whose RPCs need no credential.
func openOperations() map[string]bool {
	found := map[string]bool{}
	protoregistry.GlobalFiles.RangeFiles(func(f protoreflect.FileDescriptor) bool {
		for i := range f.Services().Len() {
			s := f.Services().Get(i)
			for j := range s.Methods().Len() {
				m := s.Methods().Get(j)
				if a, ok := proto.GetExtension(m.Options(), commonv1.E_Access).(*commonv1.Access); ok && a.GetOpen() {
					found[string(s.Name())+"_"+string(m.Name())] = true
				}
			}
		}
		return true
	})
	return found
}
