package tables

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"google.golang.org/protobuf/proto"

	commonv1 "github.com/fairlead/fairlead/gen/go/fairlead/common/v1"
	"github.com/fairlead/fairlead/services/internal/kit/sqldb"
	"github.com/fairlead/fairlead/services/session/internal/store"
	"github.com/fairlead/fairlead/services/session/internal/store/plan"
)

type mcpServers struct{ db DB }

const selectMCPServers = "select body, set_time from user_mcp_servers where tenant = $1 and user_id = $2 order by name"

func scanMCPServer(r sqldb.Row) (store.MCPServer, error) {
	s := store.MCPServer{McpServer: &commonv1.McpServer{}}
	var body []byte
	if err := r.Scan(&body, &s.Time); err != nil {
		return s, err
	}
	if err := proto.Unmarshal(body, s.McpServer); err != nil {
		return s, fmt.Errorf("read an MCP server: %w", err)
	}
	return s, nil
}

// SetMCPServer implements store.MCPServers. Two concurrent changes of a user would not see each other's server,
// so they lock.
func (t mcpServers) SetMCPServer(ctx context.Context, o store.Owner, s *commonv1.McpServer, r store.Request) (store.MCPServer, error) {
	var all []store.MCPServer
	set := store.MCPServer{McpServer: s}
	body, err := proto.Marshal(s)
	if err != nil {
		return set, fmt.Errorf("marshal an MCP server: %w", err)
	}
	answer, err := once(ctx, t.db, "set an MCP server", request{Request: r, tenant: o.Tenant}, func(tx Tx) (err error) {
		if err := tx.Lock(ctx, "mcp servers\x01"+o.Tenant+"\x01"+o.User); err != nil {
			return err
		}
		all, err = sqldb.Collect(ctx, tx, scanMCPServer, selectMCPServers, o.Tenant, o.User)
		return err
	}, func(tx Tx) ([]store.Wake, error) {
		if err := plan.CheckMCPServers(all, s); err != nil {
			return nil, err
		}
		return nil, tx.QueryRow(ctx, `insert into user_mcp_servers (tenant, user_id, name, body, set_time) values ($1, $2, $3, $4, clock_timestamp())
			on conflict (tenant, user_id, name) do update set body = excluded.body, set_time = excluded.set_time returning set_time`,
			o.Tenant, o.User, s.GetName(), body).Scan(&set.Time)
	})
	if answer.Replayed {
		set = plan.MCPServerOf(all, s.GetName())
	}
	return set, err
}

// DeleteMCPServer implements store.MCPServers.
func (t mcpServers) DeleteMCPServer(ctx context.Context, o store.Owner, name string, r store.Request) error {
	_, err := once(ctx, t.db, "delete an MCP server", request{Request: r, tenant: o.Tenant}, nil, func(tx Tx) ([]store.Wake, error) {
		return nil, changed(tx.Exec(ctx, "delete from user_mcp_servers where tenant = $1 and user_id = $2 and name = $3", o.Tenant, o.User, name))
	})
	return err
}

// UserMCPServers implements store.MCPServers.
func (t mcpServers) UserMCPServers(ctx context.Context, o store.Owner) ([]store.MCPServer, error) {
	all, err := sqldb.Collect(ctx, t.db.Reader(), scanMCPServer, selectMCPServers, o.Tenant, o.User)
	return all, t.db.Fail("read the MCP servers of a user", err)
}

// SessionMCPServers implements store.MCPServers.
func (t mcpServers) SessionMCPServers(ctx context.Context, k store.Key) ([]*commonv1.McpServer, error) {
	var body []byte
	err := t.db.Reader().QueryRow(ctx, "select servers from session_mcp where tenant = $1 and session = $2", k.Tenant, k.Session).Scan(&body)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, nil
	}
	if err != nil {
		return nil, t.db.Fail("read the MCP servers of a session", err)
	}
	return plan.UnmarshalMCP(body)
}

// putSessionMCP inserts the servers that a session brings, if there are any.
func putSessionMCP(ctx context.Context, tx Tx, row *plan.SessionMCP) error {
	if row == nil {
		return nil
	}
	_, err := tx.Exec(ctx, "insert into session_mcp (tenant, session, servers) values ($1, $2, $3)", row.Tenant, row.Session, row.Servers)
	return err
}
