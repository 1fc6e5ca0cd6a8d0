package managed

import (
	"context"
	"net/http"
	"net/url"
	"time"
	"unicode/utf8"

	"github.com/fairlead/fairlead/services/gateway/internal/problem"
	"github.com/fairlead/fairlead/services/gateway/internal/wires/resource"
	"github.com/fairlead/fairlead/services/gateway/internal/wires/wire"
	"github.com/fairlead/fairlead/services/internal/kit/id"
)

// isUpload reports whether a request brings a file.
func isUpload(r *http.Request) bool {
	return r.Method == http.MethodPost && r.URL.Path == Prefix+"/v1/files"
}

// claim returns the idempotency key of a request. An upload without a key of the client's own is always a first attempt.
func (s *base) claim(c *request) (string, error) {
	if isUpload(c.R) && c.R.Header.Get("Idempotency-Key") == "" { // it is not read yet, so two of them cannot be told apart
		return wire.RequestID("managed", id.New()), nil
	}
	return s.wire.Claim(c.R, "managed", c.Body)
}

// within bounds a call of a service.
func (s *base) within(c *request) (context.Context, context.CancelFunc) {
	return context.WithTimeout(c.R.Context(), s.wire.Timeout)
}

// list are the parameters that lists share.
type list struct {
	limit    int
	page     string
	archived bool
	oldest   bool
	query    url.Values
}

// list reads the parameters of a list. Unknown ones are ignored.
func (c *request) list(dflt, most int, oldest bool) (list, error) {
	q := c.R.URL.Query()
	l := list{page: q.Get("page"), archived: q.Get("include_archived") == "true", query: q}
	var err error
	if l.limit, err = c.Limit(dflt, most); err == nil {
		l.oldest, err = c.OldestFirst(oldest)
	}
	return l, err
}

// between returns whether a time is within the range that a list asks for.
func (l list) between() (func(time.Time) bool, error) {
	var checks []func(time.Time) bool
	for _, op := range []string{"gt", "gte", "lt", "lte"} {
		name := "created_at[" + op + "]"
		text := l.query.Get(name)
		if text == "" {
			continue
		}
		bound, err := time.Parse(time.RFC3339, text)
		if err != nil {
			return nil, resource.Bad(name, problem.Excerpt(text)+" is not a time of the form 2026-05-01T12:00:00Z")
		}
		checks = append(checks, func(t time.Time) bool {
			switch d := t.Compare(bound); op {
			case "gt":
				return d > 0
			case "gte":
				return d >= 0
			case "lt":
				return d < 0
			default:
				return d <= 0
			}
		})
	}
	return func(t time.Time) bool {
		for _, ok := range checks {
			if !ok(t) {
				return false
			}
		}
		return true
	}, nil
}

// page returns a page of a list.
func page(data []any, next string) map[string]any {
	if data == nil {
		data = []any{}
	}
	out := map[string]any{"data": data, "next_page": nil}
	if next != "" {
		out["next_page"] = next
	}
	return out
}

// metadata is what a client keeps with a resource.
type metadata map[string]*string

const (
	mostMetadata = 16
	mostKey      = 64
	mostValue    = 512
)

// merged returns what a client's metadata become: a null takes a key away.
func (m metadata) merged(into map[string]string) (map[string]string, error) {
	out := map[string]string{}
	for k, v := range into {
		out[k] = v
	}
	for k, v := range m {
		if v == nil {
			delete(out, k)
			continue
		}
		if utf8.RuneCountInString(k) > mostKey || utf8.RuneCountInString(*v) > mostValue {
			return nil, resource.Bad("metadata", "a key has at most 64 characters, and a value 512: "+problem.Excerpt(k))
		}
		out[k] = *v
	}
	if len(out) > mostMetadata {
		return nil, resource.Bad("metadata", "there are at most 16 pairs")
	}
	return out, nil
}
