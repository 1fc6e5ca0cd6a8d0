package workspace

import (
	"context"
	"time"

	sandboxv1 "github.com/fairlead/fairlead/gen/go/fairlead/sandbox/v1"
	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/session/internal/artifact"
	"github.com/fairlead/fairlead/services/session/internal/remote"
	"github.com/fairlead/fairlead/services/session/internal/turn/state"
)

const (
	// mostArtifacts is how many files are compared; with more there is no event.
	mostArtifacts = 500
	// artifactsWait bounds one list: a turn does not wait for what is only convenient.
	artifactsWait = 2 * time.Second
)

// noteArtifacts records the artifacts before the turn's first change. uses are the calls that are about to be
// made. A successor does not know whether the calls have begun, and records nothing for them.
func (k *Checkpoints) noteArtifacts(sc state.Scope, uses []*sessionv1.ToolUse, inherited bool) {
	t := sc.Active
	if t.Run.Artifacts != nil || inherited || !k.anyMayChange(t, uses) {
		return
	}
	all, ok := k.artifacts(sc)
	if !ok {
		return
	}
	t.Run.Artifacts = map[string]string{"": ""} // never empty, so that it is stored
	for _, a := range all {
		t.Run.Artifacts[a.Path] = a.Etag
	}
}

// ChangedArtifacts returns the event of the artifacts that the turn has made or changed; nil if there are none.
func (k *Checkpoints) ChangedArtifacts(sc state.Scope, t *state.Turn) *sessionv1.Event {
	before := t.Run.Artifacts
	t.Run.Artifacts = nil
	if before == nil || t.Undo {
		return nil
	}
	all, ok := k.artifacts(sc)
	if !ok {
		return nil
	}
	var changed []*sessionv1.Artifact
	for _, a := range all {
		if before[a.Path] != a.Etag {
			changed = append(changed, a)
		}
	}
	if len(changed) == 0 {
		return nil
	}
	return &sessionv1.Event{Body: &sessionv1.Event_ArtifactsChanged{ArtifactsChanged: &sessionv1.ArtifactsChanged{Artifacts: changed}}}
}

// artifacts lists the artifacts, and reports whether it could.
func (k *Checkpoints) artifacts(sc state.Scope) ([]*sessionv1.Artifact, bool) {
	ctx, cancel := context.WithTimeout(sc, artifactsWait)
	defer cancel()
	p := sc.Place()
	page, err := k.sandbox.ListFiles(ctx, remote.Place{Session: sc.Proto.Name, Node: p.Node, Generation: p.Generation},
		&sandboxv1.ListFilesRequest{Path: artifact.Folder, Recursive: true, PageSize: mostArtifacts})
	if err != nil || page.GetNextPageToken() != "" {
		sc.Logger.DebugContext(sc, "the artifacts of a turn are not listed", "session", sc.Lease.Session, "error", err)
		return nil, false
	}
	return artifact.Of(sc.Proto.Name, page.GetFiles()), true
}
