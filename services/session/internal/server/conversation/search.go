package conversation

import (
	"context"
	"strings"
	"time"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/internal/kit/page"
	"github.com/fairlead/fairlead/services/session/internal/refusal"
	"github.com/fairlead/fairlead/services/session/internal/request"
	"github.com/fairlead/fairlead/services/session/internal/search"
	"github.com/fairlead/fairlead/services/session/internal/store"
	"github.com/fairlead/fairlead/services/session/internal/store/plan"
)

type searchCursor struct {
	Time    time.Time `json:"t"`
	Session string    `json:"s"`
	Message string    `json:"m"`
}

// SearchMessages finds messages of ended turns, including turns that were
// undone.
func (s *SessionServer) SearchMessages(ctx context.Context, r *sessionv1.SearchMessagesRequest) (*sessionv1.SearchMessagesResponse, error) {
	k := request.Key(ctx, r.Session)
	owner := listedUser(ctx, r.User)
	scope := "SearchMessages\x00" + k.Tenant + "\x00" + k.Session + "\x00" + r.Query
	if owner != "" {
		scope += "\x00" + owner
	}
	if r.PageToken != "" {
		if err := page.Decode(r.PageToken, scope, &searchCursor{}); err != nil {
			return nil, refusal.Store(err, refusal.Subject{})
		}
	}
	if k.Session != "" {
		if _, err := s.Store.GetSession(ctx, k); err != nil {
			return nil, refusal.Store(err, refusal.Subject{Session: r.Session})
		}
	}
	words := search.Query(r.Query)
	if len(words) == 0 {
		return nil, refusal.Input("query", "The query has no words to look for. Give at least one letter or digit.")
	}
	// The messages count, not their snippets: a page of long messages would be much work.
	list := func(after searchCursor, n int) ([]*sessionv1.Message, error) {
		return s.Store.SearchMessages(ctx, store.MessageSearch{
			Tenant: k.Tenant, Session: k.Session, User: owner, Words: words, Limit: n,
			AfterTime: after.Time, AfterSession: after.Session, AfterMessage: after.Message,
		})
	}
	found, next, err := request.List(scope, r, refusal.Subject{Session: r.Session}, searchCursorAt, list)
	return &sessionv1.SearchMessagesResponse{Messages: foundMessages(found, words), NextPageToken: next}, err
}

func foundMessages(messages []*sessionv1.Message, words []search.Word) []*sessionv1.FoundMessage {
	found := make([]*sessionv1.FoundMessage, len(messages))
	for i, m := range messages {
		found[i] = &sessionv1.FoundMessage{
			Message: m.Name, Turn: m.Turn, Role: m.Role, CreateTime: m.CreateTime, Snippet: search.Snippet(plan.Text(m), words),
		}
	}
	return found
}

// searchCursorAt returns the cursor of `sessions/{session}/messages/{message}`.
func searchCursorAt(m *sessionv1.Message) searchCursor {
	parts := strings.Split(m.Name, "/")
	return searchCursor{Time: m.CreateTime.AsTime(), Session: parts[1], Message: parts[3]}
}
