package modelproxy

import (
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/fairlead/fairlead/services/internal/kit/modelapi"
	"github.com/fairlead/fairlead/services/session/internal/model/catalog"
)

// modelsPath is where an API lists models.
func modelsPath(f modelapi.Form) string {
	if f == modelapi.OpenAI {
		return "/openai/v1/models"
	}
	return "/anthropic/v1/models"
}

// made is the time that every model has: when a model was made is not known here.
var made = time.Unix(0, 0).UTC()

// shown returns a model in the form of the API.
func (x *exchange) shown(e catalog.Entry) any {
	if x.route.Form == modelapi.OpenAI {
		return map[string]any{"id": e.Name, "object": "model", "created": made.Unix(), "owned_by": e.Provider}
	}
	m := map[string]any{
		"type": "model", "id": e.Name, "display_name": e.Name, "created_at": made.Format(time.RFC3339), "max_tokens": e.MaxOutputTokens,
	}
	if e.ContextTokens > 0 {
		m["max_input_tokens"] = e.ContextTokens
	}
	return m
}

func (x *exchange) getModel() *modelapi.Failure {
	e, f := x.find(x.route.Model)
	if f != nil {
		return f
	}
	return x.json(x.shown(e))
}

// mostModels is the largest page of Anthropic's API.
const mostModels = 1000

// listModels lists the models by name, in pages where the API has them.
func (x *exchange) listModels() *modelapi.Failure {
	all, f := x.entries()
	if f != nil {
		return f
	}
	names := slices.Sorted(maps.Keys(all))
	more := false
	if x.route.Form == modelapi.Anthropic {
		if names, more, f = page(names, x.r.URL.Query().Get("after_id"), x.r.URL.Query().Get("before_id"), x.r.URL.Query().Get("limit")); f != nil {
			return f
		}
	}
	list := []any{}
	for _, n := range names {
		list = append(list, x.shown(all[n]))
	}
	if x.route.Form == modelapi.OpenAI {
		return x.json(map[string]any{"object": "list", "data": list})
	}
	out := map[string]any{"data": list, "has_more": more, "first_id": nil, "last_id": nil}
	if len(names) > 0 {
		out["first_id"], out["last_id"] = names[0], names[len(names)-1]
	}
	return x.json(out)
}

// entries returns the models of the server and the tenant's own, by name.
func (x *exchange) entries() (map[string]catalog.Entry, *modelapi.Failure) {
	own, err := x.Names.Own(x.r.Context())
	if err != nil {
		return nil, x.notFound(catalog.Own+":", err)
	}
	all := map[string]catalog.Entry{}
	for _, e := range own {
		all[e.Name] = e
	}
	for _, n := range x.Models.Names() {
		if e, err := x.Models.Resolve(n); err == nil {
			all[n] = e
		}
	}
	return all, nil
}

// page returns the names of a page, and whether there are more.
func page(names []string, after, before, limit string) ([]string, bool, *modelapi.Failure) {
	most := mostModels
	if limit != "" {
		n, err := strconv.Atoi(limit)
		if err != nil || n < 1 || n > mostModels {
			return nil, false, refused(http.StatusBadRequest, "limit: %.20q is not a number from 1 to %d", limit, mostModels)
		}
		most = n
	}
	if before != "" {
		to, _ := slices.BinarySearch(names, before)
		names = names[:to]
		return names[max(0, len(names)-most):], len(names) > most, nil
	}
	from, found := slices.BinarySearch(names, after)
	if found {
		from++
	}
	names = names[from:]
	return names[:min(most, len(names))], len(names) > most, nil
}

// json answers with a value.
func (x *exchange) json(v any) *modelapi.Failure {
	b, err := json.Marshal(v)
	if err != nil {
		return refused(http.StatusInternalServerError, "the answer could not be written")
	}
	x.head(http.StatusOK, "application/json")
	_, _ = x.w.Write(b) // an error here means that the client has gone
	return nil
}

// head begins an answer.
func (x *exchange) head(status int, mediaType string) {
	h := x.w.Header()
	h.Set("Content-Type", mediaType)
	h.Set("Cache-Control", "no-store")
	if h.Get(x.route.RequestID()) == "" {
		h.Set(x.route.RequestID(), x.id)
	}
	if mediaType == eventStream {
		h.Set("X-Accel-Buffering", "no")
	}
	x.w.WriteHeader(status)
}

const eventStream = "text/event-stream"
