package tables

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"path"
	"strconv"

	"github.com/fairlead/fairlead/services/internal/kit/sqldb"
	"github.com/fairlead/fairlead/services/session/internal/store"
)

type agents struct{ db DB }

const insertRevision = "insert into agent_revisions (tenant, name, revision, spec) values ($1, $2, $3, $4) on conflict do nothing"

// PutAgentRevision implements store.Agents.
func (t agents) PutAgentRevision(ctx context.Context, tenant string, a store.AgentRevision) error {
	_, err := t.db.Exec(ctx, "put agent revision", insertRevision, tenant, a.Name, a.Revision, a.Spec)
	return err
}

// GetAgentRevision implements store.Agents.
func (t agents) GetAgentRevision(ctx context.Context, tenant, name, revision string) (store.AgentRevision, error) {
	a := store.AgentRevision{Name: name, Revision: revision}
	err := t.db.Reader().QueryRow(ctx, "select spec from agent_revisions where tenant = $1 and name = $2 and revision = $3",
		tenant, name, revision).Scan(&a.Spec)
	return a, t.db.Fail("get agent revision", err)
}

// selectAgents reads agents a with their versions v.
const selectAgents = `
	select a.name, v.revision, r.spec, v.version, v.user_name, v.restored_from, v.create_time, a.create_time, a.archive_time
	from agents a
	join agent_versions v on v.tenant = a.tenant and v.name = a.name
	join agent_revisions r on r.tenant = v.tenant and r.name = v.name and r.revision = v.revision
	where a.tenant = $1`

func scanAgent(row sqldb.Row) (a store.AgentRow, err error) {
	return a, row.Scan(&a.Name, &a.Revision, &a.Spec, &a.Version, &a.User, &a.RestoredFrom, &a.VersionTime, &a.CreateTime, &a.ArchiveTime)
}

// WriteAgent implements store.Agents. Two concurrent writes of a tenant would not see each
// other's agent, so they lock.
func (t agents) WriteAgent(ctx context.Context, w store.AgentWrite) (store.Answer, error) {
	version := w.Expected + 1
	answer := request{Request: w.Request, tenant: w.Tenant, value: w.Name + "/versions/" + strconv.Itoa(int(version))}
	return once(ctx, t.db, "write agent", answer, func(tx Tx) error {
		return tx.Lock(ctx, "agents\x01"+w.Tenant)
	}, func(tx Tx) (_ []store.Wake, err error) {
		if w.Expected == 0 {
			err = insertAgent(ctx, tx, w)
		} else {
			err = raiseAgent(ctx, tx, w)
		}
		if err != nil {
			return nil, err
		}
		_, err = tx.Send(ctx, sqldb.S(insertRevision, w.Tenant, w.Name, w.Revision, w.Spec), sqldb.S(`
			insert into agent_versions (tenant, name, version, revision, user_name, restored_from, create_time)
			values ($1, $2, $3, $4, $5, $6, clock_timestamp())`,
			w.Tenant, w.Name, version, w.Revision, w.User, w.RestoredFrom))
		return nil, err
	})
}

func insertAgent(ctx context.Context, tx Tx, w store.AgentWrite) error {
	collection := path.Dir(w.Name)
	count, err := sqldb.Value[int](tx.QueryRow(ctx, "select count(*) from agents where tenant = $1 and name >= $2 and name < $3",
		w.Tenant, collection+"/", collection+"0")) // 0 follows the slash
	if err != nil {
		return err
	}
	made, err := tx.Exec(ctx, "insert into agents (tenant, name, version, create_time) values ($1, $2, 1, clock_timestamp()) on conflict do nothing",
		w.Tenant, w.Name)
	switch {
	case err != nil:
		return err
	case made == 0:
		return store.ErrExists
	case count >= cmp.Or(w.Most, store.MaxAgents):
		return store.ErrTooMany
	}
	return nil
}

// raiseAgent raises the number of an agent's newest version.
func raiseAgent(ctx context.Context, tx Tx, w store.AgentWrite) error {
	var newest int32
	var archived bool
	err := tx.QueryRow(ctx, "select version, archive_time is not null from agents where tenant = $1 and name = $2", w.Tenant, w.Name).Scan(&newest, &archived)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return store.ErrNotFound
	case err != nil:
		return err
	case newest != w.Expected:
		return store.ErrConflict
	case archived:
		return store.ErrArchived
	case int(newest) >= cmp.Or(w.MostVersions, store.MaxAgentVersions):
		return store.ErrTooMany
	}
	_, err = tx.Exec(ctx, "update agents set version = $3 where tenant = $1 and name = $2", w.Tenant, w.Name, newest+1)
	return err
}

// ArchiveAgent implements store.Agents. An agent that is archived again keeps its time.
func (t agents) ArchiveAgent(ctx context.Context, a store.ArchiveAgent) (store.Answer, error) {
	change := "coalesce(archive_time, clock_timestamp())"
	if a.Undo {
		change = "null"
	}
	return once(ctx, t.db, "archive agent", request{Request: a.Request, tenant: a.Tenant}, nil, func(tx Tx) ([]store.Wake, error) {
		return nil, changed(tx.Exec(ctx, "update agents set archive_time = "+change+" where tenant = $1 and name = $2", a.Tenant, a.Name))
	})
}

// DeleteAgent implements store.Agents.
func (t agents) DeleteAgent(ctx context.Context, d store.DeleteAgent) (store.Answer, error) {
	return once(ctx, t.db, "delete agent", request{Request: d.Request, tenant: d.Tenant}, nil, func(tx Tx) ([]store.Wake, error) {
		if err := changed(tx.Exec(ctx, "delete from agents where tenant = $1 and name = $2", d.Tenant, d.Name)); err != nil {
			return nil, err
		}
		if _, err := tx.Send(ctx,
			sqldb.S("delete from agent_versions where tenant = $1 and name = $2", d.Tenant, d.Name),
			sqldb.S("delete from agent_revisions where tenant = $1 and name = $2", d.Tenant, d.Name)); err != nil {
			return nil, err
		}
		return putJobs(ctx, tx, d.Jobs)
	})
}

// GetAgent implements store.Agents.
func (t agents) GetAgent(ctx context.Context, tenant, name string, version int32) (store.AgentRow, error) {
	a, err := scanAgent(t.db.Reader().QueryRow(ctx, selectAgents+" and a.name = $2 and v.version = case when $3 = 0 then a.version else $3 end", tenant, name, version))
	return a, t.db.Fail("get agent", err)
}

// ListAgents implements store.Agents.
func (t agents) ListAgents(ctx context.Context, tenant, collection, after string, archived bool, limit int) ([]store.AgentRow, error) {
	query := selectAgents + " and v.version = a.version and a.name > $2 and a.name >= $3 and a.name < $4"
	if !archived {
		query += " and a.archive_time is null"
	}
	all, err := sqldb.Collect(ctx, t.db.Reader(), scanAgent, query+" order by a.name limit $5",
		tenant, after, collection+"/", collection+"0", sqldb.Limit(limit)) // 0 follows the slash
	return all, t.db.Fail("list agents", err)
}

// ListAgentVersions implements store.Agents.
func (t agents) ListAgentVersions(ctx context.Context, tenant, name string, before int32, limit int) ([]store.AgentRow, error) {
	all, err := sqldb.Collect(ctx, t.db.Reader(), scanAgent,
		selectAgents+" and a.name = $2 and ($3 = 0 or v.version < $3) order by v.version desc limit $4", tenant, name, before, sqldb.Limit(limit))
	return all, t.db.Fail("list agent versions", err)
}
