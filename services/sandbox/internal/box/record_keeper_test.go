package box

import (
	"os"
	"path/filepath"
	"testing"
)

func TestARecordIsKeptUntilItIsDropped(t *testing.T) {
	t.Parallel()
	k := recordKeeper{dir: filepath.Join(t.TempDir(), "call")}
	path := filepath.Join(k.dir, recordFile)
	latest := record{CallID: "call"}
	keep := func() {
		t.Helper()
		if err := k.keep(func() record { return latest }, noteNew); err != nil {
			t.Fatal(err)
		}
	}
	keep()
	if k.recorded.Load() {
		t.Error("a record without an end counts as recorded")
	}
	latest.Outcome = &Outcome{Reason: Exited, ExitCode: 3}
	keep()
	var got record
	if err := read(path, &got); err != nil || got.Outcome == nil || got.Outcome.ExitCode != 3 || !k.recorded.Load() {
		t.Errorf("%+v, %v", got, err)
	}
	if err := os.RemoveAll(k.dir); err != nil {
		t.Fatal(err)
	}
	k.drop()
	keep()
	if _, err := os.Stat(path); !os.IsNotExist(err) || !k.recorded.Load() {
		t.Errorf("it is written again: %v", err)
	}
}

func TestARecordOfADeletedWorkspaceIsNotWritten(t *testing.T) {
	t.Parallel()
	k := recordKeeper{dir: filepath.Join(t.TempDir(), "deleted", "call")}
	if err := k.keep(func() record { return record{} }, save); err != nil {
		t.Error(err)
	}
}
