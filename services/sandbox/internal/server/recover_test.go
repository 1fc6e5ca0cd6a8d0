package server

import (
	"testing"

	"github.com/fairlead/fairlead/services/sandbox/internal/files"
)

// Whether a step was taken is told by names as they are, also by ones that are no text.
func TestAStepIsRememberedWithNamesThatAreNotText(t *testing.T) {
	t.Parallel()
	want := files.RenameStep{File: files.Mark{Inode: 1}, From: "a/\x80", To: "\xffä/own \uEF80"}
	var intent []byte
	err := journalRename(want, nil, func(raw []byte) error {
		intent = raw
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if got, err := readRename(intent); err != nil || got.Step != want {
		t.Errorf("%+v from %q, not %+v: %v", got.Step, intent, want, err)
	}
}
