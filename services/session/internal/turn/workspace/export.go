package workspace

import (
	"slices"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/session/internal/placement"
	"github.com/fairlead/fairlead/services/session/internal/store"
	"github.com/fairlead/fairlead/services/session/internal/turn/state"
)

// ExportAfter adds a job that exports the workspace after the turn's end, if a call
// of the turn may have changed it.
func (m *Mover) ExportAfter(sc state.Scope, write *store.Write, t *state.Turn) {
	p := sc.Place()
	if !m.export || p.Node == "" || p.Restore || !m.Changed(sc, t) {
		return
	}
	write.Jobs = append(write.Jobs, placement.ExportJob(sc.Lease.Key, t.ID, sc.Log.Seq()+int64(len(write.Events))))
}

// Changed reports whether a call of the turn may have changed the workspace.
func (m *Mover) Changed(sc state.Scope, t *state.Turn) bool {
	return slices.ContainsFunc(sc.Path, func(message *sessionv1.Message) bool {
		return t.Owns(message.Turn) && slices.ContainsFunc(state.ToolUses(message), func(u *sessionv1.ToolUse) bool { return m.tools.MayChange(t, u.Tool) })
	})
}

// ExportRewound marks the exports so far as void, since they may have what a write
// undoes, and has the workspace exported anew. The path is the new one.
func (m *Mover) ExportRewound(sc state.Scope, write *store.Write, name string) {
	p := sc.Place()
	if p.Node == "" {
		return
	}
	write.VoidExports = sc.Log.Seq() + int64(len(write.Events))
	p.Export = store.Export{Seq: write.VoidExports, Snapshot: p.Export.Snapshot}
	sc.SetPlace(p)
	if !m.export || p.Restore {
		return
	}
	turn := ""
	if last := sc.Last(); last != nil {
		turn = state.LastSegment(last.Turn)
	}
	write.Jobs = append(write.Jobs, placement.RewoundJob(sc.Lease.Key, name, turn, write.VoidExports))
}
