// Command checkdocs reads the project's pages and prints what is wrong with
// them: a link or an anchor that leads nowhere, a REST route or an RPC that does
// not exist, a page that is too long, and a public route that docs/api.md
// leaves out. It exits with 1 when it finds a fault.
//
//	go run ./cmd/checkdocs ROOT
package main

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"

	"github.com/fairlead/fairlead/gen/openapi"
)

// apiPage names every public route.
const apiPage = "docs/api.md"

// maxLines are the longest pages, in lines. Generated pages have no limit.
func maxLines(name string) int {
	switch name {
	case "README.md":
		return 150
	case "docs/configuration.md", "docs/roles.md":
		return 1 << 30
	default:
		return 200
	}
}

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: checkdocs ROOT")
		os.Exit(2)
	}
	faults, err := check(os.DirFS(os.Args[1]))
	if err != nil {
		fmt.Fprintln(os.Stderr, "checkdocs:", err)
		os.Exit(1)
	}
	for _, f := range faults {
		fmt.Fprintln(os.Stderr, f)
	}
	if len(faults) > 0 {
		os.Exit(1)
	}
}

// check reads the pages of the project and returns their faults.
func check(root fs.FS) ([]string, error) {
	pages, err := read(root)
	if err != nil {
		return nil, err
	}
	routes, err := publicRoutes()
	if err != nil {
		return nil, err
	}
	var faults []string
	for _, p := range pages {
		if n := maxLines(p.name); len(p.lines) > n {
			faults = append(faults, fmt.Sprintf("%s: %d lines are more than %d", p.name, len(p.lines), n))
		}
		faults = append(faults, p.checkLinks(root, pages)...)
		faults = append(faults, p.checkRoutes(routes)...)
		faults = append(faults, p.checkRPCs()...)
		if p.name == apiPage {
			faults = append(faults, p.missing(routes)...)
		}
	}
	return faults, nil
}

// read returns the pages of the project, by name.
func read(root fs.FS) ([]page, error) {
	var pages []page
	for _, pattern := range []string{"*.md", "docs/*.md", "deploy/*.md"} {
		names, err := fs.Glob(root, pattern)
		if err != nil {
			return nil, err
		}
		for _, n := range names {
			text, err := fs.ReadFile(root, n)
			if err != nil {
				return nil, err
			}
			pages = append(pages, newPage(n, string(text)))
		}
	}
	return pages, nil
}

// publicRoutes returns the routes of the REST interface, as "GET /v1/agents".
func publicRoutes() ([]string, error) {
	var doc struct {
		Paths map[string]map[string]json.RawMessage `json:"paths"`
	}
	if err := json.Unmarshal(openapi.JSON, &doc); err != nil {
		return nil, fmt.Errorf("read the OpenAPI document: %w", err)
	}
	var routes []string
	for path, methods := range doc.Paths {
		for m := range methods {
			if m = strings.ToUpper(m); slices.Contains(httpMethods, m) {
				routes = append(routes, m+" "+path)
			}
		}
	}
	slices.Sort(routes)
	return routes, nil
}
