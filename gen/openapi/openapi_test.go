package openapi_test

import (
	"encoding/json"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/fairlead/fairlead/gen/openapi"
)

type object = map[string]any

func document(t *testing.T) object {
	t.Helper()
	doc := object{}
	if err := json.Unmarshal(openapi.JSON, &doc); err != nil {
		t.Fatal(err)
	}
	return doc
}

// walk calls f with every object of a value and its place.
func walk(value any, at string, f func(at string, o object)) {
	switch v := value.(type) {
	case object:
		f(at, v)
		for name, inner := range v {
			walk(inner, at+"/"+name, f)
		}
	case []any:
		for _, inner := range v {
			walk(inner, at, f)
		}
	}
}

// find returns what a reference leads to; nil: nothing.
func find(doc object, ref string) any {
	path, ok := strings.CutPrefix(ref, "#/")
	if !ok {
		return nil
	}
	var at any = doc
	for _, name := range strings.Split(path, "/") {
		o, _ := at.(object)
		at = o[strings.NewReplacer("~1", "/", "~0", "~").Replace(name)]
	}
	return at
}

func TestEveryReferenceLeadsSomewhere(t *testing.T) {
	doc := document(t)
	walk(doc, "", func(at string, o object) {
		if ref, ok := o["$ref"].(string); ok && find(doc, ref) == nil {
			t.Errorf("%s: %s leads nowhere", at, ref)
		}
	})
}

// Generators make a class of each alternative, and an alternative without fields takes every object.
func TestNoSchemaHasAlternatives(t *testing.T) {
	walk(document(t)["components"], "", func(at string, o object) {
		if o["oneOf"] != nil || o["anyOf"] != nil {
			t.Errorf("%s has alternatives", at)
		}
	})
}

// operations calls f with every operation.
func operations(t *testing.T, doc object, f func(t *testing.T, path, method string, op object)) {
	t.Helper()
	paths := doc["paths"].(object)
	if len(paths) == 0 {
		t.Fatal("there are no paths")
	}
	for path, item := range paths {
		for method, op := range item.(object) {
			t.Run(method+" "+path, func(t *testing.T) { f(t, path, method, op.(object)) })
		}
	}
}

var parameter = regexp.MustCompile(`\{(\w+)\}`)

func TestEveryOperationIsComplete(t *testing.T) {
	doc := document(t)
	schemes, _ := find(doc, "#/components/securitySchemes").(object)
	ids := map[string]string{}
	operations(t, doc, func(t *testing.T, path, method string, op object) {
		id, _ := op["operationId"].(string)
		if id == "" || ids[id] != "" {
			t.Errorf("its id is %q, which %q has, too", id, ids[id])
		}
		ids[id] = method + " " + path
		security, ok := op["security"].([]any)
		if !ok {
			t.Error("it does not say how callers prove who they are")
		}
		for _, alternative := range security {
			for name := range alternative.(object) {
				if schemes[name] == nil {
					t.Errorf("the security scheme %s is not defined", name)
				}
			}
		}
		var want, got []string
		for _, m := range parameter.FindAllStringSubmatch(path, -1) {
			want = append(want, m[1])
		}
		seen := map[string]bool{}
		list, _ := op["parameters"].([]any)
		for _, p := range list {
			in, name := p.(object)["in"].(string), p.(object)["name"].(string)
			if seen[in+" "+name] {
				t.Errorf("the %s parameter %s is there twice", in, name)
			}
			seen[in+" "+name] = true
			if in == "path" {
				got = append(got, name)
			}
			if p.(object)["schema"] == nil {
				t.Errorf("the parameter %s has no schema", name)
			}
		}
		slices.Sort(want)
		slices.Sort(got)
		if !slices.Equal(want, got) {
			t.Errorf("the path has the parameters %v, and the operation describes %v", want, got)
		}
		contents(t, op)
	})
}

// contents checks the bodies of a request and its answers.
func contents(t *testing.T, op object) {
	t.Helper()
	responses, _ := op["responses"].(object)
	if responses["default"] == nil || len(responses) < 2 {
		t.Errorf("its answers are %v", slices.Collect(maps.Keys(responses)))
	}
	bodies := []any{op["requestBody"]}
	for _, r := range responses {
		bodies = append(bodies, r)
	}
	for _, body := range bodies {
		described, _ := body.(object)
		content, _ := described["content"].(object)
		for kind, media := range content {
			if media.(object)["schema"] == nil {
				t.Errorf("%s has no schema", kind)
			}
		}
		if content["application/json"] != nil && content["text/event-stream"] != nil {
			t.Error("an answer is JSON or a stream of events: clients that are generated take either for both")
		}
	}
}

// The operations whose request has a secret of its own are those that need no credential.
func TestOnlySomeOperationsAreOpen(t *testing.T) {
	var open []string
	operations(t, document(t), func(_ *testing.T, _, _ string, op object) {
		if security, ok := op["security"].([]any); ok && len(security) == 0 {
			open = append(open, op["operationId"].(string))
		}
	})
	slices.Sort(open)
	if want := []string{"McpService_FinishMcpLogin", "TriggerService_FireTrigger"}; !slices.Equal(open, want) {
		t.Errorf("open are %v, want %v", open, want)
	}
}
