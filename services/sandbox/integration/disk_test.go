package integration

import (
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	sandboxv1 "github.com/fairlead/fairlead/gen/go/fairlead/sandbox/v1"
	"github.com/fairlead/fairlead/services/sandbox"
)

func TestANearlyFullDiskTakesNoNewWork(t *testing.T) {
	t.Parallel()
	cfg := configuration(t, sandbox.LevelBasic)
	c := start(t, cfg)
	c.ensure(t.Context(), t)
	if _, err := c.write(t, "a", "before", nil); err != nil {
		t.Fatal(err)
	}
	snapshot := &sandboxv1.CreateSnapshotRequest{Call: c.named("snapshot")}
	if _, err := c.snapshots.CreateSnapshot(t.Context(), snapshot); err != nil {
		t.Fatal(err)
	}
	c.stop()

	cfg.Disk.FreeBytes = 1 << 60 // more than any disk has
	full := start(t, cfg)
	full.epoch = 2
	for _, tt := range []struct {
		name string
		do   func() error
	}{
		{"a new workspace", func() error {
			other := *full
			other.session = "sessions/other"
			_, err := other.workspaces.EnsureWorkspace(t.Context(), &sandboxv1.EnsureWorkspaceRequest{Call: other.call()})
			return err
		}},
		{"a command", func() error { _, err := full.exec(t.Context(), "true", nil); return err }},
		{"a file", func() error { _, err := full.write(t, "b", "text", nil); return err }},
		{"the same file again", func() error {
			_, err := full.write(t, "b", "text", func(s *sandboxv1.WriteFileStart) { s.Call = full.named("again") })
			return err
		}},
		{"a snapshot", func() error {
			_, err := full.snapshots.CreateSnapshot(t.Context(), &sandboxv1.CreateSnapshotRequest{Call: full.call()})
			return err
		}},
	} {
		err := tt.do()
		wantReason(t, err, "DISK_FULL")
		if status.Code(err) != codes.ResourceExhausted || !strings.Contains(err.Error(), "disk.free-bytes") {
			t.Errorf("%s: %v", tt.name, err)
		}
	}
	// What is there can be read, and removed to make room.
	if got, err := full.read(t, "a"); err != nil || got != "before" {
		t.Errorf("%q %v", got, err)
	}
	if _, err := full.files.DeleteFile(t.Context(), &sandboxv1.DeleteFileRequest{Call: full.call(), Path: "a"}); err != nil {
		t.Error(err)
	}
	full.stop()

	cfg.Disk.FreeBytes = 1
	again := start(t, cfg)
	again.epoch = 3
	if r := again.bash(t, "echo works"); r.out != "works\n" {
		t.Errorf("with room again: %v", r.ExecExited)
	}
	// The refusal was no answer for good.
	if _, err := again.write(t, "b", "text", func(s *sandboxv1.WriteFileStart) { s.Call = again.named("again") }); err != nil {
		t.Error(err)
	}
}
