// Package registry has the tools of all providers.
package registry

import (
	"fmt"
	"sort"

	"github.com/fairlead/fairlead/services/tools/internal/tool"
)

// Registry has tools by name. It does not change after New, and is safe for
// concurrent use.
type Registry struct {
	byName map[string]*tool.Tool
	sorted []*tool.Tool
}

// New returns a registry. Two tools with the same name are an error, even of
// different providers: the model could not tell them apart.
func New(tools ...*tool.Tool) (*Registry, error) {
	r := &Registry{byName: make(map[string]*tool.Tool, len(tools))}
	for _, t := range tools {
		if other, taken := r.byName[t.Name]; taken {
			return nil, fmt.Errorf("two tools are named %s, of the providers %s and %s", t.Name, other.Provider, t.Provider)
		}
		r.byName[t.Name] = t
		r.sorted = append(r.sorted, t)
	}
	sort.Slice(r.sorted, func(i, j int) bool { return r.sorted[i].Name < r.sorted[j].Name })
	return r, nil
}

// Get finds a tool by name.
func (r *Registry) Get(name string) (*tool.Tool, bool) {
	t, ok := r.byName[name]
	return t, ok
}

// After lists up to limit tools in the order of their names, from the first one
// whose name is after the given one; more reports whether others follow.
func (r *Registry) After(name string, limit int) (tools []*tool.Tool, more bool) {
	from := sort.Search(len(r.sorted), func(i int) bool { return r.sorted[i].Name > name })
	to := min(from+max(limit, 0), len(r.sorted))
	return r.sorted[from:to], to < len(r.sorted)
}

// Names lists the names of all tools, sorted.
func (r *Registry) Names() []string {
	names := make([]string, len(r.sorted))
	for i, t := range r.sorted {
		names[i] = t.Name
	}
	return names
}
