package mcp

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// pages follows the pages of a server's lists, and ends a list whose cursor comes back: it would have no end.
type pages struct {
	mu    sync.Mutex
	seen  map[string][]string // the cursors of a list, by method
	notes []string            // what is wrong with the lists
}

// begin forgets what was wrong with earlier lists.
func (p *pages) begin() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.seen, p.notes = map[string][]string{}, nil
}

// faults returns what is wrong with the lists.
func (p *pages) faults() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.notes)
}

// follow is a middleware of requests to the server.
func (p *pages) follow(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, q mcp.Request) (mcp.Result, error) {
		result, err := next(ctx, method, q)
		if err != nil {
			return result, err
		}
		switch r := result.(type) {
		case *mcp.ListToolsResult:
			p.page(method, r.Meta, &r.NextCursor)
		case *mcp.ListResourcesResult:
			p.page(method, r.Meta, &r.NextCursor)
		case *mcp.ListResourceTemplatesResult:
			p.page(method, r.Meta, &r.NextCursor)
		case *mcp.ListPromptsResult:
			p.page(method, r.Meta, &r.NextCursor)
		}
		return result, nil
	}
}

func (p *pages) page(method string, meta mcp.Meta, cursor *string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if fault, ok := meta[faultKey].(string); ok && !slices.Contains(p.notes, fault) {
		p.notes = append(p.notes, fault)
	}
	seen := p.seen[method]
	switch {
	case *cursor == "":
	case slices.Contains(seen, *cursor):
		p.notes = append(p.notes, fmt.Sprintf("its %s has no end: the cursor %.100q comes back", method, *cursor))
		*cursor = ""
	case len(seen) >= maxPages:
		p.notes = append(p.notes, fmt.Sprintf("its %s has more than the %d pages that are read", method, maxPages))
		*cursor = ""
	default:
		p.seen[method] = append(seen, *cursor)
	}
}
