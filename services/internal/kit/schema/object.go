package schema

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"

	"github.com/fairlead/fairlead/services/internal/kit/jsontext"
)

// maxParts bounds how many parts of a schema Object examines: parts may refer to each other in circles.
const maxParts = 10_000

// Object returns the text of a schema in the form that providers of models require
// for a tool: it declares that its values are objects. Object adds the type to a
// schema that leaves it open; the rest stays as written, without white space. A
// schema that is invalid or that no object matches is an error, which completes
// the sentence "the schema is …".
func Object(text string) (string, error) {
	doc, err := jsontext.Object(text)
	if err != nil {
		return "", err
	}
	if _, err := compile(doc); err != nil {
		return "", err
	}
	parts := maxParts
	if !takesObjects(doc, doc, &parts) {
		return "", errors.New(`not that of an object: the arguments of a call are a JSON object, so "type" must be "object"`)
	}
	return Typed(text)
}

// takesObjects reports whether an object may match a part of a schema, judging
// by its type, its values and its composition.
func takesObjects(root map[string]any, part any, parts *int) bool {
	p, ok := part.(map[string]any)
	if *parts--; !ok || *parts < 0 {
		return part != false
	}
	takes := func(part any) bool { return takesObjects(root, part, parts) }
	if t, ok := p["type"]; ok && t != "object" {
		if list, _ := t.([]any); !slices.Contains(list, "object") {
			return false
		}
	}
	if c, ok := p["const"]; ok && !isObject(c) {
		return false
	}
	if values, ok := p["enum"].([]any); ok && !slices.ContainsFunc(values, isObject) {
		return false
	}
	if all, ok := p["allOf"].([]any); ok && slices.ContainsFunc(all, func(part any) bool { return !takes(part) }) {
		return false
	}
	for _, name := range []string{"anyOf", "oneOf"} {
		if some, ok := p[name].([]any); ok && !slices.ContainsFunc(some, takes) {
			return false
		}
	}
	ref, _ := p["$ref"].(string)
	path, local := strings.CutPrefix(ref, "#/")
	return !local || takes(find(root, path))
}

func isObject(value any) bool {
	_, ok := value.(map[string]any)
	return ok
}

// find returns the part of a schema at a JSON pointer. For a pointer that is
// not a path of names it returns true, which everything matches.
func find(part any, path string) any {
	for name := range strings.SplitSeq(path, "/") {
		p, ok := part.(map[string]any)
		if !ok {
			return true
		}
		if part, ok = p[strings.NewReplacer("~1", "/", "~0", "~").Replace(name)]; !ok {
			return true
		}
	}
	return part
}

// Typed sets the type of a schema that Object has accepted.
func Typed(text string) (string, error) {
	const object = `"type":"object"`
	text, err := jsontext.Compact(text)
	if err != nil {
		return "", err
	}
	d := json.NewDecoder(strings.NewReader(text))
	_, err = d.Token()
	for err == nil && d.More() {
		var name json.Token
		var value json.RawMessage
		if name, err = d.Token(); err != nil {
			break
		}
		from := d.InputOffset()
		if err = d.Decode(&value); err == nil && name == "type" {
			return text[:from] + `:"object"` + text[d.InputOffset():], nil
		}
	}
	if text == "{}" {
		return "{" + object + "}", err
	}
	return "{" + object + "," + text[1:], err
}
