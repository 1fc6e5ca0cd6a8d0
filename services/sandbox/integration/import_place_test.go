package integration

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"testing"

	sandboxv1 "github.com/fairlead/fairlead/gen/go/fairlead/sandbox/v1"
)

// A foreign archive lacks the folders that every workspace has.
func TestAnArchiveOfSomebodyElsesBecomesAWorkspaceLikeOthers(t *testing.T) {
	t.Parallel()
	var zipped bytes.Buffer
	w := zip.NewWriter(&zipped)
	_, err := w.Create("src/main.go")
	if err = errors.Join(err, w.Close()); err != nil {
		t.Fatal(err)
	}
	own := tar.Header{Name: "src/main.go", Typeflag: tar.TypeReg}
	eachDriver(t, func(t *testing.T, d driver) {
		c := d.start(t)
		for session, x := range map[string]struct {
			format  sandboxv1.ArchiveFormat
			archive []byte
			want    string
		}{
			"sessions/tar":    {archive: packed(t, own), want: "artifacts mnt repos src uploads workflows"},
			"sessions/zip":    {sandboxv1.ArchiveFormat_ARCHIVE_FORMAT_ZIP, zipped.Bytes(), "artifacts mnt repos src uploads workflows"},
			"sessions/file":   {archive: packed(t, tar.Header{Name: "workflows", Typeflag: tar.TypeReg}), want: "artifacts mnt repos uploads workflows workflows.aside"},
			"sessions/link":   {archive: packed(t, tar.Header{Name: "workflows", Typeflag: tar.TypeSymlink, Linkname: "src"}, own), want: "artifacts mnt repos src uploads workflows workflows.aside"},
			"sessions/folder": {archive: packed(t, tar.Header{Name: "workflows/a", Typeflag: tar.TypeReg}), want: "artifacts mnt repos uploads workflows"},
			"sessions/taken":  {archive: packed(t, tar.Header{Name: "repos", Typeflag: tar.TypeSymlink, Linkname: "/etc"}), want: "artifacts mnt repos uploads workflows"},
		} {
			one := *c
			one.session = session
			if _, err := one.importAs(t, "import", x.format, x.archive); err != nil {
				t.Fatal(err)
			}
			if got := one.names(t, ""); got != x.want {
				t.Errorf("%s: the workspace holds %s, want %s", session, got, x.want)
			}
			if r := one.bash(t, "stat -c '%F %a %U' artifacts uploads workflows | uniq; touch workflows/x; mv workflows other"); r.out != "directory 755 agent\n" || r.ExitCode == 0 {
				t.Errorf("%s: a command finds %q, %s", session, r.out, r.err)
			}
			if _, err := one.write(t, "workflows/x", "x", nil); err == nil {
				t.Errorf("%s: workflows can be changed", session)
			}
		}
		if st, err := os.Stat("/etc"); err != nil || st.Mode().Perm() != 0o755 {
			t.Errorf("the folder that a link led to is %v, %v", st.Mode(), err)
		}
	})
}

// A snapshot is exact, but for what is in the place of a protected folder.
func TestWhatIsMadeOfASnapshotHasItsFoldersAndProtectedOnes(t *testing.T) {
	t.Parallel()
	eachDriver(t, func(t *testing.T, d driver) {
		c, own, _ := d.kept(t)
		c.bash(t, "rmdir artifacts uploads")
		if err := errors.Join(os.RemoveAll(filepath.Join(own, "workflows")), os.WriteFile(filepath.Join(own, "workflows"), []byte("mine\n"), 0o644)); err != nil {
			t.Fatal(err)
		}
		old := c.snapshot(t, c.call()).GetId()
		if err := os.Remove(filepath.Join(own, "workflows")); err != nil {
			t.Fatal(err)
		}
		c.bash(t, "true") // which has the folder again
		c.restore(t, old)
		fork := *c
		fork.session = "sessions/fork"
		if _, err := c.snapshots.ForkSnapshot(t.Context(), &sandboxv1.ForkSnapshotRequest{Call: fork.call(), Source: c.session, Snapshot: old}); err != nil {
			t.Fatal(err)
		}
		if got := fork.names(t, ""); got != "mnt repos workflows workflows.aside" {
			t.Errorf("the fork holds %s", got)
		}
		if got := c.names(t, ""); got != "mnt repos workflows workflows.aside" {
			t.Errorf("after the restore there is %s", got)
		}
		if r := fork.bash(t, "cat workflows.aside; touch workflows/x"); r.out != "mine\n" || r.ExitCode == 0 {
			t.Errorf("in the fork a command finds %q, %s", r.out, r.err)
		}
	})
}
