package managed

import (
	"math/big"
	"slices"
	"strings"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/gateway/internal/wires/resource"
	"github.com/fairlead/fairlead/services/gateway/internal/wires/wire"
)

// nanoUSD returns a number of cents in billionths of a dollar.
func nanoUSD(cents string) (int64, bool) {
	n, ok := new(big.Rat).SetString(cents)
	if !ok || strings.ContainsAny(cents, "/eE") {
		return 0, false
	}
	n.Mul(n, big.NewRat(10_000_000, 1))
	whole := new(big.Int).Quo(n.Num(), n.Denom())
	return whole.Int64(), whole.IsInt64() && whole.Sign() > 0
}

func (s *sessionsServer) updateSession(c *request) (any, error) {
	var p sessionParams
	if err := c.Decode(&p); err != nil {
		return nil, err
	}
	has := resource.Fields(c.Body)
	for _, field := range []string{"agent", "budget"} {
		if _, ok := has[field]; ok {
			return nil, resource.Bad(field, "it cannot be changed in a session of Fairlead; begin a new session")
		}
	}
	x, err := s.session(c)
	if err != nil {
		return nil, err
	}
	req := &sessionv1.UpdateSessionRequest{Name: x.GetName(), RequestId: c.Key}
	if _, ok := has["title"]; ok {
		title := ""
		if p.Title != nil {
			title = *p.Title
		}
		req.Title = &title
	}
	if p.Metadata != nil {
		d := sessionDocOf(x)
		if d.Metadata, err = p.Metadata.merged(d.Metadata); err != nil {
			return nil, err
		}
		text, err := d.json()
		if err != nil {
			return nil, err
		}
		req.MetadataJson = &text
	}
	ctx, cancel := s.within(c)
	defer cancel()
	if _, err := s.wire.Sessions.UpdateSession(ctx, req); err != nil {
		return nil, err
	}
	return s.getSession(c)
}

func (s *sessionsServer) archiveSession(c *request) (any, error) {
	ctx, cancel := s.within(c)
	defer cancel()
	if _, err := s.wire.Sessions.ArchiveSession(ctx, &sessionv1.ArchiveSessionRequest{Name: sessionName(c.ID[0]), RequestId: c.Key}); err != nil {
		return nil, err
	}
	return s.getSession(c)
}

func (s *sessionsServer) deleteSession(c *request) (any, error) {
	ctx, cancel := s.within(c)
	defer cancel()
	name := sessionName(c.ID[0])
	if _, err := s.wire.Sessions.DeleteSession(ctx, &sessionv1.DeleteSessionRequest{Name: name, RequestId: c.Key}); err != nil {
		return nil, err
	}
	return map[string]any{"id": sessionPrefix + wire.LastPart(name), "type": "session_deleted"}, nil
}

// archivedPage begins the cursor of a page of archived sessions, which come after the others.
const archivedPage = "archived."

func (s *sessionsServer) listSessions(c *request) (any, error) {
	l, err := c.list(20, 100, false)
	if err != nil {
		return nil, err
	}
	for _, field := range []string{"deployment_id", "memory_store_id", "agent_version"} {
		if l.query.Get(field) != "" {
			return nil, resource.Bad(field, "sessions cannot be listed by it")
		}
	}
	keep, err := l.between()
	if err != nil {
		return nil, err
	}
	req := &sessionv1.ListSessionsRequest{PageSize: int32(l.limit), OldestFirst: l.oldest}
	if id := l.query.Get("agent_id"); id != "" {
		req.Agent = agentName(id)
	}
	req.PageToken, req.Archived = strings.CutPrefix(l.page, archivedPage)
	states := l.query["statuses[]"]
	ctx, cancel := s.within(c)
	defer cancel()
	var data []any
	for {
		got, err := s.wire.Sessions.ListSessions(ctx, req)
		if err != nil {
			return nil, err
		}
		for _, x := range got.GetSessions() {
			if keep(x.GetCreateTime().AsTime()) && (len(states) == 0 || slices.Contains(states, statusOf(x))) {
				data = append(data, sessionJSON(x))
			}
		}
		req.PageToken = got.GetNextPageToken()
		next := req.PageToken
		switch {
		case next == "" && !req.Archived && l.archived:
			req.Archived, next = true, archivedPage
		case next != "" && req.Archived:
			next = archivedPage + next
		}
		if next == "" || len(data) > 0 { // clients take an empty page for the end
			out := page(data, next)
			out["prev_page"] = nil
			return out, nil
		}
	}
}

// threadOf returns the one thread of a session: the primary one.
func threadOf(x *sessionv1.Session) map[string]any {
	d := sessionDocOf(x)
	id := wire.LastPart(x.GetName())
	out := sessionJSON(x)
	return map[string]any{
		"id": threadPrefix + id, "type": "session_thread", "session_id": sessionPrefix + id, "parent_thread_id": nil, "agent": d.Agent, "status": out["status"],
		"usage": out["usage"], "stats": out["stats"], "created_at": out["created_at"], "updated_at": out["updated_at"], "archived_at": out["archived_at"],
	}
}

func (s *sessionsServer) listThreads(c *request) (any, error) {
	x, err := s.session(c)
	if err != nil {
		return nil, err
	}
	return page([]any{threadOf(x)}, ""), nil
}

func (s *sessionsServer) getThread(c *request) (any, error) {
	x, err := s.session(c)
	if err != nil {
		return nil, err
	}
	if err := c.thread(); err != nil {
		return nil, err
	}
	return threadOf(x), nil
}

// thread refuses the path of a thread that is not there.
func (c *request) thread() error {
	if len(c.ID) > 1 && c.ID[1] != threadPrefix+strings.TrimPrefix(c.ID[0], sessionPrefix) {
		return resource.None("thread", c.ID[1])
	}
	return nil
}
