package mcp

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/fairlead/fairlead/services/tools/internal/permission"
)

// definition returns digests of what a server says of a tool: a grant holds for just that. The order of names in a
// schema does not count.
func definition(t *mcp.Tool) string {
	input, _ := t.Meta[schemaKey].(string)
	output, _ := t.Meta[outputKey].(string)
	title, hints := t.Title, ""
	if a := t.Annotations; a != nil {
		own := *a
		title, own.Title = title+"\x00"+a.Title, ""
		hints = string(marshal(own))
	}
	if hints == "{}\n" {
		hints = ""
	}
	return permission.Bind(
		permission.Part{Name: "name", Text: t.Name},
		permission.Part{Name: "description", Text: t.Description + "\x00" + strings.TrimRight(title, "\x00")},
		permission.Part{Name: "arguments", Text: sorted(input)},
		permission.Part{Name: "results", Text: sorted(output)},
		permission.Part{Name: "hints", Text: hints},
	)
}

// sorted returns a text of JSON with its names in order. Another text stays as it is.
func sorted(text string) string {
	var v any
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	if d.Decode(&v) != nil {
		return text
	}
	return string(marshal(v))
}

// binding returns what a grant on a tool of the server is bound to: where the server is, and the tool's definition.
// Headers and variables do not count, because credentials change.
func (o offer) binding(e entry) string {
	place := []string{strconv.FormatBool(o.operator)}
	if s := o.GetStdio(); s != nil {
		place = append(append(place, "command", s.GetCommand()), s.GetArgs()...)
	} else {
		place = append(place, "address", o.GetHttp().GetUrl())
	}
	return permission.Bind(permission.Part{Name: "server", Text: string(bytes.TrimSpace(marshal(place)))}) + "," + e.definition
}
