package integration

import (
	"archive/tar"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	sandboxv1 "github.com/fairlead/fairlead/gen/go/fairlead/sandbox/v1"
	"github.com/fairlead/fairlead/services/internal/kit/principal"
	"github.com/fairlead/fairlead/services/sandbox"
	"github.com/fairlead/fairlead/services/sandbox/internal/mount"
)

// waits has a user's command stand still in the midst, and says what it printed afterwards.
func (c *client) waits(t *testing.T, user, before, script string, meanwhile func()) string {
	t.Helper()
	stream := c.launch(as(t.Context(), user), t, &sandboxv1.ExecStart{Call: c.call(), Argv: []string{"bash", "-c", before + "; echo ready; read x; " + script}, Stdin: true})
	for said := ""; !strings.Contains(said, "ready\n"); {
		m, err := stream.Recv()
		if err != nil {
			t.Fatal(err)
		}
		said += string(m.GetStdout().GetData())
	}
	meanwhile()
	send(t, stream, &sandboxv1.ExecRequest{Kind: &sandboxv1.ExecRequest_Stdin{Stdin: &sandboxv1.ExecStdin{Data: []byte("\n"), Close: true}}})
	r, err := follow(stream)
	if err != nil {
		t.Fatal(err)
	}
	return r.out + r.err
}

// kept is a service by the driver, with a workspace, which lies in dir, and how to start it again
// with other mounts.
func (d driver) kept(t *testing.T) (c *client, dir string, again func(mounts []mount.Rule) *client) {
	t.Helper()
	cfg := configuration(t, d.level)
	if d.open != nil {
		d.open(&cfg)
	}
	c = start(t, cfg)
	c.ensure(t.Context(), t)
	return c, filepath.Join(cfg.Data, "default", "one", "workspace"), func(mounts []mount.Rule) *client {
		c.stop()
		cfg.Mounts = mounts
		next := start(t, cfg)
		next.calls = c.calls
		return next
	}
}

// asksToWrite writes a file as a user.
func (c *client) asksToWrite(t *testing.T, user, name, content string) error {
	t.Helper()
	stream, err := c.files.WriteFile(as(t.Context(), user))
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range []*sandboxv1.WriteFileRequest{
		{Kind: &sandboxv1.WriteFileRequest_Start{Start: &sandboxv1.WriteFileStart{Call: c.call(), Path: name}}},
		{Kind: &sandboxv1.WriteFileRequest_Data{Data: []byte(content)}},
	} {
		if stream.Send(r) != nil {
			break // the answer says why
		}
	}
	_, err = stream.CloseAndRecv()
	return err
}

// sharedMount is one of ann's that she may write to.
func sharedMount(dir string) []mount.Rule {
	return []mount.Rule{{Name: "private", Source: dir + "/private", Alias: "mnt/private", Mode: "rw", For: []string{"default/ann"}}}
}

// The kernel takes a mount away from every sandbox when the folder below it goes, and what is then
// written belongs to all users who share the session.
func TestNobodyTakesAMountFromACommandThatRuns(t *testing.T) {
	t.Parallel()
	eachDriver(t, func(t *testing.T, d driver) {
		dir := sources(t, "private")
		c := d.start(t, func(c *sandbox.Config) {
			c.Mounts = sharedMount(dir)
			c.Storage = sandbox.Storage{Alias: "storage", Bytes: 1 << 20, Inodes: 100}
		})
		bob := as(t.Context(), "bob")
		c.says(t, "bob", "rmdir repos && ln -s . repos")
		out := c.waits(t, "ann", "true", "echo secret >mnt/private/notes; echo secret >storage/notes; touch workflows/x", func() {
			for _, at := range []string{"mnt", "storage", "workflows"} {
				_, err := c.repos.RemoveRepository(bob, &sandboxv1.RemoveRepositoryRequest{Call: c.call(), Directory: at})
				wantReason(t, err, "MOUNT_POINT")
			}
		})
		if !strings.Contains(out, "Read-only file system") {
			t.Errorf("workflows can be changed: %q", out)
		}
		if raw, err := os.ReadFile(dir + "/private/notes"); err != nil || string(raw) != "secret\n" {
			t.Errorf("in ann's source is %q, %v", raw, err)
		}
		if strings.Contains(c.exported(t), "secret") {
			t.Error("what ann wrote to her mounts is in the workspace")
		}
	})
}

// A snapshot may have something else in the place of a mount, and files below it: from before that
// was one.
func TestARestoreLeavesThePlacesOfMountsAsTheyAre(t *testing.T) {
	t.Parallel()
	eachDriver(t, func(t *testing.T, d driver) {
		dir := sources(t, "private")
		c, own, again := d.kept(t)
		c.bash(t, "echo one >f")
		put := func(content string, at ...string) *sandboxv1.Snapshot {
			err := errors.Join(os.RemoveAll(filepath.Join(own, "mnt")), os.MkdirAll(filepath.Dir(filepath.Join(at...)), 0o755), os.WriteFile(filepath.Join(at...), []byte(content), 0o644))
			if err != nil {
				t.Fatal(err)
			}
			return c.snapshot(t, c.call())
		}
		file := put("a file\n", own, "mnt")
		folder := put("below\n", own, "mnt", "below")
		c = again(sharedMount(dir))
		for _, id := range []string{file.GetId(), folder.GetId()} {
			out := c.waits(t, "ann", "true", "echo secret >mnt/private/notes; cat f", func() {
				if err := c.asksToWrite(t, "bob", "f", "two\n"); err != nil {
					t.Error(err)
				}
				c.restore(t, id)
				if err := c.asksToWrite(t, "bob", "mnt/private/x", "x"); err == nil {
					t.Error("bob writes where ann's mount is")
				}
			})
			if out != "one\n" {
				t.Errorf("ann's command says %q", out)
			}
			if r := c.says(t, "bob", "ls -A mnt; ln -sfn mnt around; ls -A around; cat mnt.aside mnt.aside/below 2>/dev/null"); r.out != map[string]string{file.GetId(): "a file\n", folder.GetId(): "below\n"}[id] {
				t.Errorf("bob finds %q", r.out)
			}
		}
		if got := c.exported(t); strings.Contains(got, "secret") {
			t.Error("what ann wrote to her mount is in the workspace")
		}
	})
}

// Whether a command has run before decides nothing.
func TestAFileGoesToTheMountAlsoBeforeItWasEverShown(t *testing.T) {
	t.Parallel()
	eachDriver(t, func(t *testing.T, d driver) {
		dir := sources(t, "private")
		c, _, again := d.kept(t)
		c.bash(t, "true")
		c = again(sharedMount(dir))
		if err := c.asksToWrite(t, "ann", "mnt/private/notes", "secret\n"); err != nil {
			t.Fatal(err)
		}
		if raw, err := os.ReadFile(dir + "/private/notes"); err != nil || string(raw) != "secret\n" {
			t.Errorf("in ann's source is %q, %v", raw, err)
		}
		if r := c.says(t, "bob", "ln -s mnt around; ls -AR mnt around/"); strings.Contains(r.out, "private") {
			t.Errorf("bob finds %q", r.out)
		}
	})
}

// What is in the workspace where mounts are to lie is not hidden, but has another name.
func TestWhatLiesWhereMountsAreToLieIsSetAside(t *testing.T) {
	t.Parallel()
	eachDriver(t, func(t *testing.T, d driver) {
		dir := sources(t, "private")
		c := d.start(t, func(c *sandbox.Config) { c.Mounts = sharedMount(dir) })
		for session, entry := range map[string]tar.Header{
			"sessions/folder": {Name: "mnt/thesis", Typeflag: tar.TypeReg, Mode: 0o644},
			"sessions/file":   {Name: "mnt", Typeflag: tar.TypeReg, Mode: 0o644},
			"sessions/link":   {Name: "mnt", Typeflag: tar.TypeSymlink, Linkname: "/etc"},
		} {
			one := *c
			one.session = session
			if _, err := one.importing(t, "import", packed(t, entry)); err != nil {
				t.Fatal(err)
			}
			one.restore(t, one.snapshot(t, one.call()).GetId())
			if r := one.says(t, "bob", "ls -A mnt; ls -d mnt.aside"); r.out != "mnt.aside\n" {
				t.Errorf("%s: bob finds %q, %s", session, r.out, r.err)
			}
			if r := one.says(t, "ann", "cat mnt/private/file"); r.out != "private\n" {
				t.Errorf("%s: ann finds %q, %s", session, r.out, r.err)
			}
		}
	})
}

// Who has a folder open in common with another sandbox can leave signs there.
func TestNoSandboxHasACoverInCommonWithAnother(t *testing.T) {
	t.Parallel()
	test := func(t *testing.T, c *client) {
		eve := principal.With(t.Context(), principal.Service("other", "eve"))
		other := *c
		other.session = "sessions/two"
		other.ensure(eve, t)
		const lock = "exec 9<mnt; flock -n 9 && echo locked"
		out := c.waits(t, "bob", lock, "echo done", func() {
			if r, err := other.exec(eve, lock, nil); err != nil || r.out != "locked\n" {
				t.Errorf("eve says %q, %s, %v", r.out, r.err, err)
			}
		})
		if out != "done\n" {
			t.Errorf("bob's command says %q", out)
		}
	}
	eachDriver(t, func(t *testing.T, d driver) {
		dir := sources(t, "private")
		test(t, d.start(t, func(c *sandbox.Config) { c.Mounts = sharedMount(dir) }))
	})
	t.Run("pod", func(t *testing.T) {
		dir, change := sources(t, "private"), pods(t)
		test(t, open(t, sandbox.LevelAuto, change, func(c *sandbox.Config) {
			c.Mounts = []mount.Rule{{Name: "private", Source: dir + "/private", Alias: "mnt/private", For: []string{"default/ann"}}}
		}))
	})
}
