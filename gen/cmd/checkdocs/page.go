package main

import (
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strings"

	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	_ "github.com/fairlead/fairlead/gen/go/fairlead/sandbox/v1"
	_ "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	_ "github.com/fairlead/fairlead/gen/go/fairlead/tools/v1"
)

var (
	httpMethods = []string{"DELETE", "GET", "PATCH", "POST", "PUT"}

	link    = regexp.MustCompile(`\]\(([^()\s]+)\)`)
	code    = regexp.MustCompile("`[^`]*`")
	heading = regexp.MustCompile(`^#{1,6} +(.*)$`)
	route   = regexp.MustCompile(`\b(DELETE|GET|PATCH|POST|PUT) +(/v1/[^\s` + "`" + `?|,"']+)`)
	rpc     = regexp.MustCompile(`\b([A-Z][A-Za-z]+Service)\.([A-Z][A-Za-z]+)\b`)
	param   = regexp.MustCompile(`\\\{[^/}]*\\\}`)
	dropped = regexp.MustCompile(`[^\p{L}\p{N}_ -]`)
)

// page is one Markdown file.
type page struct {
	name    string // relative to the root, with slashes
	lines   []string
	prose   []string // lines without code blocks, which are empty here
	anchors []string
}

func newPage(name, text string) page {
	p := page{name: name, lines: strings.Split(strings.TrimSuffix(text, "\n"), "\n")}
	fenced := false
	for _, l := range p.lines {
		fence := strings.HasPrefix(strings.TrimSpace(l), "```")
		if fence {
			fenced = !fenced
		}
		if fenced || fence {
			l = ""
		}
		p.prose = append(p.prose, l)
		if m := heading.FindStringSubmatch(l); m != nil {
			p.anchors = append(p.anchors, p.anchor(m[1]))
		}
	}
	return p
}

// anchor returns the name that GitHub gives to a heading.
func (p page) anchor(title string) string {
	slug := strings.ReplaceAll(dropped.ReplaceAllString(strings.ToLower(title), ""), " ", "-")
	name := slug
	for i := 1; slices.Contains(p.anchors, name); i++ {
		name = fmt.Sprintf("%s-%d", slug, i)
	}
	return name
}

// checkLinks returns the links to files and anchors that do not exist.
func (p page) checkLinks(root fs.FS, pages []page) []string {
	var faults []string
	for i, l := range p.prose {
		for _, m := range link.FindAllStringSubmatch(code.ReplaceAllString(l, ""), -1) {
			if strings.Contains(m[1], "://") || strings.HasPrefix(m[1], "mailto:") {
				continue
			}
			file, anchor, _ := strings.Cut(m[1], "#")
			target := p.name
			if file != "" {
				target = path.Join(path.Dir(p.name), file)
			}
			if _, err := fs.Stat(root, target); err != nil {
				faults = append(faults, fmt.Sprintf("%s:%d: the link %s leads to no file", p.name, i+1, m[1]))
				continue
			}
			to := slices.IndexFunc(pages, func(q page) bool { return q.name == target })
			if anchor != "" && (to < 0 || !slices.Contains(pages[to].anchors, anchor)) {
				faults = append(faults, fmt.Sprintf("%s:%d: the link %s leads to no heading", p.name, i+1, m[1]))
			}
		}
	}
	return faults
}

// checkRoutes returns the REST routes that do not exist.
func (p page) checkRoutes(routes []string) []string {
	var faults []string
	for i, l := range p.lines {
		for _, m := range route.FindAllStringSubmatch(l, -1) {
			asked := m[1] + " " + strings.TrimRight(m[2], ".;:)")
			if !slices.ContainsFunc(routes, func(r string) bool { return fits(r, asked) }) {
				faults = append(faults, fmt.Sprintf("%s:%d: there is no route %s", p.name, i+1, asked))
			}
		}
	}
	return faults
}

// fits reports whether asked is the route, or the route with its parameters
// filled in.
func fits(route, asked string) bool {
	pattern := param.ReplaceAllString(regexp.QuoteMeta(route), `[^/:]+`)
	return regexp.MustCompile("^" + pattern + "$").MatchString(asked)
}

// missing returns the routes that the page does not name.
func (p page) missing(routes []string) []string {
	var faults []string
	text := strings.Join(p.lines, "\n")
	for _, r := range routes {
		if !strings.Contains(text, r+"`") {
			faults = append(faults, fmt.Sprintf("%s: the route %s is missing", p.name, r))
		}
	}
	return faults
}

// checkRPCs returns the RPCs, written as Service.Method, that do not exist.
func (p page) checkRPCs() []string {
	var faults []string
	for i, l := range p.lines {
		for _, m := range rpc.FindAllStringSubmatch(l, -1) {
			if !exists(m[1], m[2]) {
				faults = append(faults, fmt.Sprintf("%s:%d: there is no RPC %s", p.name, i+1, m[0]))
			}
		}
	}
	return faults
}

// exists reports whether a service of Fairlead has the method.
func exists(service, method string) bool {
	for _, pkg := range []string{"session", "tools", "sandbox"} {
		d, err := protoregistry.GlobalFiles.FindDescriptorByName(protoreflect.FullName("fairlead." + pkg + ".v1." + service))
		s, ok := d.(protoreflect.ServiceDescriptor)
		if err == nil && ok && s.Methods().ByName(protoreflect.Name(method)) != nil {
			return true
		}
	}
	return false
}
