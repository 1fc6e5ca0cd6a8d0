package openaiagents

import (
	"encoding/json"
	"net/url"
	"slices"
	"unicode/utf8"

	"github.com/fairlead/fairlead/services/gateway/internal/problem"
	"github.com/fairlead/fairlead/services/gateway/internal/wires/resource"
	"github.com/fairlead/fairlead/services/gateway/internal/wires/wire"
)

// list are the parameters that lists share.
type list struct {
	limit  int
	after  string
	oldest bool
	query  url.Values
}

// list reads the parameters of a list. Unknown ones are ignored.
func (c *request) list() (list, error) {
	q := c.R.URL.Query()
	l := list{after: q.Get("after"), query: q}
	var err error
	if l.limit, err = c.Limit(20, 100); err == nil {
		l.oldest, err = c.OldestFirst(false)
	}
	return l, err
}

// entry is what a list has.
type entry struct {
	id   string
	body map[string]any
}

// page returns the page of a whole list, the oldest first.
func (l list) page(whole []entry) (any, error) {
	if !l.oldest {
		slices.Reverse(whole)
	}
	if l.after != "" {
		i := slices.IndexFunc(whole, func(e entry) bool { return l.passed(e.id) })
		if i < 0 {
			whole = nil
		} else if whole = whole[i:]; whole[0].id == l.after {
			whole = whole[1:]
		}
	}
	return listJSON(whole, l.limit), nil
}

// generated is the length of an id that Fairlead has made: the order of such ids is that in which they were made.
const generated = 26

// passed reports whether an id is that of the cursor, or comes after it: what the cursor names may have been deleted.
func (l list) passed(id string) bool {
	if id == l.after {
		return true
	}
	if len(id) != generated || len(l.after) != generated {
		return false
	}
	return l.oldest == (id > l.after)
}

// listJSON returns a page that begins with these entries.
func listJSON(from []entry, limit int) map[string]any {
	out := map[string]any{"object": "list", "data": []any{}, "has_more": len(from) > limit, "first_id": nil, "last_id": nil}
	from = from[:min(limit, len(from))]
	data := []any{}
	for _, e := range from {
		data = append(data, e.body)
	}
	if len(from) > 0 {
		out["data"], out["first_id"], out["last_id"] = data, from[0].id, from[len(from)-1].id
	}
	return out
}

// metadata is what a client keeps with a resource.
type metadata map[string]string

// checked returns the metadata, which replace what was there.
func (m metadata) checked() (map[string]string, error) {
	out := map[string]string{}
	for k, v := range m {
		if k == "" || utf8.RuneCountInString(k) > 64 || utf8.RuneCountInString(v) > 512 {
			return nil, resource.Bad("metadata", "a key has 1 to 64 characters, and a value at most 512: "+problem.Excerpt(k))
		}
		out[k] = v
	}
	if len(out) > 16 {
		return nil, resource.Bad("metadata", "there are at most 16 pairs")
	}
	return out, nil
}

// keep returns the metadata of a resource of ours with a value of this wire; those of other programs stay.
func keep(text, name string, value any) string {
	own := map[string]json.RawMessage{}
	if json.Unmarshal([]byte(text), &own) != nil || own == nil {
		own = map[string]json.RawMessage{}
	}
	b, _ := json.Marshal(value) //nolint:errchkjson // it has only what came as JSON
	own[name] = b
	b, _ = json.Marshal(own) //nolint:errchkjson // it has only what came as JSON
	return string(b)
}

// kept reads a value of this wire from the metadata of a resource. It reports whether there is one.
func kept(text, name string, value any) bool {
	own := resource.Fields([]byte(text))
	return len(own[name]) > 0 && wire.DecodeJSON(own[name], value) == nil // every digit of a schema stays
}
