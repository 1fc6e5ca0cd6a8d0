package golden

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/fairlead/fairlead/gen/openapi"
)

// request is a block of requests.txt: a title, directives, the request line, headers, an empty line and the body.
//
//	=== a turn asks
//	> until REGEXP      reads the answer only until this
//	> save NAME REGEXP  keeps the first group, which later requests write as <NAME>; "secret" is their credential
//	POST /v1/sessions/one/turns:stream
//	Accept: text/event-stream
//
//	{"text":"ask"}
type request struct {
	title, method, path, body string
	header                    map[string]string
	until                     *regexp.Regexp
	save                      map[string]*regexp.Regexp
}

// parse reads requests.txt.
func parse(t *testing.T, file string) []request {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var all []request
	for _, block := range strings.Split("\n"+string(text), "\n=== ")[1:] {
		r, err := parseBlock(block)
		if err != nil {
			t.Fatalf("%s: %s: %v", file, r.title, err)
		}
		all = append(all, r)
	}
	return all
}

func parseBlock(block string) (request, error) {
	r := request{header: map[string]string{}, save: map[string]*regexp.Regexp{}}
	head, body, _ := strings.Cut(block, "\n\n")
	r.body = strings.TrimRight(body, "\n")
	lines := strings.Split(strings.TrimRight(head, "\n"), "\n")
	r.title = lines[0]
	for _, line := range lines[1:] {
		var err error
		if directive, ok := strings.CutPrefix(line, "> "); ok {
			err = r.directive(directive)
		} else if r.method == "" {
			r.method, r.path, _ = strings.Cut(line, " ")
		} else if name, value, ok := strings.Cut(line, ": "); ok {
			r.header[name] = value
		} else {
			err = fmt.Errorf("%q is no header", line)
		}
		if err != nil {
			return r, err
		}
	}
	if r.method == "" {
		return r, fmt.Errorf("it has no request line")
	}
	return r, nil
}

func (r *request) directive(text string) (err error) {
	verb, rest, _ := strings.Cut(text, " ")
	switch verb {
	case "until":
		r.until, err = regexp.Compile(rest)
	case "save":
		name, pattern, _ := strings.Cut(rest, " ")
		r.save[name], err = regexp.Compile(pattern)
	default:
		err = fmt.Errorf("there is no directive %q", verb)
	}
	return err
}

// route is a method on a path of the specification.
type route struct {
	method, path string
	parameters   []string
	bodies       []string
	pattern      *regexp.Regexp
}

var variable = regexp.MustCompile(`\{[^}]*\}`)

func (r route) name() string { return r.method + " " + r.path }

// file returns the name of the file with the route's answers.
func (r route) file() string {
	return strings.ToLower(r.method) + strings.NewReplacer("/", "_", "{", "", "}", "", ":", ".").Replace(r.path) + ".txt"
}

// with returns the path with the same value for each of its variables.
func (r route) with(value string) string { return variable.ReplaceAllString(r.path, value) }

func (r route) takes(mediaType string) bool { return slices.Contains(r.bodies, mediaType) }

// routes reads the specification, which has every route (TestTheTableIsTheSpecification).
func routes(t *testing.T) []route {
	t.Helper()
	var doc struct {
		Paths map[string]map[string]struct {
			Parameters  []struct{ Name string }
			RequestBody struct{ Content map[string]any }
		}
	}
	if err := json.Unmarshal(openapi.JSON, &doc); err != nil {
		t.Fatal(err)
	}
	var all []route
	for path, item := range doc.Paths {
		for method, op := range item {
			r := route{method: strings.ToUpper(method), path: path, pattern: pattern(path)}
			for _, p := range op.Parameters {
				r.parameters = append(r.parameters, p.Name)
			}
			for mediaType := range op.RequestBody.Content {
				r.bodies = append(r.bodies, mediaType)
			}
			all = append(all, r)
		}
	}
	slices.SortFunc(all, func(a, b route) int { return strings.Compare(a.name(), b.name()) })
	return all
}

func pattern(path string) *regexp.Regexp {
	parts := variable.Split(path, -1)
	for i, part := range parts {
		parts[i] = regexp.QuoteMeta(part)
	}
	segment := "[^/:]+"
	if strings.HasPrefix(path, "/v1/models/") { // whose names have a colon, and no verbs
		segment = "[^/]+"
	}
	return regexp.MustCompile("^" + strings.Join(parts, segment) + "$")
}

// Values that differ from run to run, and what is kept instead.
var (
	identifier = regexp.MustCompile(`\b[0-9a-z]{26}\b`)
	changing   = []struct {
		value *regexp.Regexp
		kept  string
	}{
		{regexp.MustCompile(`\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z`), "<time>"},
		{regexp.MustCompile(`"[0-9a-f]+-[0-9a-f]+-[0-9a-f-]*"`), `"<etag>"`},
		{regexp.MustCompile(`\b[0-9a-f]{16,}\b`), "<hex>"},
		{regexp.MustCompile(`"hash":(\s*)"[^"]+"`), `"hash":$1"<hash>"`},
		{regexp.MustCompile(`"nextPageToken":(\s*)"[^"]+"`), `"nextPageToken":$1"<token>"`},
		{regexp.MustCompile(`"((?:d|\w+D)uration)":(\s*)"[0-9.]+s"`), `"$1":$2"<duration>"`},
		{regexp.MustCompile(`,\s*"(durationMs|waitedMs)":\s*"\d+"`), ""}, // an answer leaves zero out
		{regexp.MustCompile(`\b(whsec|fl)_[A-Za-z0-9+/=_-]+`), "<secret>"},
		{regexp.MustCompile(`(?m)^: .*\n\n`), ""}, // comments of a quiet stream
		{regexp.MustCompile(`(?m)^\{"result":\{"progress":.*\n`), ""},
	}
)

// normal returns a body as it is kept: JSON is indented, ids are numbered, and what else differs is replaced.
func (p *player) normal(body string) string {
	var b bytes.Buffer
	if strings.HasPrefix(body, "{") && json.Indent(&b, []byte(body), "", "  ") == nil {
		body = b.String()
	}
	for name, value := range p.saved {
		body = strings.ReplaceAll(body, value, "<"+name+">")
	}
	seen := map[string]int{}
	body = identifier.ReplaceAllStringFunc(body, func(id string) string {
		if _, ok := seen[id]; !ok {
			seen[id] = len(seen) + 1
		}
		return fmt.Sprintf("<id %d>", seen[id])
	})
	for _, c := range changing {
		body = c.value.ReplaceAllString(body, c.kept)
	}
	return body
}
