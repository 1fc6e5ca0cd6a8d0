package integration

import (
	"archive/tar"
	"bytes"
	"errors"
	"io"
	"strconv"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	sandboxv1 "github.com/fairlead/fairlead/gen/go/fairlead/sandbox/v1"
	"github.com/fairlead/fairlead/services/internal/kit/apierr"
	"github.com/fairlead/fairlead/services/sandbox"
)

func (c *client) export(t *testing.T) []byte {
	t.Helper()
	return c.exportAs(t, sandboxv1.ArchiveFormat_ARCHIVE_FORMAT_UNSPECIFIED)
}

func (c *client) exportAs(t *testing.T, format sandboxv1.ArchiveFormat) []byte {
	t.Helper()
	stream, err := c.workspaces.ExportWorkspace(t.Context(), &sandboxv1.ExportWorkspaceRequest{Session: c.session, Format: format})
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	for {
		m, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return b.Bytes()
		}
		if err != nil {
			t.Fatal(err)
		}
		b.Write(m.GetData())
	}
}

func (c *client) importing(t *testing.T, call string, archive []byte) (*sandboxv1.ImportWorkspaceResponse, error) {
	t.Helper()
	return c.importAs(t, call, sandboxv1.ArchiveFormat_ARCHIVE_FORMAT_UNSPECIFIED, archive)
}

func (c *client) importAs(t *testing.T, call string, format sandboxv1.ArchiveFormat, archive []byte) (*sandboxv1.ImportWorkspaceResponse, error) {
	t.Helper()
	stream, err := c.workspaces.ImportWorkspace(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	open := &sandboxv1.ImportWorkspaceOpen{Call: c.named(call), Format: format}
	_ = stream.Send(&sandboxv1.ImportWorkspaceRequest{Kind: &sandboxv1.ImportWorkspaceRequest_Open{Open: open}})
	for len(archive) > 0 {
		n := min(len(archive), 1000)
		_ = stream.Send(&sandboxv1.ImportWorkspaceRequest{Kind: &sandboxv1.ImportWorkspaceRequest_Data{Data: archive[:n]}}) // CloseAndRecv tells what went wrong
		archive = archive[n:]
	}
	return stream.CloseAndRecv()
}

func TestAWorkspaceIsImportedOnceAndBelongsToItsCommands(t *testing.T) {
	t.Parallel()
	atLevel(t, func(t *testing.T, level string) {
		c := open(t, level)
		c.bash(t, "mkdir -p a/empty && echo hello > a/run && chmod 750 a/run && ln -s a/run link")
		archive := c.export(t)
		c.session = "sessions/copy"
		for i, created := range []bool{true, false} {
			if got, err := c.importing(t, "import", archive); err != nil || got.Created != created {
				t.Errorf("import %d: %v, %v", i, got, err)
			}
		}
		if _, err := c.importing(t, "another", archive); !apierr.Is(err, sandboxv1.ErrorReason_ERROR_REASON_WORKSPACE_EXISTS) || status.Code(err) != codes.AlreadyExists {
			t.Errorf("another import: %v", err)
		}
		want := "hello\n750 directory a/run\n"
		if got := c.bash(t, "cat link && echo $(stat -c %a a/run) $(stat -c %F a/empty) $(readlink link) && echo more >> a/run && rmdir a/empty"); got.out != want || got.ExitCode != 0 {
			t.Errorf("in the copy a command saw %q %q", got.out, got.err)
		}
		if again := c.export(t); bytes.Equal(again, archive) {
			t.Error("the copy does not change")
		}
		c.session = "sessions/one"
		if !bytes.Equal(c.export(t), archive) {
			t.Error("the original has changed with its copy")
		}
	})
}

func TestAnImportThatFailsLeavesNoWorkspace(t *testing.T) {
	t.Parallel()
	c := start(t, func() sandbox.Config {
		cfg := configuration(t, sandbox.LevelBasic)
		cfg.Limits.WorkspaceBytes = 1 << 20
		return cfg
	}())
	var big, bad bytes.Buffer
	w := tar.NewWriter(&big)
	_ = w.WriteHeader(&tar.Header{Name: "big", Typeflag: tar.TypeReg, Size: 2 << 20, Mode: 0o644})
	_, _ = w.Write(make([]byte, 2<<20))
	_ = w.Close()
	w = tar.NewWriter(&bad)
	_ = w.WriteHeader(&tar.Header{Name: "ok", Typeflag: tar.TypeReg, Mode: 0o644})
	_ = w.WriteHeader(&tar.Header{Name: "../out", Typeflag: tar.TypeReg, Mode: 0o644})
	_ = w.Close()
	for _, tc := range []struct {
		name, reason string
		code         codes.Code
		archive      []byte
	}{
		{"an archive that is too large", "WORKSPACE_FULL", codes.ResourceExhausted, big.Bytes()},
		{"an archive that leads outside", "BAD_ARCHIVE", codes.InvalidArgument, bad.Bytes()},
		{"an archive that is cut off", "BAD_ARCHIVE", codes.InvalidArgument, bad.Bytes()[:300]},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if _, err := c.importing(t, "import", tc.archive); apierr.Reason(err) != tc.reason || status.Code(err) != tc.code {
				t.Errorf("got %v", err)
			}
			_, err := c.files.ListFiles(t.Context(), &sandboxv1.ListFilesRequest{Session: c.session})
			if !apierr.Is(err, sandboxv1.ErrorReason_ERROR_REASON_WORKSPACE_NOT_FOUND) {
				t.Errorf("the workspace is there: %v", err)
			}
		})
	}
}

func TestAWorkspaceMovesInAnyFormat(t *testing.T) {
	t.Parallel()
	atLevel(t, func(t *testing.T, level string) {
		c := open(t, level, small)
		const look = "cat d/a; stat -c %a d/a d/e; readlink l; find . | sort"
		before := c.bash(t, "mkdir -p d/e; echo text > d/a; chmod 751 d/a; chmod 700 d/e; ln -s d/a l; "+look)
		for _, format := range []sandboxv1.ArchiveFormat{
			sandboxv1.ArchiveFormat_ARCHIVE_FORMAT_TAR, sandboxv1.ArchiveFormat_ARCHIVE_FORMAT_TAR_GZIP, sandboxv1.ArchiveFormat_ARCHIVE_FORMAT_ZIP,
		} {
			archive := c.exportAs(t, format)
			to := *c
			to.session = "sessions/" + strings.ToLower(strings.ReplaceAll(format.String(), "_", "-"))
			if _, err := to.importAs(t, "import", format, archive); err != nil {
				t.Errorf("%v: %v", format, err)
				continue
			}
			if after := to.bash(t, look); after.out != before.out || after.err != before.err {
				t.Errorf("%v: %q %q, want %q", format, after.out, after.err, before.out)
			}
			bad := *c
			bad.session = "sessions/bad"
			if _, err := bad.importAs(t, "import", format, archive[:len(archive)/2]); !apierr.Is(err, sandboxv1.ErrorReason_ERROR_REASON_BAD_ARCHIVE) {
				t.Errorf("%v, cut: %v", format, err)
			}
		}
		big := *c
		big.session = "sessions/big"
		_, err := big.importAs(t, "import", sandboxv1.ArchiveFormat_ARCHIVE_FORMAT_ZIP, make([]byte, 17<<20))
		wantReason(t, err, "WORKSPACE_FULL")
	})
}

// The folders on the way to a file are made with it, and take room as well.
func TestFoldersOnTheWayToAFileCount(t *testing.T) {
	t.Parallel()
	few := func(cfg *sandbox.Config) { cfg.Limits.WorkspaceInodes = 500 }
	deep := func(i int) string { return strconv.Itoa(i) + "/" + strings.Repeat("d/", 100) + "f" }
	t.Run("of an archive", func(t *testing.T) {
		c := open(t, sandbox.LevelBasic, few)
		var b bytes.Buffer
		w := tar.NewWriter(&b)
		for i := range 20 {
			_ = w.WriteHeader(&tar.Header{Name: deep(i), Typeflag: tar.TypeReg, Mode: 0o644})
		}
		_ = w.Close()
		c.session = "sessions/deep"
		_, err := c.importing(t, "import", b.Bytes())
		wantReason(t, err, "WORKSPACE_FULL")
	})
	t.Run("of single files", func(t *testing.T) {
		c := open(t, sandbox.LevelBasic, few)
		var err error
		for i := 0; i < 20 && err == nil; i++ {
			_, err = c.write(t, deep(i), "x", nil)
		}
		wantReason(t, err, "WORKSPACE_FULL")
	})
}
