package conversation

import (
	"context"
	"encoding/json"
	"strings"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/session/internal/directory"
	"github.com/fairlead/fairlead/services/session/internal/refusal"
	"github.com/fairlead/fairlead/services/session/internal/request"
	"github.com/fairlead/fairlead/services/session/internal/store"
)

// ListSessions lists a page of sessions.
func (s *SessionServer) ListSessions(ctx context.Context, r *sessionv1.ListSessionsRequest) (*sessionv1.ListSessionsResponse, error) {
	p := sessionPage(r)
	p.Tenant, p.User = request.Key(ctx, "").Tenant, listedUser(ctx, r.User)
	selected, err := json.Marshal(p)
	if err != nil {
		return nil, err
	}
	scope := "ListSessions\x00" + string(selected)
	all, next, err := request.List(scope, r, refusal.Subject{}, sessionCursorAt, func(after request.Cursor, n int) ([]*sessionv1.Session, error) {
		p.AfterTime, p.AfterID, p.Limit = after.Time, after.ID, n
		return s.Store.ListSessions(ctx, p)
	})
	return &sessionv1.ListSessionsResponse{Sessions: all, NextPageToken: next}, err
}

// sessionPage returns what a request selects.
func sessionPage(r *sessionv1.ListSessionsRequest) store.SessionPage {
	p := store.SessionPage{CallerKey: r.Key, State: r.State, Archived: r.Archived, OldestFirst: r.OldestFirst, Parent: strings.TrimPrefix(r.Parent, "sessions/")}
	if r.Agent != "" {
		p.Agent = directory.AgentName(r.Agent)
	}
	for _, label := range r.Labels {
		name, value, _ := strings.Cut(label, "=")
		if p.Labels == nil {
			p.Labels = map[string]string{}
		}
		p.Labels[name] = value
	}
	return p
}

func sessionCursorAt(s *sessionv1.Session) request.Cursor {
	return request.Cursor{Time: s.CreateTime.AsTime(), ID: request.LastSegment(s.Name)}
}
