// Package server serves the RPCs of the tools service: it converts requests for
// the engine and the registry, and their errors for the caller.
package server

import (
	"context"
	"strings"

	toolsv1 "github.com/fairlead/fairlead/gen/go/fairlead/tools/v1"
	"github.com/fairlead/fairlead/services/internal/kit/page"
	"github.com/fairlead/fairlead/services/tools/internal/registry"
	"github.com/fairlead/fairlead/services/tools/internal/tool"
)

const (
	namePrefix  = "tools/"
	defaultPage = 50
	maxPage     = 1000
)

// Tools serves ToolService.
type Tools struct {
	toolsv1.UnimplementedToolServiceServer
	registry *registry.Registry
}

// NewTools returns the server of ToolService.
func NewTools(r *registry.Registry) *Tools { return &Tools{registry: r} }

// GetTool implements ToolService.
func (s *Tools) GetTool(_ context.Context, q *toolsv1.GetToolRequest) (*toolsv1.GetToolResponse, error) {
	t, ok := s.registry.Get(strings.TrimPrefix(q.GetName(), namePrefix))
	if !ok {
		return nil, outward(errToolNotFound, q.GetName())
	}
	return &toolsv1.GetToolResponse{Tool: toProto(t)}, nil
}

// ListTools implements ToolService.
func (s *Tools) ListTools(ctx context.Context, q *toolsv1.ListToolsRequest) (*toolsv1.ListToolsResponse, error) {
	tenant, err := tenantOf(ctx)
	if err != nil {
		return nil, err
	}
	scope, after := "ListTools\x00"+tenant, ""
	if q.GetPageToken() != "" {
		if err := page.Decode(q.GetPageToken(), scope, &after); err != nil {
			return nil, outward(err, "")
		}
	}
	size := page.Size(q.GetPageSize(), defaultPage, maxPage)
	listed, more, _ := page.Fill(size, func(last *toolsv1.Tool, n int) (some []*toolsv1.Tool, _ error) {
		if last != nil {
			after = toolID(last)
		}
		found, _ := s.registry.After(after, n)
		for _, t := range found {
			some = append(some, toProto(t))
		}
		return some, nil
	})
	answer := &toolsv1.ListToolsResponse{Tools: listed}
	if more {
		answer.NextPageToken = page.Encode(scope, toolID(listed[len(listed)-1]))
	}
	return answer, nil
}

func toolID(t *toolsv1.Tool) string { return strings.TrimPrefix(t.GetName(), namePrefix) }

func toProto(t *tool.Tool) *toolsv1.Tool {
	return &toolsv1.Tool{
		Name: namePrefix + t.Name, Description: t.Description, InputSchemaJson: t.InputSchema, OutputSchemaJson: t.OutputSchema,
		Provider: t.Provider, ReadOnly: t.ReadOnly, Parallel: t.Parallel, Idempotent: t.Idempotent,
	}
}
