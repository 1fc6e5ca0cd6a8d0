package integration

import (
	"errors"
	"io"
	"os"
	"strings"
	"testing"

	sandboxv1 "github.com/fairlead/fairlead/gen/go/fairlead/sandbox/v1"
	"github.com/fairlead/fairlead/services/sandbox"
	"github.com/fairlead/fairlead/services/sandbox/internal/mount"
)

// mounted starts a service with a read-only and a writable mount.
func mounted(t *testing.T, d driver, change ...func(*sandbox.Config)) (c *client, dir string) {
	t.Helper()
	dir = sources(t, "books", "shared")
	change = append(change, func(c *sandbox.Config) {
		c.Mounts = append(c.Mounts,
			mount.Rule{Name: "books", Source: dir + "/books", Alias: "mnt/books"},
			mount.Rule{Name: "shared", Source: dir + "/shared", Alias: "shared", Mode: "rw"})
	})
	return d.start(t, change...), dir
}

func TestFilesInMountsAreReadAndWritten(t *testing.T) {
	t.Parallel()
	eachDriver(t, func(t *testing.T, d driver) {
		c, dir := mounted(t, d)
		if got, err := c.read(t, "/workspace/mnt/books/file"); err != nil || got != "books\n" {
			t.Errorf("reading gives %q, %v", got, err)
		}
		w, err := c.write(t, "shared/deep/new", "by the service\n", nil)
		if err != nil || w.GetFile().GetPath() != "shared/deep/new" || !w.GetCreated() {
			t.Fatalf("writing gives %v, %v", w, err)
		}
		if _, err := c.write(t, "shared/deep/new", "again\n", func(s *sandboxv1.WriteFileStart) { s.IfEtag = w.GetFile().GetEtag() }); err != nil {
			t.Error(err)
		}
		if r := c.bash(t, "cat shared/deep/new; echo more >>shared/deep/new; stat -c %u shared/deep shared/deep/new; ls -A shared/deep"); r.out != "again\n1000\n1000\nnew\n" {
			t.Errorf("a command finds %q, %s", r.out, r.err)
		}
		if raw, err := os.ReadFile(dir + "/shared/deep/new"); err != nil || string(raw) != "again\nmore\n" {
			t.Errorf("on the host: %q, %v", raw, err)
		}
		e, err := c.files.EditFile(t.Context(), &sandboxv1.EditFileRequest{Call: c.call(), Path: "shared/deep/new", Edits: []*sandboxv1.Edit{{OldText: "more", NewText: "less"}}})
		if err != nil || e.GetFile().GetPath() != "shared/deep/new" {
			t.Errorf("editing gives %v, %v", e, err)
		}
		m, err := c.files.MoveFile(t.Context(), &sandboxv1.MoveFileRequest{Call: c.call(), Path: "shared/deep/new", NewPath: "shared/moved"})
		if err != nil || m.GetFile().GetPath() != "shared/moved" {
			t.Errorf("moving gives %v, %v", m, err)
		}
		if _, err := c.files.DeleteFile(t.Context(), &sandboxv1.DeleteFileRequest{Call: c.call(), Path: "shared/deep", Recursive: true}); err != nil {
			t.Error(err)
		}
		if got := c.names(t, "shared"); got != "shared/file shared/moved" {
			t.Errorf("the mount holds %s", got)
		}
		if got := c.names(t, ""); got != "artifacts mnt repos shared uploads workflows" {
			t.Errorf("the workspace holds %s", got)
		}
		if got := c.names(t, "mnt"); got != "mnt/books" {
			t.Errorf("mnt holds %s", got)
		}
	})
}

// names are the files of a directory.
func (c *client) names(t *testing.T, name string) string {
	t.Helper()
	r, err := c.files.ListFiles(t.Context(), &sandboxv1.ListFilesRequest{Session: c.session, Path: name})
	if err != nil {
		t.Fatal(err)
	}
	return paths(r.GetFiles())
}

func paths(all []*sandboxv1.FileInfo) string {
	names := make([]string, 0, len(all))
	for _, f := range all {
		names = append(names, f.GetPath())
	}
	return strings.Join(names, " ")
}

func TestSearchesGoIntoMounts(t *testing.T) {
	t.Parallel()
	eachDriver(t, func(t *testing.T, d driver) {
		c, _ := mounted(t, d)
		if _, err := c.write(t, "own", "books too\n", nil); err != nil {
			t.Fatal(err)
		}
		for in, want := range map[string]string{"": "own:1 mnt/books/file:1", "mnt": "mnt/books/file:1", "mnt/books": "mnt/books/file:1", "mnt/books/file": "mnt/books/file:1", "shared": ""} {
			stream, err := c.files.GrepFiles(t.Context(), &sandboxv1.GrepFilesRequest{Session: c.session, Path: in, Pattern: "books"})
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for {
				m, err := stream.Recv()
				if err != nil {
					break
				}
				for _, x := range m.GetMatches() {
					got = append(got, x.GetPath()+":1")
				}
			}
			if strings.Join(got, " ") != want {
				t.Errorf("grep in %q finds %v, want %s", in, got, want)
			}
		}
		for _, x := range []struct{ in, pattern, want string }{
			{"", "**/file", "mnt/books/file shared/file"}, {"", "mnt/*/file", "mnt/books/file"}, {"mnt", "books/*", "mnt/books/file"}, {"shared", "*", "shared/file"},
			{"", "/workspace/shared/*", "shared/file"},
		} {
			r, err := c.files.GlobFiles(t.Context(), &sandboxv1.GlobFilesRequest{Session: c.session, Path: x.in, Pattern: x.pattern})
			if err != nil {
				t.Fatal(err)
			}
			got := paths(r.GetFiles())
			if words := strings.Fields(got); len(words) == 2 && words[0] > words[1] {
				got = words[1] + " " + words[0] // they come by age
			}
			if got != x.want {
				t.Errorf("%s in %q finds %s, want %s", x.pattern, x.in, got, x.want)
			}
		}
	})
}

func TestWhatBelongsToMountsStays(t *testing.T) {
	t.Parallel()
	eachDriver(t, func(t *testing.T, d driver) {
		c, dir := mounted(t, d)
		c.bash(t, "ln -s mnt around; ln -s . here; ln -s ../../../etc shared/out; ln -s /etc shared/absolute; mkdir d; echo x >d/x")
		write := func(name string) func() error {
			return func() error { _, err := c.write(t, name, "x", nil); return err }
		}
		remove := func(name string) func() error {
			return func() error {
				_, err := c.files.DeleteFile(t.Context(), &sandboxv1.DeleteFileRequest{Call: c.call(), Path: name, Recursive: true})
				return err
			}
		}
		move := func(from, to string) func() error {
			return func() error {
				_, err := c.files.MoveFile(t.Context(), &sandboxv1.MoveFileRequest{Call: c.call(), Path: from, NewPath: to, Overwrite: true})
				return err
			}
		}
		for _, x := range []struct {
			name string
			do   func() error
			want string
		}{
			{"writing to a read-only mount", write("mnt/books/x"), "READ_ONLY_MOUNT"},
			{"writing to workflows", write("workflows/x"), "READ_ONLY_MOUNT"},
			{"removing from a read-only mount", remove("mnt/books/file"), "READ_ONLY_MOUNT"},
			{"removing a mount", remove("shared"), "MOUNT_POINT"},
			{"removing what a mount lies in", remove("mnt"), "MOUNT_POINT"},
			{"removing a mount by a link", remove("around/books"), "MOUNT_POINT"},
			{"removing a mount by a link to the workspace", remove("here/shared"), "MOUNT_POINT"},
			{"writing beside a mount", write("mnt/x"), "READ_ONLY_MOUNT"},
			{"writing below a mount by a link", write("here/shared/x"), "MOUNT_POINT"},
			{"making folders below a mount by a link", write("here/shared/a/b"), "MOUNT_POINT"},
			{"moving a mount", move("shared", "other"), "MOUNT_POINT"},
			{"moving what a mount lies in", move("mnt", "other"), "MOUNT_POINT"},
			{"moving over a mount", move("d", "shared"), "MOUNT_POINT"},
			{"moving a mount by a link", move("here/shared", "other"), "MOUNT_POINT"},
			{"moving into a mount", move("d/x", "shared/x"), "WRONG_FILE_TYPE"},
			{"moving out of a mount", move("shared/file", "file"), "WRONG_FILE_TYPE"},
			{"reading out of a mount", func() error { _, err := c.read(t, "shared/out/hostname"); return err }, "PATH_ESCAPES"},
			{"reading out of a mount by an absolute link", func() error { _, err := c.read(t, "shared/absolute/hostname"); return err }, "PATH_ESCAPES"},
			{"reading above a mount", func() error { _, err := c.read(t, "shared/../../x"); return err }, "PATH_ESCAPES"},
			{"writing out of a mount", write("shared/out/x"), "PATH_ESCAPES"},
		} {
			t.Run(x.name, func(t *testing.T) { wantReason(t, x.do(), x.want) })
		}
		if r := c.bash(t, "cat mnt/books/file shared/file; ls mnt"); r.out != "books\nshared\nbooks\n" {
			t.Errorf("after all that a command finds %q, %s", r.out, r.err)
		}
		if _, err := os.Stat(dir + "/books/x"); !os.IsNotExist(err) {
			t.Error(err)
		}
	})
}

func TestTheServiceReadsNoMoreThanCommandsMay(t *testing.T) {
	t.Parallel()
	eachDriver(t, func(t *testing.T, d driver) {
		if os.Getuid() != 0 {
			t.Skip("commands are the service's own user")
		}
		c, dir := mounted(t, d)
		if err := os.WriteFile(dir+"/books/secret", []byte("of the host"), 0o600); err != nil {
			t.Fatal(err)
		}
		if r := c.bash(t, "cat mnt/books/secret"); r.GetExitCode() == 0 {
			t.Errorf("a command reads %q", r.out)
		}
		if got, err := c.read(t, "mnt/books/secret"); err == nil {
			t.Errorf("the service reads %q", got)
		}
	})
}

func TestSnapshotsAndExportsLeaveMountsOut(t *testing.T) {
	t.Parallel()
	eachDriver(t, func(t *testing.T, d driver) {
		c, dir := mounted(t, d)
		c.bash(t, "echo one >own; echo one >shared/new")
		made, err := c.snapshots.CreateSnapshot(t.Context(), &sandboxv1.CreateSnapshotRequest{Call: c.call()})
		if err != nil || made.GetSnapshot().GetFiles() != 1 {
			t.Fatalf("the snapshot is %v, %v", made, err)
		}
		c.bash(t, "echo two >own; echo two >shared/new")
		if _, err := c.snapshots.RestoreSnapshot(t.Context(), &sandboxv1.RestoreSnapshotRequest{Call: c.call(), Snapshot: made.GetSnapshot().GetId()}); err != nil {
			t.Fatal(err)
		}
		if r := c.bash(t, "cat own shared/new mnt/books/file"); r.out != "one\ntwo\nbooks\n" {
			t.Errorf("after a restore: %q, %s", r.out, r.err)
		}
		if _, err := os.Stat(dir + "/shared/new"); err != nil {
			t.Error(err)
		}
		if text := c.exported(t); strings.Contains(text, "books/file") || !strings.Contains(text, "own") {
			t.Error("the archive is not of the workspace alone")
		}
	})
}

// exported is an archive of the session's workspace.
func (c *client) exported(t *testing.T) string {
	t.Helper()
	stream, err := c.workspaces.ExportWorkspace(t.Context(), &sandboxv1.ExportWorkspaceRequest{Session: c.session})
	if err != nil {
		t.Fatal(err)
	}
	var archive strings.Builder
	for {
		m, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return archive.String()
		}
		if err != nil {
			t.Fatal(err)
		}
		archive.Write(m.GetData())
	}
}
