package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	commonv1 "github.com/fairlead/fairlead/gen/go/fairlead/common/v1"
	"github.com/fairlead/fairlead/services/internal/kit/schema"
	"github.com/fairlead/fairlead/services/tools/internal/tool"
)

const (
	// maxTools and maxPages bound a server's list, maxDescription and maxSchema one tool.
	maxTools       = 1024
	maxPages       = 256
	maxDescription = 16 << 10
	maxSchema      = 256 << 10
	// maxInstructions bounds what a server says about the use of its tools.
	maxInstructions = 4 << 10
	// maxNotes bounds how many faults of a list are named.
	maxNotes = 5
)

// catalog is a server's list of tools.
type catalog struct {
	entries []entry
	notes   []string // what is wrong with single tools
	trouble string   // why the list could not be read again
	age     time.Duration

	resources []*commonv1.ResourceLink
	templates []*commonv1.McpResourceTemplate
	prompts   []*commonv1.McpPrompt
}

// entry is a tool of a server.
type entry struct {
	own  string     // the server's name of it
	tool *tool.Tool // without a runner
	// definition has digests of what the server says of the tool.
	definition string
}

// list reads the server's list of tools.
func (l *link) list(session *mcp.ClientSession) (c catalog, _ error) {
	ctx, cancel := context.WithTimeoutCause(l.ctx, l.pool.Start, errors.New("the server did not list its tools in time"))
	defer cancel()
	c = catalog{age: listAge}
	l.pages.begin()
	defer func() { c.notes = append(c.notes, l.pages.faults()...) }()
	init := session.InitializeResult()
	if init == nil || init.Capabilities == nil {
		return c, nil
	}
	c.contents(ctx, session, init.Capabilities)
	if init.Capabilities.Tools == nil {
		return c, nil // a server of resources or prompts alone
	}
	var all []*mcp.Tool
	params := &mcp.ListToolsParams{}
	for {
		answer, err := session.ListTools(ctx, params)
		if err != nil && ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		if err != nil {
			return c, err
		}
		if ttl := time.Duration(answer.TTLMs) * time.Millisecond; ttl > 0 {
			c.age = max(minListAge, min(c.age, ttl))
		}
		for _, t := range answer.Tools {
			// A page may come again, with the same tools.
			if !slices.ContainsFunc(all, func(x *mcp.Tool) bool { return x.Name == t.Name && x.Description == t.Description }) {
				all = append(all, t)
			}
		}
		if len(all) > maxTools {
			c.notes = append(c.notes, fmt.Sprintf("it lists more tools than the %d that are read", maxTools))
			all = all[:min(len(all), maxTools)]
			break
		}
		if answer.NextCursor == "" {
			break
		}
		params = &mcp.ListToolsParams{Cursor: answer.NextCursor}
	}
	c.fill(l.server.GetName(), l.server.GetTrusted(), all)
	return c, nil
}

// fill converts a server's tools. A tool that cannot be offered to a model is left out
// and named.
func (c *catalog) fill(server string, trusted bool, all []*mcp.Tool) {
	names := modelNames(server, all)
	bad := 0
	for i, t := range all {
		made, err := convert(server, names[i], trusted, t)
		if err == nil {
			c.entries = append(c.entries, entry{own: t.Name, tool: made, definition: definition(t)})
			continue
		}
		if bad++; bad <= maxNotes {
			c.notes = append(c.notes, fmt.Sprintf("its tool %.100q is left out: %s", t.Name, plain(err)))
		}
	}
	if bad > maxNotes {
		c.notes = append(c.notes, fmt.Sprintf("%d more of its tools are left out", bad-maxNotes))
	}
	slices.SortFunc(c.entries, func(a, b entry) int { return strings.Compare(a.tool.Name, b.tool.Name) })
}

// convert makes a tool of a server's description of it.
func convert(server, name string, trusted bool, t *mcp.Tool) (*tool.Tool, error) {
	if name == "" {
		return nil, errors.New("another tool has its name")
	}
	input, ok := t.Meta[schemaKey].(string)
	switch {
	case !ok:
		return nil, errors.New("it has no schema")
	case len(input) > maxSchema:
		return nil, fmt.Errorf("its schema has %d bytes, and the most is %d", len(input), maxSchema)
	}
	spec := tool.Spec{
		Name: name, Description: describe(t), InputSchema: input, OutputSchema: outputSchema(t), Provider: "mcp:" + server,
	}
	if a := t.Annotations; a != nil && trusted {
		spec.ReadOnly, spec.Parallel, spec.Idempotent = a.ReadOnlyHint, a.ReadOnlyHint, a.ReadOnlyHint || a.IdempotentHint
	}
	return tool.New(spec, nil)
}

// outputSchema returns the schema of a tool's structured results; empty if it has none that clients of every revision
// take. Results are not checked against it.
func outputSchema(t *mcp.Tool) string {
	text, _ := t.Meta[outputKey].(string)
	var root struct{ Type any }
	if len(text) > maxSchema || json.Unmarshal([]byte(text), &root) != nil || root.Type != "object" {
		return ""
	}
	if _, err := schema.Compile(text); err != nil {
		return ""
	}
	return text
}

// describe returns the description for the model.
func describe(t *mcp.Tool) string {
	text := t.Description
	if text == "" {
		text = t.Title
	}
	return cut(strings.ToValidUTF8(text, "\uFFFD"), maxDescription)
}

// summary says what is wrong with the list, after what the user must do, and before a line that is no message.
func (c catalog) summary(wants, printed string) string {
	if printed != "" {
		printed = fmt.Sprintf("its standard output has lines that are no messages of the protocol, such as %q; they are skipped", printed)
	}
	all := slices.Concat([]string{wants}, c.notes, []string{c.trouble, printed})
	return strings.Join(slices.DeleteFunc(all, func(s string) bool { return s == "" }), "; ")
}
