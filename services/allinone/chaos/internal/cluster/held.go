package cluster

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"time"

	"github.com/jackc/pgx/v5"
)

// Held returns the sessions that a session replica holds now, to measure takeovers; nil when the database
// cannot be asked.
func (c *Cluster) Held(ctx context.Context, p *Process) []string {
	ctx, cancel := context.WithTimeout(ctx, 500*time.Millisecond)
	defer cancel()
	conn, err := pgx.Connect(ctx, c.Postgres.URL())
	if err != nil {
		return nil
	}
	defer func() { _ = conn.Close(ctx) }()
	rows, err := conn.Query(ctx, "select 'sessions/' || session from session.sessions where holder = $1 and lease_until > clock_timestamp()", p.replica())
	if err != nil {
		return nil
	}
	held, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return nil
	}
	return held
}

// replica returns the name under which a session replica takes leases; it writes it into its log when it
// starts.
func (p *Process) replica() string {
	text, err := os.ReadFile(p.log)
	if err != nil {
		return ""
	}
	name := ""
	for line := range bytes.Lines(text) {
		var entry struct{ Replica string }
		if bytes.Contains(line, []byte(`"replica"`)) && json.Unmarshal(line, &entry) == nil && entry.Replica != "" {
			name = entry.Replica
		}
	}
	return name
}
