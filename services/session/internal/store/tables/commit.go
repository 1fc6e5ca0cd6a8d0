package tables

import (
	"github.com/fairlead/fairlead/services/internal/kit/sqldb"
	"github.com/fairlead/fairlead/services/session/internal/store/plan"
)

// Rare returns the statements of the parts of a commit that few commits have: revised messages, checkpoints, feedback
// and places.
func Rare(c *plan.Commit) []sqldb.Statement {
	var all []sqldb.Statement
	for _, m := range c.Revised {
		all = append(all, sqldb.S("update messages set body = $1 where tenant = $2 and session = $3 and message = $4", m.Body, m.Tenant, m.Session, m.ID))
	}
	for _, id := range c.DropCheckpoints {
		all = append(all, sqldb.S("delete from checkpoints where tenant = $1 and session = $2 and checkpoint = $3", id.Tenant, id.Session, id.ID))
	}
	for _, p := range c.Checkpoints {
		all = append(all, sqldb.S("insert into checkpoints (tenant, session, checkpoint, seq, body) values ($1, $2, $3, $4, $5) on conflict do nothing",
			p.Tenant, p.Session, p.ID.ID, p.Seq, p.Body))
	}
	for _, f := range c.Feedback {
		all = append(all, sqldb.S("insert into feedback (tenant, session, feedback, body) values ($1, $2, $3, $4) on conflict do nothing", f.Tenant, f.Session, f.ID.ID, f.Body))
	}
	for _, p := range c.Places {
		all = append(all, sqldb.S(`insert into places as p (tenant, session, node, generation, restoring, made, left_node, left_why, left_for) values ($1, $2, $3, $4, $5, $6, $7, $8, $4)
			on conflict (tenant, session) do update set node = excluded.node, generation = excluded.generation, restoring = excluded.restoring,
				made = greatest(p.made, excluded.made), left_node = excluded.left_node, left_why = excluded.left_why, left_for = excluded.left_for`,
			p.Tenant, p.Session, p.Node, p.Generation, p.Restore, plan.MadeIn(p.Place), p.Left.Node, p.Left.Why))
	}
	for _, m := range c.Made {
		all = append(all, sqldb.S(noteMade, m.Tenant, m.Session, m.Generation))
	}
	for _, v := range c.Voids { // these exports may have undone changes
		all = append(all, sqldb.S("update places set export_turn = '', export_seq = $3, export_time = null where tenant = $1 and session = $2 and export_seq < $3",
			v.Tenant, v.Session, v.Seq))
	}
	return all
}
