package mcp

import (
	"context"
	"iter"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"google.golang.org/protobuf/proto"

	commonv1 "github.com/fairlead/fairlead/gen/go/fairlead/common/v1"
)

const (
	// maxResources, maxTemplates and maxPrompts bound what is read of a server's lists, and maxListed
	// the bytes of each.
	maxResources = 500
	maxTemplates = 100
	maxPrompts   = 100
	maxListed    = 256 << 10
	// maxWords bounds a description in these lists.
	maxWords = 1000
)

// contents reads what a server has besides tools. A list that cannot be read is a note.
func (c *catalog) contents(ctx context.Context, session *mcp.ClientSession, has *mcp.ServerCapabilities) {
	if has.Resources != nil {
		c.resources = listed(c, "resources", maxResources, session.Resources(ctx, nil), linkOf)
		c.templates = listed(c, "resource templates", maxTemplates, session.ResourceTemplates(ctx, nil), templateOf)
	}
	if has.Prompts != nil {
		c.prompts = listed(c, "prompts", maxPrompts, session.Prompts(ctx, nil), promptOf)
	}
}

// listed converts a list as far as it is read.
func listed[T any, P proto.Message](c *catalog, what string, most int, all iter.Seq2[*T, error], convert func(*T) (P, bool)) []P {
	var out []P
	room := maxListed
	for one, err := range all {
		if err != nil {
			c.notes = append(c.notes, "its "+what+" cannot be listed: "+plain(err))
			break
		}
		made, ok := convert(one)
		if !ok {
			continue
		}
		if room -= proto.Size(made); room < 0 || len(out) == most {
			c.notes = append(c.notes, "it lists more "+what+" than are read")
			break
		}
		out = append(out, made)
	}
	return out
}

func linkOf(r *mcp.Resource) (*commonv1.ResourceLink, bool) {
	return &commonv1.ResourceLink{
		Uri: valid(r.URI), Name: cut(valid(r.Name), maxLabel), Title: cut(valid(r.Title), maxLabel),
		Description: cut(valid(r.Description), maxWords), MediaType: cut(valid(r.MIMEType), maxType), Size: max(0, r.Size),
	}, r.URI != "" && len(r.URI) <= maxAddress
}

func templateOf(r *mcp.ResourceTemplate) (*commonv1.McpResourceTemplate, bool) {
	return &commonv1.McpResourceTemplate{
		UriTemplate: valid(r.URITemplate), Name: cut(valid(r.Name), maxLabel), Title: cut(valid(r.Title), maxLabel),
		Description: cut(valid(r.Description), maxWords), MediaType: cut(valid(r.MIMEType), maxType),
	}, r.URITemplate != "" && len(r.URITemplate) <= maxAddress
}

func promptOf(p *mcp.Prompt) (*commonv1.McpPrompt, bool) {
	out := &commonv1.McpPrompt{Name: valid(p.Name), Title: cut(valid(p.Title), maxLabel), Description: cut(valid(p.Description), maxWords)}
	for _, a := range p.Arguments {
		out.Arguments = append(out.Arguments, &commonv1.McpPromptArgument{
			Name: valid(a.Name), Description: cut(valid(a.Description), maxWords), Required: a.Required,
		})
	}
	return out, p.Name != "" && len(p.Name) <= maxLabel
}
