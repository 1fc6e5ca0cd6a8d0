package integration

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/testing/protocmp"

	sandboxv1 "github.com/fairlead/fairlead/gen/go/fairlead/sandbox/v1"
	"github.com/fairlead/fairlead/services/internal/kit/apierr"
	"github.com/fairlead/fairlead/services/sandbox"
)

func TestCommandsAndFilesShareTheWorkspace(t *testing.T) {
	t.Parallel()
	atLevel(t, func(t *testing.T, level string) {
		c := open(t, level)
		big := strings.Repeat("0123456789abcdef", 200_000)
		r, err := c.write(t, "/workspace/a/b/script", "#!/bin/sh\necho from the script\n", func(s *sandboxv1.WriteFileStart) { s.Mode = 0o755 })
		if err != nil || !r.GetCreated() || r.GetFile().GetPath() != "a/b/script" || r.GetFile().GetMode() != 0o755 {
			t.Fatalf("%v, %v", r, err)
		}
		if _, err := c.write(t, "big", big, nil); err != nil {
			t.Fatal(err)
		}
		x := c.bash(t, "a/b/script && echo more >> a/b/script && wc -c < big && stat -c %u a a/b a/b/script big && echo made > a/made")
		if want := "from the script\n3200000\n1000\n1000\n1000\n1000\n"; x.out != want {
			t.Errorf("%q %q", x.out, x.err)
		}
		if got, err := c.read(t, "big"); err != nil || got != big {
			t.Errorf("%d bytes, %v", len(got), err)
		}
		if got, err := c.read(t, "a/made"); err != nil || got != "made\n" {
			t.Errorf("%q, %v", got, err)
		}
		e, err := c.files.EditFile(t.Context(), &sandboxv1.EditFileRequest{Call: c.call(), Path: "a/made", Edits: []*sandboxv1.Edit{{OldText: "made", NewText: "edited"}}})
		if err != nil || e.GetSnippet() != "edited\n" || e.GetSnippetFirstLine() != 1 {
			t.Errorf("%v, %v", e, err)
		}
		if x := c.bash(t, "cat a/made; echo again >> a/made"); x.out != "edited\n" || x.GetExitCode() != 0 {
			t.Errorf("%q %q", x.out, x.err)
		}
	})
}

func TestAChangeIsMadeOncePerCall(t *testing.T) {
	t.Parallel()
	c := open(t, sandbox.LevelBasic)
	if _, err := c.write(t, "f", "one one", nil); err != nil {
		t.Fatal(err)
	}
	edit := &sandboxv1.EditFileRequest{Call: c.call(), Path: "f", Edits: []*sandboxv1.Edit{{OldText: "one", NewText: "one more", ReplaceAll: true}}}
	first, err := c.files.EditFile(t.Context(), edit)
	if err != nil {
		t.Fatal(err)
	}
	again, err := c.files.EditFile(t.Context(), edit)
	if d := cmp.Diff(first, again, protocmp.Transform()); d != "" || err != nil {
		t.Errorf("%s %v", d, err)
	}
	if got, err := c.read(t, "f"); err != nil || got != "one more one more" {
		t.Errorf("%q, %v", got, err)
	}
	edit.Edits[0].NewText = "other"
	_, err = c.files.EditFile(t.Context(), edit)
	wantReason(t, err, "CALL_ID_REUSED")
	ref := c.call()
	same := func(s *sandboxv1.WriteFileStart) { s.Call, s.CreateOnly = ref, true }
	for range 2 {
		if r, err := c.write(t, "new", "x", same); err != nil || !r.GetCreated() {
			t.Errorf("%v, %v", r, err)
		}
	}
	_, err = c.write(t, "new", "y", same)
	wantReason(t, err, "CALL_ID_REUSED")
	remove := &sandboxv1.DeleteFileRequest{Call: c.call(), Path: "new"}
	for range 2 {
		if _, err := c.files.DeleteFile(t.Context(), remove); err != nil {
			t.Error(err)
		}
	}
	_, err = c.files.DeleteFile(t.Context(), &sandboxv1.DeleteFileRequest{Call: c.call(), Path: "new"})
	wantReason(t, err, "FILE_NOT_FOUND")
}

func TestFileErrorsAreTold(t *testing.T) {
	t.Parallel()
	c := open(t, sandbox.LevelBasic, small)
	c.bash(t, "ln -s /etc/passwd out; mkdir dir; echo x > dir/f; mkfifo fifo")
	_, err := c.read(t, "out")
	wantReason(t, err, "PATH_ESCAPES")
	if status.Code(err) != codes.InvalidArgument {
		t.Errorf("%v", err)
	}
	_, err = c.read(t, "../../x")
	wantReason(t, err, "PATH_ESCAPES")
	_, err = c.read(t, "dir")
	wantReason(t, err, "WRONG_FILE_TYPE")
	_, err = c.read(t, "fifo")
	wantReason(t, err, "WRONG_FILE_TYPE")
	_, err = c.write(t, "dir/f", "y", func(s *sandboxv1.WriteFileStart) { s.CreateOnly = true })
	wantReason(t, err, "FILE_EXISTS")
	_, err = c.write(t, "dir/f", "y", func(s *sandboxv1.WriteFileStart) { s.IfEtag = "old" })
	wantReason(t, err, "ETAG_MISMATCH")
	_, err = c.write(t, "huge", strings.Repeat("x", 17<<20), nil)
	wantReason(t, err, "WORKSPACE_FULL")
	_, err = c.files.DeleteFile(t.Context(), &sandboxv1.DeleteFileRequest{Call: c.call(), Path: "dir"})
	wantReason(t, err, "DIRECTORY_NOT_EMPTY")
	_, err = c.files.GlobFiles(t.Context(), &sandboxv1.GlobFilesRequest{Session: c.session, Pattern: "["})
	wantReason(t, err, "BAD_PATTERN")
	_, err = c.files.ListFiles(t.Context(), &sandboxv1.ListFilesRequest{Session: c.session, PageToken: "x"})
	wantReason(t, err, "BAD_PAGE_TOKEN")
	edit := func(old string) error {
		_, err := c.files.EditFile(t.Context(), &sandboxv1.EditFileRequest{Call: c.call(), Path: "dir/f", Edits: []*sandboxv1.Edit{
			{OldText: "x", NewText: "yy"}, {OldText: old, NewText: "z"},
		}})
		return err
	}
	err = edit("no")
	wantReason(t, err, "EDIT_NO_MATCH")
	if !strings.Contains(apierr.Message(err), "edit 1") {
		t.Errorf("%v", err)
	}
	wantReason(t, edit("y"), "EDIT_NOT_UNIQUE")
	if got, err := c.read(t, "dir/f"); err != nil || got != "x\n" {
		t.Errorf("a failed edit changed the file to %q, %v", got, err)
	}
}

func TestSeedFilesAreOnlyForANewWorkspace(t *testing.T) {
	t.Parallel()
	c := start(t, configuration(t, sandbox.LevelBasic))
	r := &sandboxv1.EnsureWorkspaceRequest{Call: c.call(), SeedFiles: map[string][]byte{"a/b": []byte("seed"), "../x": nil}}
	_, err := c.workspaces.EnsureWorkspace(t.Context(), r)
	wantReason(t, err, "PATH_ESCAPES")
	_, err = c.read(t, "a/b")
	wantReason(t, err, "WORKSPACE_NOT_FOUND")
	delete(r.SeedFiles, "../x")
	for i := range 2 {
		got, err := c.workspaces.EnsureWorkspace(t.Context(), r)
		if err != nil || got.GetCreated() != (i == 0) || got.GetNode() != "here" || got.GetWorkspaceGeneration() != 1 {
			t.Errorf("%v, %v", got, err)
		}
		r.SeedFiles["a/b"] = []byte("later")
	}
	if got, err := c.read(t, "a/b"); err != nil || got != "seed" {
		t.Errorf("%q, %v", got, err)
	}
}

func TestSearchesStream(t *testing.T) {
	t.Parallel()
	c := open(t, sandbox.LevelBasic)
	c.bash(t, "seq 1000 > numbers; mkdir d; seq 5 > d/few")
	stream, err := c.files.GrepFiles(t.Context(), &sandboxv1.GrepFilesRequest{Session: c.session, Pattern: "^[0-9]+$", MaxLines: 900})
	if err != nil {
		t.Fatal(err)
	}
	n, truncated := 0, false
	for {
		m, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		n, truncated = n+len(m.GetMatches()), m.GetTruncated()
	}
	if n != 900 || !truncated {
		t.Errorf("%d lines, truncated %v", n, truncated)
	}
	lines, err := c.files.ReadFile(t.Context(), &sandboxv1.ReadFileRequest{
		Session: c.session, Path: "numbers", Range: &sandboxv1.ReadFileRequest_Lines{Lines: &sandboxv1.LineRange{First: 999, Count: 1}},
	})
	if err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	var end *sandboxv1.ReadFileEnd
	for {
		m, err := lines.Recv()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		text.Write(m.GetData())
		if m.GetEnd() != nil {
			end = m.GetEnd()
		}
	}
	if text.String() != "999\n" || end.GetLines() != 1 || !end.GetMore() {
		t.Errorf("%q, %v", text.String(), end)
	}
}

func TestAMoveIsMadeOnceAndWatchersAreTold(t *testing.T) {
	t.Parallel()
	c := open(t, sandbox.LevelBasic)
	if _, err := c.write(t, "old", "text", nil); err != nil {
		t.Fatal(err)
	}
	watch, err := c.files.WatchFiles(t.Context(), &sandboxv1.WatchFilesRequest{Session: c.session})
	if err != nil {
		t.Fatal(err)
	}
	if begun, err := watch.Recv(); err != nil || len(begun.GetChanges()) != 0 {
		t.Fatalf("%v, %v", begun, err)
	}
	move := &sandboxv1.MoveFileRequest{Call: c.call(), Path: "old", NewPath: "a/new"}
	first, err := c.files.MoveFile(t.Context(), move)
	if err != nil {
		t.Fatal(err)
	}
	again, err := c.files.MoveFile(t.Context(), move)
	if d := cmp.Diff(first, again, protocmp.Transform()); d != "" || err != nil {
		t.Errorf("%s %v", d, err)
	}
	if got, err := c.read(t, "a/new"); err != nil || got != "text" {
		t.Errorf("%q, %v", got, err)
	}
	_, err = c.files.MoveFile(t.Context(), &sandboxv1.MoveFileRequest{Call: c.call(), Path: "old", NewPath: "b"})
	wantReason(t, err, "FILE_NOT_FOUND")
	want := map[string]sandboxv1.WatchedChangeKind{
		"old": sandboxv1.WatchedChangeKind_WATCHED_CHANGE_KIND_DELETED, "a/new": sandboxv1.WatchedChangeKind_WATCHED_CHANGE_KIND_CREATED,
	}
	for len(want) > 0 {
		r, err := watch.Recv()
		if err != nil {
			t.Fatalf("%v, still to come: %v", err, want)
		}
		for _, change := range r.GetChanges() {
			if want[change.GetPath()] == change.GetKind() {
				delete(want, change.GetPath())
			}
		}
	}
}

// A folder may come with more in it than fits into one message.
func TestAWatchTellsOfAFolderWithManyFiles(t *testing.T) {
	t.Parallel()
	c := open(t, sandbox.LevelBasic)
	const files = 5000
	long := strings.Repeat(strings.Repeat("n", 250)+"/", 14)
	c.bash(t, fmt.Sprintf("mkdir -p watched here/%[1]s; cd here/%[1]s; for i in {1..%[2]d}; do : > $i; done", long, files))
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	stream, err := c.files.WatchFiles(ctx, &sandboxv1.WatchFilesRequest{Session: c.session, Path: "watched"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := stream.Recv(); err != nil {
		t.Fatal(err)
	}
	c.bash(t, "mv here watched/")
	for told := 0; told < files+15; {
		m, err := stream.Recv()
		if err != nil {
			t.Fatalf("after %d: %v", told, err)
		}
		told += len(m.GetChanges())
	}
}

// Names may be long, and a page of them more than fits into one message.
func TestAPageIsNoLargerThanAMessage(t *testing.T) {
	t.Parallel()
	c := open(t, sandbox.LevelBasic)
	const many = 2500 // of 3,500 bytes each
	long := strings.Repeat(strings.Repeat("n", 250)+"/", 14)
	c.bash(t, fmt.Sprintf("mkdir -p %[1]s; cd %[1]s; for i in {1..%[2]d}; do : > $i; done", long, many))
	told := 0
	for token := ""; ; {
		r, err := c.files.ListFiles(t.Context(), &sandboxv1.ListFilesRequest{Session: c.session, Path: long, PageSize: 10_000, PageToken: token})
		if err != nil {
			t.Fatal(err)
		}
		told += len(r.GetFiles())
		if token = r.GetNextPageToken(); token == "" {
			break
		}
	}
	if told != many {
		t.Errorf("told of %d", told)
	}
	if r, err := c.files.GlobFiles(t.Context(), &sandboxv1.GlobFilesRequest{Session: c.session, Pattern: "*", Path: long, MaxResults: 10_000}); err != nil || !r.GetTruncated() {
		t.Errorf("%v, %v", r.GetTruncated(), err)
	}
}
