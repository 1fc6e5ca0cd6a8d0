package integration

import (
	"fmt"
	"strings"
	"testing"

	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	commonv1 "github.com/fairlead/fairlead/gen/go/fairlead/common/v1"
	sandboxv1 "github.com/fairlead/fairlead/gen/go/fairlead/sandbox/v1"
	"github.com/fairlead/fairlead/services/sandbox"
)

// A name that is not UTF-8 is told so that it can be used, and each byte has a name of
// its own.
func TestNamesThatAreNotTextCanBeUsed(t *testing.T) {
	t.Parallel()
	c := open(t, sandbox.LevelBasic)
	c.bash(t, `mkdir b; for i in {128..255}; do printf $i > b/n$(printf "\\x$(printf %x $i)"); done; printf own > b/$'n\uef80'; ls b | wc -l`)
	list, err := c.files.ListFiles(t.Context(), &sandboxv1.ListFilesRequest{Session: c.session, Path: "b"})
	if err != nil || len(list.GetFiles()) != 129 {
		t.Fatalf("%d, %v", len(list.GetFiles()), err)
	}
	for _, f := range list.GetFiles() {
		i := "own"
		if f.GetPath() != "b/n\uEFEE\uEFBE\uEF80" {
			i = fmt.Sprint([]rune(f.GetPath())[3] - 0xEF00)
		}
		if got, err := c.read(t, f.GetPath()); err != nil || got != i {
			t.Errorf("%q has %q, %v", f.GetPath(), got, err)
		}
		if s, err := c.files.StatFile(t.Context(), &sandboxv1.StatFileRequest{Session: c.session, Path: f.GetPath()}); err != nil || s.GetFile().GetPath() != f.GetPath() {
			t.Errorf("%q is %v, %v", f.GetPath(), s, err)
		}
		g, err := c.files.GlobFiles(t.Context(), &sandboxv1.GlobFilesRequest{Session: c.session, Pattern: f.GetPath()})
		if err != nil || len(g.GetFiles()) != 1 || g.GetFiles()[0].GetPath() != f.GetPath() {
			t.Errorf("the pattern %q finds %v, %v", f.GetPath(), g, err)
		}
	}
	for pattern, want := range map[string]int{"b/n?": 128, "b/n[\uEF80-\uEF8F]": 16, "b/{n\uEF80,n\uEF81}": 2, "b/n\uFFFD": 0, "b/*": 129, "/workspace/b/*\uEF80": 2} {
		g, err := c.files.GlobFiles(t.Context(), &sandboxv1.GlobFilesRequest{Session: c.session, Pattern: pattern, MaxResults: 1000})
		if err != nil || len(g.GetFiles()) != want {
			t.Errorf("%q finds %d, %v", pattern, len(g.GetFiles()), err)
		}
	}
	rest, err := c.files.ListFiles(t.Context(), &sandboxv1.ListFilesRequest{Session: c.session, Path: "b", Ignore: []string{"*[\uEF80-\uEFFE]"}})
	if err != nil || len(rest.GetFiles()) != 1 || rest.GetFiles()[0].GetPath() != "b/n\uEFFF" {
		t.Errorf("%v, %v", rest, err)
	}
	for _, f := range list.GetFiles() {
		if _, err := c.files.DeleteFile(t.Context(), &sandboxv1.DeleteFileRequest{Call: c.call(), Path: f.GetPath()}); err != nil {
			t.Errorf("%q: %v", f.GetPath(), err)
		}
	}
	if left := c.bash(t, "ls b"); left.out != "" {
		t.Errorf("left is %q", left.out)
	}
}

func TestNamesThatAreNotTextAreTheSameEverywhere(t *testing.T) {
	t.Parallel()
	c := open(t, sandbox.LevelBasic)
	const folder, name = "d\uEFFF", "d\uEFFF/f\uEF80"
	const raw = `d$'\xff'/f$'\x80'`
	was := c.snapshot(t, c.call())
	stream := c.watch(t)
	if w, err := c.write(t, name, "one\n", nil); err != nil || w.GetFile().GetPath() != name {
		t.Fatalf("%v, %v", w, err)
	}
	edit := &sandboxv1.EditFileRequest{Call: c.call(), Path: name, Edits: []*sandboxv1.Edit{{OldText: "one", NewText: "two"}}}
	if e, err := c.files.EditFile(t.Context(), edit); err != nil || e.GetFile().GetPath() != name {
		t.Fatalf("%v, %v", e, err)
	}
	if got := c.bash(t, "cat "+raw+"; ln -s "+raw+" link; mkfifo $'p\\xfe'"); got.out != "two\n" {
		t.Errorf("a command reads %q: %s", got.out, got.err)
	}
	if l, err := c.files.StatFile(t.Context(), &sandboxv1.StatFileRequest{Session: c.session, Path: "link"}); err != nil || l.GetFile().GetLinkTarget() != name {
		t.Errorf("the link is %v, %v", l, err)
	}
	if w, err := c.write(t, "link", "three\n", nil); err != nil || w.GetCreated() {
		t.Errorf("what is written through the link is %v, %v", w, err)
	}
	for seen := ""; seen != name; {
		r, err := stream.Recv()
		if err != nil {
			t.Fatal(err)
		}
		for _, change := range r.GetChanges() {
			if seen != name {
				seen = change.GetPath()
			}
		}
	}
	grep, err := c.files.GrepFiles(t.Context(), &sandboxv1.GrepFilesRequest{Session: c.session, Pattern: "three", Path: folder, Glob: "*\uEF80"})
	if err != nil {
		t.Fatal(err)
	}
	if m, err := grep.Recv(); err != nil || len(m.GetMatches()) != 1 || m.GetMatches()[0].GetPath() != name {
		t.Errorf("the search finds %v, %v", m, err)
	}
	one := c.snapshot(t, c.call())
	if left := one.GetLeftOut(); len(left) != 1 || left[0].GetPath() != "p\uEFFE" {
		t.Errorf("left out is %v", left)
	}
	if kept, err := c.snapshots.GetSnapshot(t.Context(), &sandboxv1.GetSnapshotRequest{Session: c.session, Snapshot: one.GetId()}); err != nil || !proto.Equal(kept.GetSnapshot(), one) {
		t.Errorf("kept is %v, %v", kept, err)
	}
	diff, err := c.snapshots.DiffSnapshots(t.Context(), &sandboxv1.DiffSnapshotsRequest{Session: c.session, From: was.GetId(), Path: folder, Unified: true})
	if err != nil || len(diff.GetChanges()) != 2 || diff.GetChanges()[1].GetPath() != name || !strings.Contains(diff.GetChanges()[1].GetUnified(), "+++ b/"+name) {
		t.Errorf("the difference is %v, %v", diff, err)
	}
	got, err := c.exec(t.Context(), "ls", func(s *sandboxv1.ExecStart) { s.Cwd = folder })
	if err != nil || got.out != "f\x80\n" {
		t.Errorf("in the folder is %q, %v", got.out, err)
	}
	_, err = c.files.ListFiles(t.Context(), &sandboxv1.ListFilesRequest{Session: c.session, Path: name})
	if wantReason(t, err, "WRONG_FILE_TYPE"); !strings.Contains(status.Convert(err).Message(), name) {
		t.Errorf("it does not tell of %q: %v", name, err)
	}
	move := &sandboxv1.MoveFileRequest{Call: c.call(), Path: name, NewPath: "g\uEF81"}
	if m, err := c.files.MoveFile(t.Context(), move); err != nil || m.GetFile().GetPath() != "g\uEF81" {
		t.Errorf("%v, %v", m, err)
	}
	if got := c.bash(t, `cat g$'\x81'`); got.out != "three\n" {
		t.Errorf("%q %s", got.out, got.err)
	}
}

func TestAWorkspaceBeginsWithNamesThatAreNotText(t *testing.T) {
	t.Parallel()
	c := start(t, configuration(t, sandbox.LevelBasic))
	_, err := c.workspaces.EnsureWorkspace(t.Context(), &sandboxv1.EnsureWorkspaceRequest{
		Call: &commonv1.CallRef{Session: c.session, Epoch: c.epoch, CallId: "first"}, SeedFiles: map[string][]byte{"n\uEF80": []byte("seed")},
	})
	if err != nil {
		t.Fatal(err)
	}
	if got := c.bash(t, `cat n$'\x80'`); got.out != "seed" {
		t.Errorf("%q %s", got.out, got.err)
	}
}
