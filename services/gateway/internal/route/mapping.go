package route

import (
	"fmt"
	"net/http"
	"regexp"
	"strings"

	"google.golang.org/genproto/googleapis/api/annotations"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// newRoute reads the HTTP mapping of a method; it returns nil without one.
func newRoute(m protoreflect.MethodDescriptor) (*Route, error) {
	rule, _ := proto.GetExtension(m.Options(), annotations.E_Http).(*annotations.HttpRule)
	if rule == nil {
		return nil, nil
	}
	method, path := methodAndPath(rule)
	if method == "" || len(rule.GetAdditionalBindings()) > 0 {
		return nil, fmt.Errorf("%s: only one binding to GET, POST, PUT, PATCH or DELETE is understood", m.FullName())
	}
	pattern, template, bound := parsePath(path)
	r := &Route{
		Method: method, Template: template, RPC: m.FullName(), Input: m.Input(), Body: rule.GetBody(),
		pattern: pattern, stream: m.IsStreamingClient() || m.IsStreamingServer(),
		Query: map[string]protoreflect.FieldDescriptor{},
	}
	if r.Body == "*" {
		return r, nil
	}
	fields := m.Input().Fields()
	for i := range fields.Len() {
		f := fields.Get(i)
		if bound[string(f.Name())] || string(f.Name()) == r.Body || f.Message() != nil {
			continue
		}
		r.Query[string(f.Name())] = f
		r.Query[f.JSONName()] = f
	}
	return r, nil
}

func methodAndPath(rule *annotations.HttpRule) (method, path string) {
	switch p := rule.GetPattern().(type) {
	case *annotations.HttpRule_Get:
		return http.MethodGet, p.Get
	case *annotations.HttpRule_Post:
		return http.MethodPost, p.Post
	case *annotations.HttpRule_Put:
		return http.MethodPut, p.Put
	case *annotations.HttpRule_Patch:
		return http.MethodPatch, p.Patch
	case *annotations.HttpRule_Delete:
		return http.MethodDelete, p.Delete
	default:
		return "", ""
	}
}

var variable = regexp.MustCompile(`\{(\w+)(?:=([^}]*))?\}`)

// parsePath converts /v1/{parent=sessions/*}/turns:stream into a pattern that matches it, a template for
// people (/v1/sessions/{session}/turns:stream) and the fields that the path sets. Ids contain no slash and
// no colon.
func parsePath(path string) (pattern *regexp.Regexp, template string, bound map[string]bool) {
	bound = map[string]bool{}
	plain := variable.ReplaceAllStringFunc(path, func(v string) string {
		parts := variable.FindStringSubmatch(v)
		bound[parts[1]] = true
		if parts[2] == "" {
			return "*"
		}
		return parts[2]
	})
	segments := strings.Split(plain, "/")
	words := make([]string, len(segments))
	for i, s := range segments {
		words[i] = s
		if s == "**" { // takes slashes and colons, and is the last one
			segments[i], words[i] = ".+", "{"+singular(words[i-1])+"}"
			continue
		}
		segments[i] = strings.ReplaceAll(regexp.QuoteMeta(s), `\*`, `[^/:]+`)
		if strings.HasPrefix(s, "*") {
			words[i] = strings.Replace(s, "*", "{"+singular(words[i-1])+"}", 1)
		}
	}
	return regexp.MustCompile(`^` + strings.Join(segments, "/") + `$`), strings.Join(words, "/"), bound
}

// singular returns the singular of a collection's name.
func singular(collection string) string {
	if stem, ok := strings.CutSuffix(collection, "ies"); ok {
		return stem + "y"
	}
	return strings.TrimSuffix(collection, "s")
}
