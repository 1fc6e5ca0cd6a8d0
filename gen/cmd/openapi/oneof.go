package main

import (
	"maps"
	"slices"
	"strings"
)

// flattenOneofs says in words that at most one of some fields may be set. The plugin says it as alternatives, each of
// which has one field, and the first of which has none. Generators of clients make a class of each alternative, and the
// first one takes every object.
func flattenOneofs(schemas object) {
	for _, schema := range schemas {
		schema := schema.(object)
		alternatives, ok := schema["oneOf"].([]any)
		if !ok {
			continue
		}
		var names []string
		for _, a := range alternatives {
			properties, _ := a.(object)["properties"].(object)
			names = slices.AppendSeq(names, maps.Keys(properties))
		}
		slices.Sort(names)
		description, _ := schema["description"].(string)
		schema["description"] = description + "\n\nAt most one of these is set: `" + strings.Join(names, "`, `") + "`."
		delete(schema, "oneOf")
	}
}
