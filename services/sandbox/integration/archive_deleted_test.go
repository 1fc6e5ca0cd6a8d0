package integration

import (
	"errors"
	"io"
	"testing"

	sandboxv1 "github.com/fairlead/fairlead/gen/go/fairlead/sandbox/v1"
	"github.com/fairlead/fairlead/services/sandbox"
)

// A workspace goes while it is read, as one does that was moved to another node: what has
// vanished so is not left out of an archive that looks whole.
func TestAnExportOfAWorkspaceThatGoesIsNotWhole(t *testing.T) {
	t.Parallel()
	c := open(t, sandbox.LevelBasic)
	c.bash(t, "for i in 1 2 3 4; do head -c 4000000 /dev/urandom > $i; done")
	stream, err := c.workspaces.ExportWorkspace(t.Context(), &sandboxv1.ExportWorkspaceRequest{Session: c.session})
	if err == nil {
		_, err = stream.Recv()
	}
	if err == nil {
		_, err = c.workspaces.DeleteWorkspace(t.Context(), &sandboxv1.DeleteWorkspaceRequest{Session: c.session, WorkspaceGeneration: 1})
	}
	for err == nil {
		_, err = stream.Recv()
	}
	if errors.Is(err, io.EOF) {
		t.Fatal("what was there of it looks whole")
	}
	wantReason(t, err, "STALE_GENERATION")
}
