package integration

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"io"
	"slices"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"

	commonv1 "github.com/fairlead/fairlead/gen/go/fairlead/common/v1"
	sandboxv1 "github.com/fairlead/fairlead/gen/go/fairlead/sandbox/v1"
	"github.com/fairlead/fairlead/services/internal/kit/apierr"
	"github.com/fairlead/fairlead/services/sandbox"
)

// entry is a file of an archive; with a link it is a symbolic link.
type entry struct {
	name, content, link string
	kind                byte
}

// tarOf returns a tar.
func tarOf(t *testing.T, entries ...entry) []byte {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, e := range entries {
		h := &tar.Header{Name: e.name, Mode: 0o644, Size: int64(len(e.content)), Typeflag: tar.TypeReg}
		if e.link != "" {
			h.Typeflag, h.Linkname = tar.TypeSymlink, e.link
		}
		if e.kind != 0 {
			h.Typeflag = e.kind
		}
		if err := w.WriteHeader(h); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write([]byte(e.content)); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func zipOf(t *testing.T, entries ...entry) []byte {
	t.Helper()
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	for _, e := range entries {
		f, err := w.Create(e.name)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.Write([]byte(e.content)); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func gzipOf(t *testing.T, content []byte) []byte {
	t.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	if _, err := w.Write(content); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// unpack unpacks an archive; an epoch of zero is that of the call.
func (c *client) unpack(t *testing.T, call *commonv1.CallRef, path string, archive []byte, format sandboxv1.ArchiveFormat, epoch int64) (*sandboxv1.UnpackFilesResponse, error) {
	t.Helper()
	stream, err := c.files.UnpackFiles(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	// CloseAndRecv returns what went wrong.
	_ = stream.Send(&sandboxv1.UnpackFilesRequest{Kind: &sandboxv1.UnpackFilesRequest_Start{Start: &sandboxv1.UnpackFilesStart{Call: call, Path: path, Format: format}}})
	for len(archive) > 0 {
		n := min(len(archive), 64<<10)
		_ = stream.Send(&sandboxv1.UnpackFilesRequest{Kind: &sandboxv1.UnpackFilesRequest_Data{Data: archive[:n]}})
		archive = archive[n:]
	}
	if epoch > 0 {
		_ = stream.Send(&sandboxv1.UnpackFilesRequest{Kind: &sandboxv1.UnpackFilesRequest_Epoch{Epoch: epoch}})
	}
	return stream.CloseAndRecv()
}

func TestAnArchiveBecomesANewDirectoryOfARunningWorkspace(t *testing.T) {
	t.Parallel()
	atLevel(t, func(t *testing.T, level string) {
		c := open(t, level)
		tree := []entry{{name: "src/main.go", content: "package main\n"}, {name: "README", content: "read\n"}}
		archives := map[sandboxv1.ArchiveFormat][]byte{
			sandboxv1.ArchiveFormat_ARCHIVE_FORMAT_TAR:      tarOf(t, tree...),
			sandboxv1.ArchiveFormat_ARCHIVE_FORMAT_TAR_GZIP: gzipOf(t, tarOf(t, tree...)),
			sandboxv1.ArchiveFormat_ARCHIVE_FORMAT_ZIP:      zipOf(t, tree...),
		}
		for format, archive := range archives {
			call, path := c.call(), "in/"+format.String()
			for range 2 { // the second one is the same call
				r, err := c.unpack(t, call, path, archive, format, 0)
				if err != nil || r.GetFile().GetPath() != path || r.GetFile().GetType() != sandboxv1.FileType_FILE_TYPE_DIRECTORY {
					t.Fatalf("%v: %v, %v", format, r, err)
				}
			}
			got := c.bash(t, "cd "+path+" && cat src/main.go README && touch src/mine && stat -c %a . src")
			if want := "package main\nread\n755\n755\n"; got.out != want {
				t.Errorf("%v: %q %q", format, got.out, got.err)
			}
		}
		_, err := c.unpack(t, c.call(), "in", tarOf(t, tree...), sandboxv1.ArchiveFormat_ARCHIVE_FORMAT_TAR, 0)
		wantReason(t, err, "FILE_EXISTS")
		_, err = c.unpack(t, c.call(), "/workspace", tarOf(t, tree...), sandboxv1.ArchiveFormat_ARCHIVE_FORMAT_TAR, 0)
		wantReason(t, err, "FILE_EXISTS")
	})
}

func TestAnArchiveThatIsRefusedLeavesNothing(t *testing.T) {
	t.Parallel()
	c := open(t, sandbox.LevelBasic)
	bomb := gzipOf(t, tarOf(t, entry{name: "zeros", content: strings.Repeat("\x00", 100<<20)}))
	for name, archive := range map[string][]byte{
		"an absolute path":           tarOf(t, entry{name: "/etc/x", content: "x"}),
		"a path that leads outside":  tarOf(t, entry{name: "ok", content: "x"}, entry{name: "../x", content: "x"}),
		"a path through a link":      tarOf(t, entry{name: "l", link: "/etc"}, entry{name: "l/x", content: "x"}),
		"a hard link":                tarOf(t, entry{name: "l", link: "../secret", kind: tar.TypeLink}),
		"a device":                   tarOf(t, entry{name: "d", kind: tar.TypeChar}),
		"two files of one name":      tarOf(t, entry{name: "f", content: "x"}, entry{name: "f", content: "y"}),
		"an archive that is cut off": tarOf(t, entry{name: "f", content: strings.Repeat("x", 5000)})[:3000],
		"a text":                     []byte("hello"),
	} {
		_, err := c.unpack(t, c.call(), "d", archive, sandboxv1.ArchiveFormat_ARCHIVE_FORMAT_TAR, 0)
		if !apierr.Is(err, sandboxv1.ErrorReason_ERROR_REASON_BAD_ARCHIVE) {
			t.Errorf("%s: %v", name, err)
		}
	}
	_, err := c.unpack(t, c.call(), "d", bomb, sandboxv1.ArchiveFormat_ARCHIVE_FORMAT_TAR_GZIP, 0)
	wantReason(t, err, "BAD_ARCHIVE")
	fine := tarOf(t, entry{name: "f", content: "x"})
	_, err = c.unpack(t, c.call(), "../d", fine, sandboxv1.ArchiveFormat_ARCHIVE_FORMAT_TAR, 0)
	wantReason(t, err, "PATH_ESCAPES")
	for path, reason := range map[string]string{"/workspace": "FILE_EXISTS", ".": "FILE_EXISTS", "../d": "PATH_ESCAPES"} { // before the archive is read
		_, err = c.unpack(t, c.call(), path, []byte("hello"), sandboxv1.ArchiveFormat_ARCHIVE_FORMAT_TAR, 0)
		wantReason(t, err, reason)
	}
	c.bash(t, "ln -s /tmp out")
	_, err = c.unpack(t, c.call(), "out/d", fine, sandboxv1.ArchiveFormat_ARCHIVE_FORMAT_TAR, 0)
	wantReason(t, err, "PATH_ESCAPES")
	if got := c.bash(t, "rm out; ls"); got.out != standardFolders {
		t.Errorf("the workspace has %q", got.out)
	}
}

func TestTheEpochAtTheEndOfAnUploadCounts(t *testing.T) {
	t.Parallel()
	c := open(t, sandbox.LevelBasic)
	old := c.call()
	next := c.call()
	next.Epoch = old.Epoch + 1
	if _, err := c.workspaces.FenceWorkspace(t.Context(), &sandboxv1.FenceWorkspaceRequest{Call: next}); err != nil {
		t.Fatal(err)
	}
	archive := tarOf(t, entry{name: "f", content: "x"})
	_, err := c.unpack(t, old, "d", archive, sandboxv1.ArchiveFormat_ARCHIVE_FORMAT_TAR, 0)
	wantReason(t, err, "STALE_EPOCH")
	if _, err := c.unpack(t, old, "d", archive, sandboxv1.ArchiveFormat_ARCHIVE_FORMAT_TAR, next.Epoch); err != nil {
		t.Error(err)
	}
	stream, err := c.files.WriteFile(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range []*sandboxv1.WriteFileRequest{
		{Kind: &sandboxv1.WriteFileRequest_Start{Start: &sandboxv1.WriteFileStart{Call: old, Path: "w"}}},
		{Kind: &sandboxv1.WriteFileRequest_Data{Data: []byte("x")}},
		{Kind: &sandboxv1.WriteFileRequest_Epoch{Epoch: next.Epoch}},
	} {
		_ = stream.Send(m)
	}
	if _, err := stream.CloseAndRecv(); err != nil {
		t.Error(err)
	}
}

func TestADirectoryIsListedWithAllThatIsBelowItPageByPage(t *testing.T) {
	t.Parallel()
	c := open(t, sandbox.LevelBasic)
	c.bash(t, "mkdir -p top/a/b top/a.x top/c && touch top/a/b/1 top/a/z top/a.x/2 top/b && ln -s a top/link")
	const want = "top/a top/a/b top/a/b/1 top/a/z top/a.x top/a.x/2 top/b top/c top/link"
	for size := int32(1); size < 10; size++ {
		var got []string
		r := &sandboxv1.ListFilesRequest{Session: c.session, Path: "top", Recursive: true, PageSize: size}
		for {
			page, err := c.files.ListFiles(t.Context(), r)
			if err != nil {
				t.Fatal(err)
			}
			for _, f := range page.GetFiles() {
				got = append(got, f.GetPath())
			}
			if r.PageToken = page.GetNextPageToken(); r.PageToken == "" {
				break
			}
		}
		if strings.Join(got, " ") != want {
			t.Errorf("pages of %d: %s", size, strings.Join(got, " "))
		}
	}
	_, err := c.files.ListFiles(t.Context(), &sandboxv1.ListFilesRequest{Session: c.session, Path: "none", Recursive: true})
	wantReason(t, err, "FILE_NOT_FOUND")
}

func TestADirectoryIsExportedWithPathsRelativeToIt(t *testing.T) {
	t.Parallel()
	c := open(t, sandbox.LevelBasic)
	c.bash(t, "mkdir -p top/a && echo 1 > top/a/1 && echo 2 > beside")
	stream, err := c.workspaces.ExportWorkspace(t.Context(), &sandboxv1.ExportWorkspaceRequest{Session: c.session, Path: "top"})
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for in := tar.NewReader(readsArchive(stream)); ; {
		h, err := in.Next()
		if err != nil {
			break
		}
		names = append(names, h.Name)
	}
	if !slices.Equal(names, []string{"a/", "a/1"}) {
		t.Errorf("it has %q", names)
	}
	for path, code := range map[string]codes.Code{"beside": codes.FailedPrecondition, "none": codes.NotFound, "../x": codes.InvalidArgument} {
		stream, err := c.workspaces.ExportWorkspace(t.Context(), &sandboxv1.ExportWorkspaceRequest{Session: c.session, Path: path})
		if err == nil {
			_, err = stream.Recv()
		}
		if apierr.Code(err) != code {
			t.Errorf("%s: %v", path, err)
		}
	}
}

// exportStream reads an export.
type exportStream struct {
	grpc.ServerStreamingClient[sandboxv1.ExportWorkspaceResponse]
	left []byte
}

func readsArchive(stream grpc.ServerStreamingClient[sandboxv1.ExportWorkspaceResponse]) io.Reader {
	return &exportStream{ServerStreamingClient: stream}
}

func (s *exportStream) Read(b []byte) (int, error) {
	if len(s.left) == 0 {
		m, err := s.Recv()
		if err != nil {
			return 0, err
		}
		s.left = m.GetData()
	}
	n := copy(b, s.left)
	s.left = s.left[n:]
	return n, nil
}
