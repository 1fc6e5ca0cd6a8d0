package mcp

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// plainForm returns a form as the protocol writes it, so that every client can show it. Some servers write an optional
// field as a choice between its type and null, and titled values with a type beside them.
func plainForm(form any) any {
	var copied any
	if text, err := json.Marshal(form); err != nil || json.Unmarshal(text, &copied) != nil {
		return form
	}
	root, _ := copied.(map[string]any)
	fields, _ := root["properties"].(map[string]any)
	for name, f := range fields {
		field, _ := f.(map[string]any)
		if items, ok := field["items"].(map[string]any); ok && items["anyOf"] != nil {
			delete(items, "type")
		}
		if !withoutNull(field) {
			continue
		}
		if required, ok := root["required"].([]any); ok {
			required = slices.DeleteFunc(required, func(x any) bool { return x == name })
			if root["required"] = required; len(required) == 0 {
				delete(root, "required")
			}
		}
	}
	return copied
}

// withoutNull takes null from the values that a field may have. It reports whether the field may be null.
func withoutNull(field map[string]any) bool {
	nullable := false
	isNull := func(x any) bool {
		choice, _ := x.(map[string]any)
		return x == nil || x == "null" || choice["type"] == "null" || choice != nil && isNullValue(choice)
	}
	for _, key := range []string{"anyOf", "oneOf", "type", "enum"} {
		all, ok := field[key].([]any)
		if !ok || !slices.ContainsFunc(all, isNull) {
			continue
		}
		rest := slices.DeleteFunc(slices.Clone(all), isNull)
		if nullable = true; len(rest) == 0 {
			continue // null alone
		}
		field[key] = rest
		if len(rest) > 1 || key == "enum" {
			continue
		}
		delete(field, key)
		if only, ok := rest[0].(map[string]any); ok {
			for k, v := range only {
				if _, own := field[k]; !own {
					field[k] = v
				}
			}
		} else {
			field[key] = rest[0]
		}
	}
	if value, has := field["default"]; nullable && has && value == nil {
		delete(field, "default")
	}
	return nullable
}

func isNullValue(choice map[string]any) bool {
	value, has := choice["const"]
	return has && value == nil
}

// complete returns a person's answers with the form's values for the fields that have no answer: its default, or null
// for one that must be there. An answer without fields is an empty object.
func complete(form any, content string) (json.RawMessage, error) {
	fields := map[string]json.RawMessage{}
	if content = strings.TrimSpace(content); content != "" {
		if err := json.Unmarshal([]byte(content), &fields); err != nil {
			return nil, fmt.Errorf("decode an answer that was checked: %w", err)
		}
	}
	root, _ := form.(map[string]any)
	properties, _ := root["properties"].(map[string]any)
	required, _ := root["required"].([]any)
	added := content == ""
	for name, p := range properties {
		field, _ := p.(map[string]any)
		if _, answered := fields[name]; answered {
			continue
		}
		value, has := field["default"]
		if has && value != nil || slices.Contains(required, any(name)) && withoutNull(cloned(field)) {
			fields[name], added = marshal(value), true
		}
	}
	if !added {
		return json.RawMessage(content), nil
	}
	return marshal(fields), nil
}

// cloned returns a field whose keys can be changed.
func cloned(field map[string]any) map[string]any {
	c := map[string]any{}
	for k, v := range field {
		c[k] = v
	}
	return c
}
