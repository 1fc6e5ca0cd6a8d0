package server

import (
	"context"
	"strings"
	"time"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/internal/kit/page"
	"github.com/fairlead/fairlead/services/session/internal/search"
	"github.com/fairlead/fairlead/services/session/internal/store"
	"github.com/fairlead/fairlead/services/session/internal/store/backend"
)

type searchCursor struct {
	Time    time.Time `json:"t"`
	Session string    `json:"s"`
	Message string    `json:"m"`
}

// SearchMessages finds messages of ended turns. Those of a turn that was undone
// are found as well.
func (s *Server) SearchMessages(ctx context.Context, r *sessionv1.SearchMessagesRequest) (*sessionv1.SearchMessagesResponse, error) {
	k := key(ctx, r.Session)
	scope := "SearchMessages\x00" + k.Tenant + "\x00" + k.Session + "\x00" + r.Query
	var c searchCursor
	if r.PageToken != "" {
		if err := page.Decode(r.PageToken, scope, &c); err != nil {
			return nil, storeError(err, subject{})
		}
	}
	if k.Session != "" {
		if _, err := s.Store.GetSession(ctx, k); err != nil {
			return nil, storeError(err, subject{session: r.Session})
		}
	}
	words := search.Query(r.Query)
	if len(words) == 0 {
		return nil, badInput("query", "The query has no words to look for. Give at least one letter or digit.")
	}
	size := page.Size(r.PageSize, 50, 1000)
	found, err := s.Store.SearchMessages(ctx, store.MessageSearch{
		Tenant: k.Tenant, Session: k.Session, Words: words, Limit: size + 1,
		AfterTime: c.Time, AfterSession: c.Session, AfterMessage: c.Message,
	})
	if err != nil {
		return nil, storeError(err, subject{session: r.Session})
	}
	resp := &sessionv1.SearchMessagesResponse{}
	for i, m := range found {
		if i == size {
			last := found[size-1]
			session, id := splitMessage(last.Name)
			resp.NextPageToken = page.Encode(scope, searchCursor{Time: last.CreateTime.AsTime(), Session: session, Message: id})
			break
		}
		resp.Messages = append(resp.Messages, &sessionv1.FoundMessage{
			Message: m.Name, Turn: m.Turn, Role: m.Role, CreateTime: m.CreateTime, Snippet: search.Snippet(backend.Text(m), words),
		})
	}
	return resp, nil
}

// splitMessage takes `sessions/{session}/messages/{message}` apart.
func splitMessage(name string) (session, message string) {
	parts := strings.Split(name, "/")
	return parts[1], parts[3]
}
