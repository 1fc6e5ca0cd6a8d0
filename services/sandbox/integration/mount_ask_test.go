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

// library has books to read, with a folder that is closed to commands and a link, drafts to write, and a
// mount of ann's.
func library(t *testing.T) (dir string, rules []mount.Rule) {
	t.Helper()
	dir = sources(t, "books", "drafts", "private")
	june := filepath.Join(dir, "books", "2026", "june")
	closed := filepath.Join(dir, "books", "closed", "inner")
	if err := errors.Join(
		os.MkdirAll(june, 0o755), os.WriteFile(filepath.Join(june, "file"), []byte("june\n"), 0o644), os.Symlink("2026", filepath.Join(dir, "books", "link")),
		os.MkdirAll(closed, 0o755), os.WriteFile(filepath.Join(closed, "file"), []byte("closed\n"), 0o644), os.Chmod(filepath.Dir(closed), 0o600),
	); err != nil {
		t.Fatal(err)
	}
	return dir, []mount.Rule{
		{Name: "books", Source: dir + "/books", Alias: "books", OnRequest: true},
		{Name: "drafts", Source: dir + "/drafts", Alias: "mnt/drafts", Mode: "rw"},
		{Name: "private", Source: dir + "/private", Alias: "mnt/private", For: []string{"default/ann"}},
	}
}

// requests asks for mounts as a user, and returns the optional ones that are missing.
func (c *client) requests(t *testing.T, user string, mounts ...*commonv1.Mount) ([]string, error) {
	t.Helper()
	got, err := c.workspaces.EnsureWorkspace(as(t.Context(), user), &sandboxv1.EnsureWorkspaceRequest{Call: c.call(), Mounts: &sandboxv1.WorkspaceMounts{Mounts: mounts}})
	return got.GetMissingMounts(), err
}

func TestASessionGetsAPartOfAMountAtAnotherPlaceAndWithFewerRights(t *testing.T) {
	t.Parallel()
	eachDriver(t, func(t *testing.T, d driver) {
		dir, rules := library(t)
		c := d.start(t, func(c *sandbox.Config) { c.Mounts = rules })
		missing, err := c.requests(t, "bob",
			&commonv1.Mount{Name: "books", Path: "2026/june", Alias: "mnt/reading/june", Optional: true},
			&commonv1.Mount{Name: "drafts", Mode: "ro"},
			&commonv1.Mount{Name: "nowhere", Optional: true}, &commonv1.Mount{Name: "private", Alias: "mnt/p", Optional: true},
			&commonv1.Mount{Name: "workflows"},
		)
		if err != nil || strings.Join(missing, " ") != "nowhere private" {
			t.Fatalf("missing are %v, %v", missing, err)
		}
		r := c.says(t, "bob", "cat mnt/reading/june/file mnt/drafts/file; ls mnt; ls -A mnt/reading/june; touch mnt/drafts/x; ls books; ls mnt/reading/june/../..")
		if want := "june\ndrafts\ndrafts\nreading\nfile\ndrafts\nreading\n"; r.out != want {
			t.Errorf("commands find %q, want %q; %s", r.out, want, r.err)
		}
		for _, want := range []string{"'mnt/drafts/x': Read-only file system", "'books': No such file"} {
			if !strings.Contains(r.err, want) {
				t.Errorf("%q is not in %s", want, r.err)
			}
		}
		got, err := c.files.StatFile(as(t.Context(), "bob"), &sandboxv1.StatFileRequest{Session: c.session, Path: "mnt/reading/june/file"})
		if err != nil || got.GetFile().GetSize() != 5 {
			t.Errorf("the file API finds %v, %v", got, err)
		}
		wantReason(t, c.asksToWrite(t, "bob", "mnt/drafts/y", "y"), "READ_ONLY_MOUNT")
		if left, err := os.ReadDir(filepath.Join(dir, "drafts")); err != nil || len(left) != 1 {
			t.Errorf("drafts holds %v, %v", left, err)
		}
		if _, err := c.requests(t, "bob", &commonv1.Mount{Name: "drafts", Mode: "rw", Alias: "mnt/mine"}); err != nil {
			t.Fatal(err)
		}
		if r := c.says(t, "bob", "echo new >mnt/mine/new; cat mnt/mine/new; ls mnt"); r.out != "new\nmine\n" {
			t.Errorf("at its other place it is %q, %s", r.out, r.err)
		}
		if raw, err := os.ReadFile(filepath.Join(dir, "drafts", "new")); err != nil || string(raw) != "new\n" {
			t.Errorf("on the host: %q, %v", raw, err)
		}
	})
}

func TestARequestForAMountGetsNoMoreThanTheOperatorGives(t *testing.T) {
	t.Parallel()
	eachDriver(t, func(t *testing.T, d driver) {
		_, rules := library(t)
		c := d.start(t, func(c *sandbox.Config) {
			c.Mounts = rules
			c.Storage = sandbox.Storage{Alias: "mnt/storage", Bytes: 1 << 20, Inodes: 100}
		})
		for name, x := range map[string]struct {
			reason string
			asked  []*commonv1.Mount
		}{
			"rw of what is ro":              {"MOUNT_REFUSED", []*commonv1.Mount{{Name: "books", Mode: "rw", Optional: true}}},
			"an unknown mode":               {"", []*commonv1.Mount{{Name: "books", Mode: "x"}}},
			"a path that leads up":          {"", []*commonv1.Mount{{Name: "books", Path: "../drafts"}}},
			"a path that leads up inside":   {"", []*commonv1.Mount{{Name: "books", Path: "2026/../../drafts"}}},
			"an absolute path":              {"", []*commonv1.Mount{{Name: "books", Path: "/etc"}}},
			"a path with an empty part":     {"", []*commonv1.Mount{{Name: "books", Path: "2026//june"}}},
			"a path that ends in a slash":   {"", []*commonv1.Mount{{Name: "books", Path: "2026/"}}},
			"a path of a dot":               {"", []*commonv1.Mount{{Name: "books", Path: "."}}},
			"a path with a zero byte":       {"", []*commonv1.Mount{{Name: "books", Path: "2026\x00"}}},
			"a path over a link":            {"MOUNT_NOT_FOUND", []*commonv1.Mount{{Name: "books", Path: "link/june"}}},
			"a path that is a link":         {"MOUNT_NOT_FOUND", []*commonv1.Mount{{Name: "books", Path: "link"}}},
			"a path to a file":              {"MOUNT_NOT_FOUND", []*commonv1.Mount{{Name: "books", Path: "file"}}},
			"a path to nothing":             {"MOUNT_NOT_FOUND", []*commonv1.Mount{{Name: "books", Path: "2027"}}},
			"a path past a closed folder":   {"MOUNT_NOT_FOUND", []*commonv1.Mount{{Name: "books", Path: "closed/inner"}}},
			"an alias outside of mnt":       {"", []*commonv1.Mount{{Name: "books", Alias: "repos/x"}}},
			"an absolute alias":             {"", []*commonv1.Mount{{Name: "books", Alias: "/etc"}}},
			"an alias that leads up":        {"", []*commonv1.Mount{{Name: "books", Alias: "mnt/../x"}}},
			"mnt itself":                    {"", []*commonv1.Mount{{Name: "books", Alias: "mnt"}}},
			"one alias for two":             {"", []*commonv1.Mount{{Name: "books", Alias: "mnt/x"}, {Name: "drafts", Alias: "mnt/x"}}},
			"one name twice":                {"", []*commonv1.Mount{{Name: "books", Alias: "mnt/x"}, {Name: "books"}}},
			"the place of another":          {"MOUNT_REFUSED", []*commonv1.Mount{{Name: "books", Alias: "mnt/drafts"}}},
			"a place in another":            {"MOUNT_REFUSED", []*commonv1.Mount{{Name: "books", Alias: "mnt/drafts/x"}}},
			"a place around another":        {"MOUNT_REFUSED", []*commonv1.Mount{{Name: "books", Alias: "mnt/x"}, {Name: "drafts", Alias: "mnt/x/y"}}},
			"the place of storage":          {"MOUNT_REFUSED", []*commonv1.Mount{{Name: "books", Alias: "mnt/storage"}}},
			"storage elsewhere":             {"MOUNT_REFUSED", []*commonv1.Mount{{Name: "storage", Alias: "mnt/x", Optional: true}}},
			"a part of workflows":           {"MOUNT_REFUSED", []*commonv1.Mount{{Name: "workflows", Path: "x"}}},
			"another user's":                {"MOUNT_NOT_FOUND", []*commonv1.Mount{{Name: "private"}}},
			"another user's, in the detail": {"MOUNT_NOT_FOUND", []*commonv1.Mount{{Name: "private", Path: "x", Alias: "mnt/y"}}},
			"one that is not there":         {"MOUNT_NOT_FOUND", []*commonv1.Mount{{Name: "nowhere"}}},
		} {
			_, err := c.requests(t, "bob", x.asked...)
			if x.reason == "" {
				x.reason = "INVALID_REQUEST"
			}
			if err == nil {
				t.Errorf("%s is given", name)
				continue
			}
			t.Run(name, func(t *testing.T) { wantReason(t, err, x.reason) })
		}
		if r := c.says(t, "bob", "ls mnt"); r.out != "drafts\nstorage\n" {
			t.Errorf("afterwards a command finds %q, %s", r.out, r.err)
		}
	})
}

// What one user asks for may be in the place of another user's own mount.
func TestARequestThatOneUserMayNotHaveLeavesTheOtherMountsOfThatUser(t *testing.T) {
	t.Parallel()
	eachDriver(t, func(t *testing.T, d driver) {
		_, rules := library(t)
		c := d.start(t, func(c *sandbox.Config) { c.Mounts = rules })
		if _, err := c.requests(t, "bob", &commonv1.Mount{Name: "books", Alias: "mnt/private"}, &commonv1.Mount{Name: "drafts", Alias: "mnt/d"}); err != nil {
			t.Fatal(err)
		}
		for user, size := range map[string]int64{"ann": int64(len("private\n")), "bob": int64(len("books\n"))} {
			got, err := c.files.StatFile(as(t.Context(), user), &sandboxv1.StatFileRequest{Session: c.session, Path: "mnt/private/file"})
			if err != nil || got.GetFile().GetSize() != size {
				t.Errorf("%s finds %v, %v", user, got, err)
			}
			if _, err := c.files.StatFile(as(t.Context(), user), &sandboxv1.StatFileRequest{Session: c.session, Path: "mnt/d/file"}); err != nil {
				t.Errorf("%s does not find the drafts: %v", user, err)
			}
		}
		_, err := c.exec(as(t.Context(), "ann"), "true", nil)
		wantReason(t, err, "MOUNT_REFUSED")
	})
}
