package integration

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	sandboxv1 "github.com/fairlead/fairlead/gen/go/fairlead/sandbox/v1"
	"github.com/fairlead/fairlead/services/sandbox"
)

// treeTar is an archive of a tree with a script and a reference.
func treeTar(t *testing.T, version string) []byte {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, f := range []struct {
		name, text string
		mode       int64
	}{
		{"SKILL.md", "say " + version + "\n", 0o600},
		{"scripts/say.sh", "#!/bin/sh\necho " + version + " $(cat /skills/*/ref/one.md)\n", 0o700},
		{"ref/one.md", "reference\n", 0o644},
	} {
		if err := w.WriteHeader(&tar.Header{Name: f.name, Mode: f.mode, Size: int64(len(f.text)), Typeflag: tar.TypeReg}); err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(w, f.text); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func digestOf(archive []byte) string {
	sum := sha256.Sum256(archive)
	return hex.EncodeToString(sum[:])
}

func (c *client) putTree(t *testing.T, digest string, archive []byte) (*sandboxv1.PutTreeResponse, error) {
	t.Helper()
	stream, err := c.workspaces.PutTree(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	_ = stream.Send(&sandboxv1.PutTreeRequest{Kind: &sandboxv1.PutTreeRequest_Open{Open: &sandboxv1.PutTreeOpen{Digest: digest}}}) // CloseAndRecv tells what went wrong
	for len(archive) > 0 {
		n := min(len(archive), 1000)
		_ = stream.Send(&sandboxv1.PutTreeRequest{Kind: &sandboxv1.PutTreeRequest_Data{Data: archive[:n]}})
		archive = archive[n:]
	}
	return stream.CloseAndRecv()
}

func (c *client) showTrees(t *testing.T, trees ...*sandboxv1.WorkspaceTree) error {
	t.Helper()
	_, err := c.workspaces.EnsureWorkspace(t.Context(), &sandboxv1.EnsureWorkspaceRequest{Call: c.call(), Trees: &sandboxv1.WorkspaceTrees{Trees: trees}})
	return err
}

func TestATreeIsReadAndRunAndNeverWritten(t *testing.T) {
	t.Parallel()
	test := func(t *testing.T, c *client) {
		archive := treeTar(t, "one")
		digest := digestOf(archive)
		say := &sandboxv1.WorkspaceTree{Name: "say", Digest: digest}
		wantReason(t, c.showTrees(t, say), "TREE_NOT_FOUND")
		for i, created := range []bool{true, false} {
			if got, err := c.putTree(t, digest, archive); err != nil || got.GetCreated() != created {
				t.Fatalf("put %d: %v, %v", i, got, err)
			}
		}
		if err := c.showTrees(t, say); err != nil {
			t.Fatal(err)
		}
		r := c.bash(t, "/skills/say/scripts/say.sh; cd /skills/say && cat SKILL.md && ls; ls /skills; stat -c %a scripts/say.sh SKILL.md")
		if want := "one reference\nsay one\nSKILL.md\nref\nscripts\nsay\n755\n644\n"; r.out != want {
			t.Errorf("a command finds %q, want %q; %s", r.out, want, r.err)
		}
		r = c.bash(t, "cd /skills; touch say/new; echo x >>say/SKILL.md; chmod 777 say/SKILL.md; mv say other; rm -r say/ref; rmdir say; mkdir more; ln -s / say/root; mount -o remount,rw /skills/say; umount /skills/say; cat say/SKILL.md say/ref/one.md; ls")
		if want := "say one\nreference\nsay\n"; r.out != want {
			t.Errorf("after all attempts it has %q, want %q; %s", r.out, want, r.err)
		}
		if r := c.bash(t, "find / -xdev -name SKILL.md -path '*workspace*'; ls"); r.out != "artifacts\nmnt\nrepos\nuploads\nworkflows\n" {
			t.Errorf("the workspace holds %q", r.out)
		}
	}
	eachDriver(t, func(t *testing.T, d driver) { test(t, d.start(t)) })
	t.Run("pods", func(t *testing.T) { test(t, open(t, sandbox.LevelAuto, pods(t))) })
}

func TestTheFileRPCsReadBelowATree(t *testing.T) {
	t.Parallel()
	eachDriver(t, func(t *testing.T, d driver) {
		c := d.start(t)
		archive := treeTar(t, "one")
		if _, err := c.putTree(t, digestOf(archive), archive); err != nil {
			t.Fatal(err)
		}
		if err := c.showTrees(t, &sandboxv1.WorkspaceTree{Name: "say", Digest: digestOf(archive)}); err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"/skills/say/ref/one.md", "/skills/say/scripts/../ref/one.md"} {
			if got, err := c.read(t, name); err != nil || got != "reference\n" {
				t.Errorf("reading %s gives %q, %v", name, got, err)
			}
		}
		for dir, want := range map[string]string{
			"/skills": "/skills/say", "/skills/say": "/skills/say/SKILL.md /skills/say/ref /skills/say/scripts", "": "artifacts mnt repos uploads workflows",
		} {
			if got := c.names(t, dir); got != want {
				t.Errorf("%q holds %s, want %s", dir, got, want)
			}
		}
		st, err := c.files.StatFile(t.Context(), &sandboxv1.StatFileRequest{Session: c.session, Path: "/skills/say/SKILL.md"})
		if err != nil || st.GetFile().GetPath() != "/skills/say/SKILL.md" || st.GetFile().GetSize() != 8 {
			t.Errorf("%v, %v", st, err)
		}
		to, err := c.files.ResolvePath(t.Context(), &sandboxv1.ResolvePathRequest{Session: c.session, Path: "/skills/say/./ref/one.md"})
		if err != nil || to.GetPath() != "/skills/say/ref/one.md" {
			t.Errorf("%v, %v", to, err)
		}
		for _, q := range []*sandboxv1.GlobFilesRequest{
			{Pattern: "**/*.md", Path: "/skills"}, {Pattern: "/skills/**/*.md", Path: "/skills"}, {Pattern: "*/*.md", Path: "/skills/say"}, {Pattern: "**/*.md"},
		} {
			q.Session = c.session
			g, err := c.files.GlobFiles(t.Context(), q)
			if err != nil {
				t.Errorf("%v: %v", q, err)
				continue
			}
			if found := paths(g.GetFiles()); strings.Contains(found, "/skills/say/ref/one.md") != (q.GetPath() != "") {
				t.Errorf("%v finds %s", q, found)
			}
		}
		if got := c.grepped(t, "/skills/say", "refer"); got != "/skills/say/ref/one.md /skills/say/scripts/say.sh" && got != "/skills/say/ref/one.md" {
			t.Errorf("a search finds %q", got)
		}
		if got := c.grepped(t, "", "reference"); got != "" {
			t.Errorf("a search of the workspace finds %q", got)
		}
		_, err = c.write(t, "/skills/say/new", "x", nil)
		wantReason(t, err, "READ_ONLY_MOUNT")
		_, err = c.files.EditFile(t.Context(), &sandboxv1.EditFileRequest{Call: c.call(), Path: "/skills/say/SKILL.md", Edits: []*sandboxv1.Edit{{OldText: "say", NewText: "do"}}})
		wantReason(t, err, "READ_ONLY_MOUNT")
		for _, name := range []string{"/skills/say/SKILL.md", "/skills/say", "/skills"} {
			if _, err = c.files.DeleteFile(t.Context(), &sandboxv1.DeleteFileRequest{Call: c.call(), Path: name, Recursive: true}); err == nil {
				t.Errorf("%s was deleted", name)
			}
			if _, err = c.files.MoveFile(t.Context(), &sandboxv1.MoveFileRequest{Call: c.call(), Path: name, NewPath: "mine"}); err == nil {
				t.Errorf("%s was moved", name)
			}
		}
		for _, name := range []string{"/skills/../etc/passwd", "/skillset/x", "/etc/passwd"} {
			_, err = c.read(t, name)
			wantReason(t, err, "PATH_ESCAPES")
		}
		_, err = c.read(t, "/skills/other/x")
		wantReason(t, err, "FILE_NOT_FOUND")
		c.bash(t, "ln -s /skills/say/SKILL.md link; ln -s ../skills/say/SKILL.md other; mkdir skills; echo mine >skills/x")
		for _, name := range []string{"link", "other"} {
			_, err = c.read(t, name)
			wantReason(t, err, "PATH_ESCAPES")
		}
		if got, err := c.read(t, "skills/x"); err != nil || got != "mine\n" {
			t.Errorf("a folder of the workspace with the same name: %q, %v", got, err)
		}
	})
}

// grepped are the files in which a search finds something.
func (c *client) grepped(t *testing.T, dir, pattern string) string {
	t.Helper()
	stream, err := c.files.GrepFiles(t.Context(), &sandboxv1.GrepFilesRequest{Session: c.session, Path: dir, Pattern: pattern, Mode: sandboxv1.GrepMode_GREP_MODE_FILES})
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for {
		m, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return strings.Join(found, " ")
		}
		if err != nil {
			t.Fatal(err)
		}
		for _, x := range m.GetMatches() {
			found = append(found, x.GetPath())
		}
	}
}

func TestPathsBesideTheWorkspaceLeadNowhereWithoutTrees(t *testing.T) {
	t.Parallel()
	c := open(t, sandbox.LevelBasic)
	c.bash(t, "mkdir -p skills/say; echo mine >skills/say/SKILL.md")
	for _, name := range []string{"/skills", "/skills/say/SKILL.md"} {
		_, err := c.read(t, name)
		wantReason(t, err, "PATH_ESCAPES")
		_, err = c.files.ResolvePath(t.Context(), &sandboxv1.ResolvePathRequest{Session: c.session, Path: name})
		wantReason(t, err, "PATH_ESCAPES")
		_, err = c.write(t, name, "x", nil)
		wantReason(t, err, "PATH_ESCAPES")
	}
}

func TestTwoSessionsSeeTwoVersionsOfATree(t *testing.T) {
	t.Parallel()
	atLevel(t, func(t *testing.T, level string) {
		c := open(t, level)
		other := *c
		other.session = "sessions/two"
		other.ensure(t.Context(), t)
		for version, in := range map[string]*client{"one": c, "two": &other} {
			archive := treeTar(t, version)
			if _, err := c.putTree(t, digestOf(archive), archive); err != nil {
				t.Fatal(err)
			}
			if err := in.showTrees(t, &sandboxv1.WorkspaceTree{Name: "say", Digest: digestOf(archive)}); err != nil {
				t.Fatal(err)
			}
		}
		for range 2 {
			if a, b := c.bash(t, "/skills/say/scripts/say.sh"), other.bash(t, "/skills/say/scripts/say.sh"); a.out != "one reference\n" || b.out != "two reference\n" {
				t.Errorf("%q and %q", a.out, b.out)
			}
		}
		two := treeTar(t, "two")
		if err := c.showTrees(t, &sandboxv1.WorkspaceTree{Name: "say", Digest: digestOf(two)}); err != nil {
			t.Fatal(err)
		}
		if r := c.bash(t, "/skills/say/scripts/say.sh"); r.out != "two reference\n" {
			t.Errorf("after the change it says %q", r.out)
		}
		if err := c.showTrees(t); err != nil {
			t.Fatal(err)
		}
		if r := c.bash(t, "ls -A /skills 2>/dev/null"); r.out != "" {
			t.Errorf("without trees there is %q", r.out)
		}
	})
}

func TestATreeSurvivesARestartAndComesBackWhenItIsLost(t *testing.T) {
	t.Parallel()
	cfg := configuration(t, sandbox.LevelBasic)
	c := start(t, cfg)
	c.ensure(t.Context(), t)
	archive := treeTar(t, "one")
	say := &sandboxv1.WorkspaceTree{Name: "say", Digest: digestOf(archive)}
	if _, err := c.putTree(t, say.GetDigest(), archive); err != nil {
		t.Fatal(err)
	}
	if err := c.showTrees(t, say); err != nil {
		t.Fatal(err)
	}
	c.stop()
	if err := os.MkdirAll(filepath.Join(cfg.Data, ".trees", ".new", "half"), 0o700); err != nil {
		t.Fatal(err)
	}
	c = start(t, cfg)
	if r := c.bash(t, "/skills/say/scripts/say.sh"); r.out != "one reference\n" {
		t.Errorf("after a restart: %q %s", r.out, r.err)
	}
	if left, err := os.ReadDir(filepath.Join(cfg.Data, ".trees", ".new")); err != nil || len(left) > 0 {
		t.Errorf("drafts: %v, %v", left, err)
	}
	c.stop()
	if err := os.RemoveAll(filepath.Join(cfg.Data, ".trees")); err != nil {
		t.Fatal(err)
	}
	c = start(t, cfg)
	c.calls.Store(100) // the first ones are taken
	_, err := c.exec(t.Context(), "true", nil)
	wantReason(t, err, "TREE_NOT_FOUND")
	wantReason(t, c.showTrees(t, say), "TREE_NOT_FOUND")
	if _, err := c.putTree(t, say.GetDigest(), archive); err != nil {
		t.Fatal(err)
	}
	if err := c.showTrees(t, say); err != nil {
		t.Fatal(err)
	}
	if r := c.bash(t, "/skills/say/scripts/say.sh"); r.out != "one reference\n" {
		t.Errorf("after it came back: %q %s", r.out, r.err)
	}
}

func TestATreeThatCannotBeIsRefused(t *testing.T) {
	t.Parallel()
	c := open(t, sandbox.LevelBasic, func(c *sandbox.Config) { c.Trees.TreeBytes, c.Trees.TreeFiles = 1<<20, 20 })
	good := treeTar(t, "one")
	many := make([]tar.Header, 21)
	for i := range many {
		many[i] = tar.Header{Name: "f" + string(rune('a'+i)), Typeflag: tar.TypeReg}
	}
	for name, archive := range map[string][]byte{
		"a link":              packed(t, tar.Header{Name: "a", Typeflag: tar.TypeSymlink, Linkname: "b"}),
		"a link to the host":  packed(t, tar.Header{Name: "a", Typeflag: tar.TypeSymlink, Linkname: "/etc"}),
		"a hard link":         packed(t, tar.Header{Name: "a", Typeflag: tar.TypeLink, Linkname: "b"}),
		"a device":            packed(t, tar.Header{Name: "a", Typeflag: tar.TypeChar, Devmajor: 1, Devminor: 3}),
		"a pipe":              packed(t, tar.Header{Name: "a", Typeflag: tar.TypeFifo}),
		"a path that goes up": packed(t, tar.Header{Name: "../a", Typeflag: tar.TypeReg, Size: 4}),
		"an absolute path":    packed(t, tar.Header{Name: "/a", Typeflag: tar.TypeReg, Size: 4}),
		"too large a file":    packed(t, tar.Header{Name: "a", Typeflag: tar.TypeReg, Size: 1<<20 + 1}),
		"too many files":      packed(t, many...),
		"too deep a folder":   packed(t, tar.Header{Name: strings.Repeat("d/", 30) + "f", Typeflag: tar.TypeReg}),
		"a cut archive":       good[:len(good)-1024],
		"no archive":          []byte("hello"),
		"nothing":             nil,
	} {
		_, err := c.putTree(t, digestOf(archive), archive)
		if wantReason(t, err, "BAD_ARCHIVE"); status.Code(err) != codes.InvalidArgument {
			t.Errorf("%s: %v", name, err)
		}
	}
	_, err := c.putTree(t, digestOf([]byte("another")), good)
	wantReason(t, err, "BAD_ARCHIVE")
	if _, err := c.putTree(t, digestOf(good), good); err != nil {
		t.Errorf("a good one afterwards: %v", err)
	}
}

func TestTreesTakeNoMoreRoomThanTheyMay(t *testing.T) {
	t.Parallel()
	c := open(t, sandbox.LevelBasic, func(c *sandbox.Config) { c.Trees.Count = 2 })
	for _, version := range []string{"one", "two"} {
		archive := treeTar(t, version)
		if _, err := c.putTree(t, digestOf(archive), archive); err != nil {
			t.Fatal(err)
		}
	}
	three := treeTar(t, "three")
	_, err := c.putTree(t, digestOf(three), three)
	if wantReason(t, err, "TREES_FULL"); status.Code(err) != codes.ResourceExhausted {
		t.Error(err)
	}
}

func TestWithoutIsolationThereAreNoTrees(t *testing.T) {
	t.Parallel()
	c := open(t, sandbox.LevelAuto, func(c *sandbox.Config) { c.Driver, c.NoIsolation = sandbox.DriverNone, true })
	archive := treeTar(t, "one")
	_, err := c.putTree(t, digestOf(archive), archive)
	wantReason(t, err, "TREES_UNAVAILABLE")
	wantReason(t, c.showTrees(t, &sandboxv1.WorkspaceTree{Name: "say", Digest: digestOf(archive)}), "TREES_UNAVAILABLE")
}
