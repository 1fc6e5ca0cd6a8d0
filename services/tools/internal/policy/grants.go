package policy

import (
	"context"
	"fmt"

	"github.com/fairlead/fairlead/services/tools/internal/permission"
	"github.com/fairlead/fairlead/services/tools/internal/store"
)

// maxGrants bounds the grants that decide on the calls of a session: the newest hold.
const maxGrants = 1000

// read is what was read of the store at a version of the tenant.
type read[V any] struct {
	version int64
	value   V
}

// reuse returns the cached value of a key if it has the version, and otherwise what load
// reads.
func reuse[V any](c *cache[read[V]], key string, version int64, load func() (V, error)) (V, error) {
	if known, ok := c.get(key); ok && known.version >= version {
		return known.value, nil
	}
	value, err := load()
	if err == nil {
		c.put(key, read[V]{version, value})
	}
	return value, err
}

// grants returns the grants of a query, the newest first.
func (s *Source) grants(ctx context.Context, q Query) ([]permission.Grant, error) {
	if s.Store == nil {
		return nil, nil
	}
	all, err := reuse(&s.granted, q.Tenant+"\x00"+q.User+"\x00"+q.Session, q.Version, func() (map[string]held, error) {
		return s.readGrants(ctx, q)
	})
	return all[q.Profile].grants, err
}

// held are the grants for one profile, and their rows in the same order.
type held struct {
	grants []permission.Grant
	rows   []store.Grant
}

// Rows returns the grants of a query in the order of its policy's.
func (s *Source) Rows(ctx context.Context, q Query) ([]store.Grant, error) {
	if _, err := s.grants(ctx, q); err != nil || s.Store == nil {
		return nil, err
	}
	known, _ := s.granted.get(q.Tenant + "\x00" + q.User + "\x00" + q.Session)
	return known.value[q.Profile].rows, nil
}

// readGrants reads the grants of a session and its user by their profiles.
func (s *Source) readGrants(ctx context.Context, q Query) (map[string]held, error) {
	if q.User == "" {
		return nil, nil
	}
	rows, err := s.Store.ListGrants(ctx, store.GrantPage{Tenant: q.Tenant, User: q.User, Session: q.Session, Holding: true, Limit: maxGrants})
	if err != nil {
		return nil, err
	}
	byProfile := map[string]held{}
	for _, row := range rows {
		g, err := permission.NewGrant(permission.Tool(row.Rule), row.Rule, said(row))
		if err != nil {
			return nil, fmt.Errorf("read grant %s: %w", row.ID, err)
		}
		h := byProfile[row.Profile]
		byProfile[row.Profile] = held{append(h.grants, g.Bound(row.Binding)), append(h.rows, row)}
	}
	return byProfile, nil
}

func said(g store.Grant) string {
	if g.Session == "" {
		return g.Approver + " always"
	}
	return g.Approver + " for the session"
}
