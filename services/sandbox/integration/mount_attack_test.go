package integration

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	sandboxv1 "github.com/fairlead/fairlead/gen/go/fairlead/sandbox/v1"
	"github.com/fairlead/fairlead/services/internal/kit/principal"
	"github.com/fairlead/fairlead/services/sandbox"
	"github.com/fairlead/fairlead/services/sandbox/internal/mount"
)

func TestAMountThatShowsTooMuchIsRefusedAtTheStart(t *testing.T) {
	t.Parallel()
	dir := sources(t, "books")
	if err := os.Symlink("books", dir+"/link"); err != nil {
		t.Fatal(err)
	}
	var config net.ListenConfig
	l, err := config.Listen(t.Context(), "unix", filepath.Join(dir, "s"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	for _, x := range []struct {
		name string
		rule mount.Rule
		want string
	}{
		{"a link", mount.Rule{Source: dir + "/link", Alias: "x"}, "is a link"},
		{"a folder behind a link", mount.Rule{Source: dir + "/link/sub", Alias: "x"}, "is a link"},
		{"a path that is not clean", mount.Rule{Source: dir + "/books/../books", Alias: "x"}, "clean path"},
		{"the root", mount.Rule{Source: "/", Alias: "x"}, "below /"},
		{"processes", mount.Rule{Source: "/proc", Alias: "x"}, "would show /proc"},
		{"services' sockets", mount.Rule{Source: "/run", Alias: "x"}, "would show /run"},
		{"a folder with a socket", mount.Rule{Source: dir, Alias: "x"}, "socket"},
		{"the sandbox's programs", mount.Rule{Source: dir + "/books", Original: true, Alias: "workflows"}, "standard folder"},
		{"a standard folder", mount.Rule{Source: dir + "/books", Alias: "repos/x"}, "standard folder"},
		{"the folder that mounts lie in", mount.Rule{Source: dir + "/books", Alias: "mnt"}, "such as mnt/books"},
		{"an alias that leads out", mount.Rule{Source: dir + "/books", Alias: "../x"}, "alias"},
		{"an alias that is absolute", mount.Rule{Source: dir + "/books", Alias: "/x"}, "alias"},
		{"a place of the sandbox's own", mount.Rule{Source: "/usr/share", Original: true}, "/usr"},
		{"no place", mount.Rule{Source: dir + "/books"}, "shown nowhere"},
		{"a place that others would see", mount.Rule{Source: dir + "/books", Alias: "x", For: []string{"default/ann"}}, "all users would see the mount point x"},
		{"a deep place that others would see", mount.Rule{Source: dir + "/books", Alias: "anns/x", For: []string{"default/*"}}, "such as mnt/x"},
		{"an audience without a tenant", mount.Rule{Source: dir + "/books", Alias: "mnt/x", For: []string{"ann"}}, "tenant/user"},
		{"every tenant by a star", mount.Rule{Source: dir + "/books", Alias: "mnt/x", For: []string{"*/ann"}}, "tenant/user"},
	} {
		t.Run(x.name, func(t *testing.T) {
			x.rule.Name = "x"
			c := configuration(t, sandbox.LevelBasic)
			c.Mounts = []mount.Rule{x.rule}
			s, err := sandbox.New(t.Context(), c, sandbox.Deps{Log: discard()})
			if err == nil {
				_ = s.Close()
			}
			if err == nil || !strings.Contains(err.Error(), x.want) {
				t.Errorf("got %v, want %q", err, x.want)
			}
		})
	}
	for _, x := range []struct {
		name  string
		rules []mount.Rule
		want  string
	}{
		{"a private mount shows a folder that all users see", []mount.Rule{{Name: "x", Source: "/usr/share", Alias: "mnt/x", For: []string{"default/ann"}}}, "all users see"},
		{"what others get is one's own", []mount.Rule{
			{Name: "x", Source: dir + "/books", Alias: "mnt/x", For: []string{"default/ann"}}, {Name: "y", Source: dir, Alias: "mnt/y", For: []string{"default/*"}},
		}, "mount x is not for all users of mount y"},
		{"what a tenant's workflows show is one's own", []mount.Rule{{Name: "x", Source: dir + "/books", Alias: "mnt/x", For: []string{"default/ann"}}}, "all users see"},
	} {
		t.Run(x.name, func(t *testing.T) {
			if err := os.RemoveAll(filepath.Join(dir, "s")); err != nil { // the socket
				t.Fatal(err)
			}
			c := configuration(t, sandbox.LevelBasic)
			c.Mounts = x.rules
			if strings.Contains(x.name, "workflows") {
				c.Workflows = dir + "/{tenant}"
			}
			s, err := sandbox.New(t.Context(), c, sandbox.Deps{Log: discard()})
			if err == nil {
				_ = s.Close()
			}
			if err == nil || !strings.Contains(err.Error(), x.want) {
				t.Errorf("got %v, want %q", err, x.want)
			}
		})
	}
	t.Run("the data directory", func(t *testing.T) {
		c := configuration(t, sandbox.LevelBasic)
		c.Mounts = []mount.Rule{{Name: "x", Source: filepath.Dir(c.Data), Alias: "x"}}
		if _, err := sandbox.New(t.Context(), c, sandbox.Deps{Log: discard()}); err == nil || !strings.Contains(err.Error(), "service's own") {
			t.Error(err)
		}
	})
}

// as makes requests a user's.
func as(ctx context.Context, user string) context.Context {
	return principal.With(ctx, principal.Service("default", user))
}

// says runs a script as a user.
func (c *client) says(t *testing.T, user, script string) result {
	t.Helper()
	r, err := c.exec(as(t.Context(), user), script, nil)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// privateMounts are two of ann's, of which she gets one when she asks for it.
func privateMounts(dir string) []mount.Rule {
	return []mount.Rule{
		{Name: "private", Source: dir + "/private", Alias: "mnt/private", For: []string{"default/ann"}},
		{Name: "wanted", Source: dir + "/wanted", Alias: "mnt/deep/wanted", For: []string{"default/ann"}, OnRequest: true},
	}
}

func TestWhoeverIsNotMeantSeesNothingOfAMount(t *testing.T) {
	t.Parallel()
	eachDriver(t, func(t *testing.T, d driver) {
		dir := sources(t, "private", "wanted")
		c := d.start(t, func(c *sandbox.Config) {
			c.Mounts = privateMounts(dir)
			c.Env = []mount.Variable{{Name: "MINE", Value: "for ann", For: []string{"default/ann"}}, {Name: "MINE", Value: "for all"}}
		})
		ask := func(user string, names ...string) error {
			_, err := c.workspaces.EnsureWorkspace(as(t.Context(), user), &sandboxv1.EnsureWorkspaceRequest{Call: c.call(), Mounts: asking(names...)})
			return err
		}
		if err := ask("ann", "wanted"); err != nil {
			t.Fatal(err)
		}
		if r := c.says(t, "ann", "cat mnt/private/file mnt/deep/wanted/file; echo $MINE"); r.out != "private\nwanted\nfor ann\n" {
			t.Errorf("ann sees %q, %s", r.out, r.err)
		}
		other := *c
		other.session = "sessions/two"
		c = &other
		wantReason(t, ask("bob", "wanted"), "MOUNT_NOT_FOUND")
		hidden, missing := ask("bob", "wanted"), ask("bob", "nothing")
		if strings.ReplaceAll(hidden.Error(), "wanted", "nothing") != missing.Error() {
			t.Errorf("%v is told from %v", hidden, missing)
		}
		if err := ask("bob"); err != nil {
			t.Fatal(err)
		}
		if r := c.says(t, "bob", "cat /proc/self/mountinfo; ls -AR; echo $MINE"); strings.Contains(r.out, "private") || strings.Contains(r.out, "wanted") || !strings.Contains(r.out, "for all") {
			t.Errorf("bob sees %q", r.out)
		}
		got, err := c.workspaces.GetCapabilities(as(t.Context(), "bob"), &sandboxv1.GetCapabilitiesRequest{})
		if err != nil || len(got.GetMounts()) != 1 || got.GetMounts()[0].GetName() != "workflows" || strings.Join(got.GetEnvironment(), " ") != "MINE" {
			t.Errorf("bob is told %v, %v", got, err)
		}
	})
}

// looks is all that a user finds out about a session: what commands and the file API show, and what
// becomes of changes where another user may have a mount.
func (c *client) looks(t *testing.T, user string) string {
	t.Helper()
	ctx := as(t.Context(), user)
	var all strings.Builder
	tell := func(what string, answer any, err error) { fmt.Fprintf(&all, "%s: %v, %v\n", what, answer, err) }
	r := c.says(t, user, `stat -c '%n %F %a %U %h' * mnt; ls -AR; mkdir mnt/private; rmdir mnt; mv mnt x; cat mnt/private/file; touch mnt/x; ls /tmp; cut -d' ' -f5,6 /proc/self/mountinfo`)
	tell("a command", r.out, errors.New(r.err))
	list, err := c.files.ListFiles(ctx, &sandboxv1.ListFilesRequest{Session: c.session, Path: "mnt"})
	tell("a list", list.GetFiles(), err)
	for _, name := range []string{"mnt/private", "mnt/private/file", "mnt/other"} {
		_, err := c.files.StatFile(ctx, &sandboxv1.StatFileRequest{Session: c.session, Path: name})
		tell("looking at "+name, nil, err)
		_, err = c.files.DeleteFile(ctx, &sandboxv1.DeleteFileRequest{Call: c.call(), Path: name, Recursive: true})
		tell("deleting "+name, nil, err)
		_, err = c.files.MoveFile(ctx, &sandboxv1.MoveFileRequest{Call: c.call(), Path: name, NewPath: "away"})
		tell("moving "+name, nil, err)
		_, err = c.files.MoveFile(ctx, &sandboxv1.MoveFileRequest{Call: c.call(), Path: "repos", NewPath: name})
		tell("moving onto "+name, nil, err)
	}
	glob, err := c.files.GlobFiles(ctx, &sandboxv1.GlobFilesRequest{Session: c.session, Pattern: "**"})
	for _, f := range glob.GetFiles() {
		tell("a pattern", f.GetPath(), err)
	}
	return all.String()
}

// A user who shares a session with the owner of a private mount sees the same as without the mount,
// before its first use and afterwards, also in copies of the workspace.
func TestWhoSharesASessionLearnsNothingOfTheMountsOfOthers(t *testing.T) {
	t.Parallel()
	eachDriver(t, func(t *testing.T, d driver) {
		dir := sources(t, "private", "wanted")
		c := d.start(t, func(c *sandbox.Config) { c.Mounts = privateMounts(dir) })
		before := c.looks(t, "bob")
		if r := c.says(t, "ann", "cat mnt/private/file; touch /tmp/anns"); r.out != "private\n" {
			t.Fatalf("ann sees %q, %s", r.out, r.err)
		}
		if after := c.looks(t, "bob"); after != before {
			t.Errorf("bob finds\n%s\nand found before\n%s", after, before)
		}
		if r := c.says(t, "ann", "ls mnt; cat mnt/private/file"); r.out != "private\nprivate\n" {
			t.Errorf("after that ann sees %q, %s", r.out, r.err)
		}
		got, err := c.files.ListFiles(as(t.Context(), "ann"), &sandboxv1.ListFilesRequest{Session: c.session, Path: "mnt"})
		if err != nil || len(got.GetFiles()) != 1 || got.GetFiles()[0].GetPath() != "mnt/private" {
			t.Errorf("ann lists %v, %v", got, err)
		}
		if archive := c.exported(t); strings.Contains(archive, "private") {
			t.Error("the export has the place of ann's mount")
		}
	})
}

// A workspace does not reveal whether another user has a private mount on the machine.
func TestAWorkspaceIsTheSameWhetherAnybodyHasAMountOfOnesOwnOrNot(t *testing.T) {
	t.Parallel()
	eachDriver(t, func(t *testing.T, d driver) {
		dir := sources(t, "private", "wanted")
		find := func(mounts []mount.Rule) string {
			c := d.start(t, func(c *sandbox.Config) { c.Mounts = mounts })
			defer c.stop()
			var all strings.Builder
			all.WriteString(c.looks(t, "bob"))
			kept := c.snapshot(t, c.call())
			fmt.Fprintf(&all, "a snapshot has %d files, %d folders, %d links\n", kept.GetFiles(), kept.GetDirectories(), kept.GetLinks())
			in := tar.NewReader(strings.NewReader(c.exported(t)))
			for h, err := in.Next(); err == nil; h, err = in.Next() {
				fmt.Fprintf(&all, "an export has %s %o\n", h.Name, h.Mode)
			}
			return all.String()
		}
		without, with := find(nil), find(privateMounts(dir))
		if without != with {
			t.Errorf("without private mounts bob finds\n%s\nand with them\n%s", without, with)
		}
	})
}

// Users of a tenant share sandboxes unless one of them has a private mount.
func TestThatCommandsRunBesideEachOtherTellsNothingOfAnotherTenantsMounts(t *testing.T) {
	t.Parallel()
	eachDriver(t, func(t *testing.T, d driver) {
		dir := sources(t, "private")
		c := d.start(t, func(c *sandbox.Config) {
			c.Mounts = []mount.Rule{{Name: "private", Source: dir + "/private", Alias: "mnt/private", For: []string{"acme/ann"}}}
		})
		c.waits(t, "carl", "touch /tmp/carls", "true", func() {
			if r := c.says(t, "bob", "ls /tmp"); r.out != "carls\n" && d.level != sandbox.LevelBasic && d.name != gVisor {
				t.Errorf("bob finds %q, %s", r.out, r.err)
			}
		})
	})
}

// That commands of two users wait for each other says nothing of what they have.
func TestThatAnotherUsersCommandRunsTellsNothingOfMounts(t *testing.T) {
	t.Parallel()
	eachDriver(t, func(t *testing.T, d driver) {
		dir := sources(t, "private", "wanted")
		c := d.start(t, func(c *sandbox.Config) { c.Mounts = privateMounts(dir) })
		for _, user := range []string{"ann", "carl"} {
			stream := c.launch(as(t.Context(), user), t, &sandboxv1.ExecStart{Call: c.call(), Argv: []string{"cat"}, Stdin: true})
			_, err := c.exec(as(t.Context(), "bob"), "true", nil)
			wantReason(t, err, "MOUNTS_IN_USE")
			send(t, stream, &sandboxv1.ExecRequest{Kind: &sandboxv1.ExecRequest_Stdin{Stdin: &sandboxv1.ExecStdin{Close: true}}})
			if _, err := follow(stream); err != nil {
				t.Fatal(err)
			}
		}
	})
}

func TestStorageOutlivesSessionsAndIsBounded(t *testing.T) {
	t.Parallel()
	eachDriver(t, func(t *testing.T, d driver) {
		c := d.start(t, func(c *sandbox.Config) {
			c.Storage = sandbox.Storage{Alias: "storage", Bytes: 1 << 20, Inodes: 100}
		})
		c.says(t, "ann", "echo kept >storage/note")
		if _, err := c.workspaces.DeleteWorkspace(t.Context(), &sandboxv1.DeleteWorkspaceRequest{Session: c.session}); err != nil {
			t.Fatal(err)
		}
		c.session = "sessions/two"
		c.ensure(as(t.Context(), "ann"), t)
		if r := c.says(t, "ann", "cat storage/note; stat -c %u storage/note"); r.out != "kept\n1000\n" {
			t.Errorf("ann finds %q, %s", r.out, r.err)
		}
		if r := c.says(t, "bob", "ls -A storage"); r.out != "" {
			t.Errorf("bob finds %q", r.out)
		}
		r := c.says(t, "ann", "head -c 3000000 /dev/zero >storage/large; sleep 20")
		if r.GetReason() != sandboxv1.ExitReason_EXIT_REASON_WORKSPACE_LIMIT || !strings.Contains(r.GetMessage(), "mount storage is too large") {
			t.Errorf("too much ends with %v", r.ExecExited)
		}
		// However much is too much, a command may make room, and take its time for that.
		c.says(t, "ann", "head -c 8000000 /dev/zero >storage/larger")
		if r := c.says(t, "ann", "sleep 1; rm storage/large*; echo room"); r.out != "room\n" || r.hits() != "" {
			t.Errorf("who makes room ends with %v", r.ExecExited)
		}
		if _, err := c.workspaces.DeleteUserStorage(as(t.Context(), "ann"), &sandboxv1.DeleteUserStorageRequest{}); err != nil {
			t.Fatal(err)
		}
		if r := c.says(t, "ann", "ls -A storage; echo again >storage/x; cat storage/x"); r.out != "again\n" {
			t.Errorf("after the deletion ann finds %q, %s", r.out, r.err)
		}
	})
}

func TestVariablesThatAreReservedAreRefused(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"PATH", "HOME", "LD_PRELOAD", "ld_library_path", "FAIRLEAD_X", "https_proxy", "BASH_ENV", "A-B", "1A", ""} {
		c := configuration(t, sandbox.LevelBasic)
		c.Env = []mount.Variable{{Name: name, Value: "hidden-value"}}
		_, err := sandbox.New(t.Context(), c, sandbox.Deps{Log: discard()})
		if err == nil || strings.Contains(err.Error(), "hidden-value") {
			t.Errorf("%q: %v", name, err)
		}
	}
	c := open(t, sandbox.LevelBasic)
	_, err := c.workspaces.EnsureWorkspace(t.Context(), &sandboxv1.EnsureWorkspaceRequest{
		Call: c.call(), Environment: &sandboxv1.WorkspaceEnvironment{Variables: map[string]string{"LD_PRELOAD": "x"}},
	})
	wantReason(t, err, "INVALID_REQUEST")
	_, err = c.workspaces.EnsureWorkspace(as(t.Context(), "ann"), &sandboxv1.EnsureWorkspaceRequest{
		Call: c.call(), Environment: &sandboxv1.WorkspaceEnvironment{Variables: map[string]string{"TOKEN": "of ann"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	if r := c.says(t, "ann", "echo $TOKEN"); r.out != "of ann\n" {
		t.Errorf("ann has %q", r.out)
	}
	if r := c.says(t, "bob", "echo $TOKEN"); r.out != "\n" {
		t.Errorf("bob has %q", r.out)
	}
}

// The name of an object store's folder may be escaped in its URL.
func TestAnObjectStoreIsNotShownHoweverItIsNamed(t *testing.T) {
	t.Parallel()
	dir := sources(t, "my objects")
	c := configuration(t, sandbox.LevelBasic)
	c.ObjectStore.URL = "file://" + strings.ReplaceAll(dir, " ", "%20") + "/my%20objects"
	c.Mounts = []mount.Rule{{Name: "x", Source: dir + "/my objects", Alias: "x"}}
	s, err := sandbox.New(t.Context(), c, sandbox.Deps{Log: discard()})
	if err == nil {
		_ = s.Close()
	}
	if err == nil || !strings.Contains(err.Error(), "the service's own") {
		t.Errorf("got %v", err)
	}
}
