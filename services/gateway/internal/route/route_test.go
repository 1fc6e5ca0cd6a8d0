package route

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fairlead/fairlead/gen/openapi"
	"github.com/fairlead/fairlead/services/gateway/internal/transfer"
)

func table(t *testing.T) *Table {
	t.Helper()
	tbl, err := New()
	if err != nil {
		t.Fatal(err)
	}
	return tbl
}

func TestTheTableIsTheSpecification(t *testing.T) {
	var doc struct {
		Paths map[string]map[string]struct {
			Parameters []struct{ Name, In string }
			Responses  map[string]struct{ Content map[string]any }
		}
	}
	if err := json.Unmarshal(openapi.JSON, &doc); err != nil {
		t.Fatal(err)
	}
	var documented, routed []string
	for path, item := range doc.Paths {
		for method := range item {
			documented = append(documented, strings.ToUpper(method)+" "+path)
		}
	}
	for _, r := range table(t).Routes() {
		routed = append(routed, r.Method+" "+r.Template)
		op := doc.Paths[r.Template][strings.ToLower(r.Method)]
		has := func(in, name string) bool {
			return slices.ContainsFunc(op.Parameters, func(p struct{ Name, In string }) bool { return p.In == in && p.Name == name })
		}
		if has("header", "Idempotency-Key") != r.Mutation() {
			t.Errorf("%s: Idempotency-Key documented: %t, taken: %t", r.Template, !r.Mutation(), r.Mutation())
		}
		for name, f := range r.Query {
			if name == string(f.Name()) && !has("query", name) {
				t.Errorf("%s: the query parameter %s is not documented", r.Template, name)
			}
		}
		if _, sse := op.Responses["200"].Content["text/event-stream"]; r.Stream() && !sse && !strings.HasSuffix(r.Template, ":converse") {
			t.Errorf("%s: the stream is not documented", r.Template)
		}
	}
	for _, r := range transfer.Routes() {
		routed = append(routed, r.Method+" "+r.Template)
	}
	slices.Sort(documented)
	slices.Sort(routed)
	if diff := cmp.Diff(documented, routed); diff != "" {
		t.Errorf("documented and routed paths differ (-documented +routed):\n%s", diff)
	}
}

func TestMatch(t *testing.T) {
	tbl := table(t)
	for path, want := range map[string]string{
		"/v1/sessions":                   "POST GET",
		"/v1/sessions/s1":                "GET PATCH DELETE",
		"/v1/sessions/s1/":               "",
		"/v1/sessions/":                  "",
		"/v1/sessions//turns":            "",
		"/v1/sessions/s1:interrupt":      "POST",
		"/v1/sessions/s1:other":          "",
		"/v1/sessions:converse":          "POST",
		"/v1/sessions/s1/turns":          "POST GET",
		"/v1/sessions/s1/turns:stream":   "POST",
		"/v1/sessions/s1/turns/t1":       "GET",
		"/v1/sessions/s1/events:stream":  "GET",
		"/v1/sessions/s1\n/turns":        "POST GET",
		"/v1/tools/Bash":                 "GET",
		"/v1/operations/t1.1.0":          "GET",
		"/v1/operations/t1.1.0:cancel":   "POST",
		"/v2/sessions":                   "",
		"/V1/sessions":                   "",
		"":                               "",
		"v1/sessions":                    "",
		"/v1/sessions\n":                 "",
		"/v1/sessions/s1/turns/t1/extra": "",
	} {
		var methods []string
		for _, r := range tbl.Match(path) {
			methods = append(methods, r.Method)
		}
		if got := strings.Join(methods, " "); got != want {
			t.Errorf("%q: %q, want %q", path, got, want)
		}
	}
}

func TestAllowNamesEveryMethodOnce(t *testing.T) {
	tbl := table(t)
	for path, want := range map[string]string{
		"/v1/sessions/s1":               "DELETE GET HEAD OPTIONS PATCH",
		"/v1/sessions/s1/events:stream": "GET OPTIONS",
		"/v1/sessions/s1/turns":         "GET HEAD OPTIONS POST",
	} {
		if got := strings.Join(Allow(tbl.Match(path)), " "); got != want {
			t.Errorf("%s: %q, want %q", path, got, want)
		}
	}
}
