package integration

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	commonv1 "github.com/fairlead/fairlead/gen/go/fairlead/common/v1"
	sandboxv1 "github.com/fairlead/fairlead/gen/go/fairlead/sandbox/v1"
	"github.com/fairlead/fairlead/services/sandbox"
	"github.com/fairlead/fairlead/services/sandbox/internal/mount"
)

// sources makes folders of the host to show, each with one file. Writable ones
// belong to a user of their own, where there can be one.
func sources(t *testing.T, names ...string) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for d := dir; d != os.TempDir() && d != "/"; d = filepath.Dir(d) {
		if err := os.Chmod(d, 0o755); err != nil {
			break
		}
	}
	for _, name := range names {
		at := filepath.Join(dir, name)
		if err := errors.Join(os.Mkdir(at, 0o755), os.WriteFile(filepath.Join(at, "file"), []byte(name+"\n"), 0o644)); err != nil {
			t.Fatal(err)
		}
		if os.Getuid() == 0 {
			if err := errors.Join(os.Chown(at, 4001, 4001), os.Chown(filepath.Join(at, "file"), 4001, 4001)); err != nil {
				t.Fatal(err)
			}
		}
	}
	return dir
}

// asking requests mounts as the operator shows them.
func asking(names ...string) *sandboxv1.WorkspaceMounts {
	r := &sandboxv1.WorkspaceMounts{}
	for _, name := range names {
		r.Mounts = append(r.Mounts, &commonv1.Mount{Name: name})
	}
	return r
}

func TestMountsAreWhereTheyBelong(t *testing.T) {
	t.Parallel()
	eachDriver(t, func(t *testing.T, d driver) {
		dir := sources(t, "books", "shared", "asked")
		c := d.start(t, func(c *sandbox.Config) {
			c.Mounts = []mount.Rule{
				{Name: "books", Source: dir + "/books", Alias: "mnt/books"},
				{Name: "shared", Source: dir + "/shared", Alias: "shared", Mode: "rw"},
				{Name: "asked", Source: dir + "/asked", Alias: "asked", OnRequest: true},
			}
		})
		r := c.bash(t, "cat mnt/books/file shared/file; echo new >shared/new; cat shared/new; ls; touch mnt/books/x; touch workflows/x; mv mnt other; rmdir shared; ls asked")
		if want := "books\nshared\nnew\nartifacts\nmnt\nrepos\nshared\nuploads\nworkflows\n"; r.out != want {
			t.Errorf("got %q, want %q; %s", r.out, want, r.err)
		}
		for _, want := range []string{"cannot touch 'mnt/books/x'", "'workflows/x': Read-only file system", "cannot move 'mnt'", "failed to remove 'shared'", "'asked': No such file"} {
			if !strings.Contains(r.err, want) {
				t.Errorf("%q is not in %s", want, r.err)
			}
		}
		if raw, err := os.ReadFile(dir + "/shared/new"); err != nil || string(raw) != "new\n" {
			t.Errorf("on the host: %q, %v", raw, err)
		}
		_, err := c.workspaces.EnsureWorkspace(t.Context(), &sandboxv1.EnsureWorkspaceRequest{Call: c.call(), Mounts: asking("asked")})
		if err != nil {
			t.Fatal(err)
		}
		if r := c.bash(t, "cat asked/file"); r.out != "asked\n" {
			t.Errorf("got %q, %s", r.out, r.err)
		}
	})
}

// A snapshot may be older than the folder over which a mount lies. Without that folder the mount
// would be gone from under the commands that run.
func TestARestoreTakesNoMountFromACommandThatRuns(t *testing.T) {
	t.Parallel()
	eachDriver(t, func(t *testing.T, d driver) {
		dir := sources(t, "asked")
		c := d.start(t, func(c *sandbox.Config) {
			c.Mounts = []mount.Rule{{Name: "asked", Source: dir + "/asked", Alias: "mnt/asked", OnRequest: true}}
		})
		c.bash(t, "echo one >f")
		before := c.snapshot(t, c.call())
		_, err := c.workspaces.EnsureWorkspace(t.Context(), &sandboxv1.EnsureWorkspaceRequest{Call: c.call(), Mounts: asking("asked")})
		if err != nil {
			t.Fatal(err)
		}
		stream := c.launch(t.Context(), t, &sandboxv1.ExecStart{Call: c.call(), Argv: []string{"sh", "-c", "cat f mnt/asked/file; read x; cat f mnt/asked/file"}, Stdin: true})
		c.bash(t, "echo two >f; mkdir -p d/e")
		c.restore(t, before.GetId())
		send(t, stream, &sandboxv1.ExecRequest{Kind: &sandboxv1.ExecRequest_Stdin{Stdin: &sandboxv1.ExecStdin{Data: []byte("\n"), Close: true}}})
		r, err := follow(stream)
		if err != nil || !strings.HasSuffix(r.out, "one\nasked\n") {
			t.Errorf("it finds %q, %s, %v", r.out, r.err, err)
		}
		if r := c.bash(t, "cat mnt/asked/file; ls -d d"); r.out != "asked\n" {
			t.Errorf("afterwards a command finds %q, %s", r.out, r.err)
		}
	})
}
