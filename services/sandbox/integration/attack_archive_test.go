package integration

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"fmt"
	"io/fs"
	"strings"
	"testing"

	sandboxv1 "github.com/fairlead/fairlead/gen/go/fairlead/sandbox/v1"
	"github.com/fairlead/fairlead/services/sandbox/internal/bomb"
)

// packed is an archive of some headers, each regular file with so many bytes as it
// says.
func packed(t *testing.T, headers ...tar.Header) []byte {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, h := range headers {
		if h.Mode == 0 {
			h.Mode = 0o644
		}
		if err := w.WriteHeader(&h); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write(make([]byte, h.Size)); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// unpacking makes a workspace of an archive and says what came of it.
func unpacking(headers ...tar.Header) func(t *testing.T, s *scene) string {
	return func(t *testing.T, s *scene) string {
		filled := make([]tar.Header, len(headers))
		for i, h := range headers {
			h.Name, h.Linkname = s.host.fill(h.Name), s.host.fill(h.Linkname)
			filled[i] = h
		}
		return s.unpack(t, packed(t, filled...))
	}
}

// zipped is like packed, of one entry.
func zipped(name string, mode fs.FileMode, content []byte) func(t *testing.T, s *scene) string {
	return func(t *testing.T, s *scene) string {
		var b bytes.Buffer
		w := zip.NewWriter(&b)
		h := &zip.FileHeader{Name: s.host.fill(name), Method: zip.Deflate}
		h.SetMode(mode)
		f, err := w.CreateHeader(h)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.Write([]byte(s.host.fill(string(content)))); err != nil {
			t.Fatal(err)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		return s.unpackAs(t, sandboxv1.ArchiveFormat_ARCHIVE_FORMAT_ZIP, b.Bytes())
	}
}

func (s *scene) unpack(t *testing.T, archive []byte) string {
	return s.unpackAs(t, sandboxv1.ArchiveFormat_ARCHIVE_FORMAT_TAR, archive)
}

func (s *scene) unpackAs(t *testing.T, format sandboxv1.ArchiveFormat, archive []byte) string {
	c := *s.client
	c.session = fmt.Sprintf("sessions/archive-%d", s.calls.Add(1))
	_, err := c.importAs(t, "import", format, archive)
	outcome := said("imported", err)
	if err == nil {
		outcome += " " + strings.TrimSpace(c.bash(t, "find . -mindepth 1 -printf '%P %m\\n' | grep -Ev '^(artifacts|mnt|repos|uploads|workflows) 755$' | sort | head -3; cat * 2>/dev/null | grep -c secret").out)
	}
	if _, err := c.workspaces.DeleteWorkspace(t.Context(), &sandboxv1.DeleteWorkspaceRequest{Session: c.session}); err != nil {
		t.Error(err)
	}
	return strings.ReplaceAll(outcome, "\n", "; ")
}

// archiveAttacks bring a workspace that is to become something else as it is unpacked.
var archiveAttacks = []attack{
	{name: "a path that goes up", run: unpacking(tar.Header{Name: "../../../../../..{secret}", Typeflag: tar.TypeReg, Size: 4}), want: "BAD_ARCHIVE"},
	{name: "an absolute path", run: unpacking(tar.Header{Name: "{secret}", Typeflag: tar.TypeReg, Size: 4}), want: "BAD_ARCHIVE"},
	{name: "a file through a link", run: unpacking(tar.Header{Name: "a", Typeflag: tar.TypeSymlink, Linkname: "/"}, tar.Header{Name: "a{secret}", Typeflag: tar.TypeReg, Size: 4}), want: "BAD_ARCHIVE"},
	{name: "a file over a link", run: unpacking(tar.Header{Name: "a", Typeflag: tar.TypeSymlink, Linkname: "{secret}"}, tar.Header{Name: "a", Typeflag: tar.TypeReg, Size: 4}), want: "BAD_ARCHIVE"},
	{name: "a link to a file of the host, which leads nowhere", run: unpacking(tar.Header{Name: "a", Typeflag: tar.TypeSymlink, Linkname: "{secret}"}), want: "imported a 777; 0"},
	{name: "a hard link to a file of the host", run: unpacking(tar.Header{Name: "a", Typeflag: tar.TypeLink, Linkname: "{secret}"}), want: "BAD_ARCHIVE"},
	{name: "a device", run: unpacking(tar.Header{Name: "a", Typeflag: tar.TypeBlock, Devmajor: 254}), want: "BAD_ARCHIVE"},
	{name: "a pipe", run: unpacking(tar.Header{Name: "a", Typeflag: tar.TypeFifo}), want: "BAD_ARCHIVE"},
	{name: "a file with the rights of its owner", run: unpacking(tar.Header{Name: "a", Typeflag: tar.TypeReg, Mode: 0o6755}), want: "imported a 755; 0"},
	{name: "a file of root", run: unpacking(tar.Header{Name: "a", Typeflag: tar.TypeReg, Uid: 0, Uname: "root"}), want: "imported a 644; 0"},
	{name: "a bomb of bytes", run: unpacking(tar.Header{Name: "a", Typeflag: tar.TypeReg, Size: 32 << 20}), want: "WORKSPACE_FULL"},
	{name: "a bomb of names", run: func(t *testing.T, s *scene) string {
		var all []tar.Header
		for i := range 1000 {
			all = append(all, tar.Header{Name: fmt.Sprintf("f%d", i), Typeflag: tar.TypeReg})
		}
		return s.unpack(t, packed(t, all...))
	}, want: "WORKSPACE_FULL"},
	{name: "a bomb of folders in one name", run: unpacking(tar.Header{Name: strings.Repeat("d/", 1500) + "f", Typeflag: tar.TypeReg}), want: "BAD_ARCHIVE"},
	{name: "a file that is said to be larger than it is", run: func(t *testing.T, s *scene) string {
		return s.unpack(t, packed(t, tar.Header{Name: "a", Typeflag: tar.TypeReg, Size: 4096})[:1024])
	}, want: "BAD_ARCHIVE"},
	{name: "a zip with a path that goes up", run: zipped("../../../../../..{secret}", 0o644, []byte("x")), want: "BAD_ARCHIVE"},
	{name: "a zip with an absolute path", run: zipped("{secret}", 0o644, []byte("x")), want: "BAD_ARCHIVE"},
	{name: "a zip with a link to a file of the host, which leads nowhere", run: zipped("a", 0o777|fs.ModeSymlink, []byte("{secret}")), want: "imported a 777; 0"},
	{name: "a zip with a device", run: zipped("a", 0o666|fs.ModeDevice, nil), want: "BAD_ARCHIVE"},
	{name: "a zip with the rights of its owner", run: zipped("a", 0o755|fs.ModeSetuid, []byte("x")), want: "imported a 755; 0"},
	{name: "a zip that is a bomb", run: func(t *testing.T, s *scene) string {
		return s.unpackAs(t, sandboxv1.ArchiveFormat_ARCHIVE_FORMAT_ZIP, bomb.Zip(t, 64))
	}, want: "BAD_ARCHIVE|WORKSPACE_FULL"},
	{name: "a compressed tar that is a bomb", run: func(t *testing.T, s *scene) string {
		return s.unpackAs(t, sandboxv1.ArchiveFormat_ARCHIVE_FORMAT_TAR_GZIP, bomb.TarGzip(t, 64))
	}, want: "BAD_ARCHIVE|WORKSPACE_FULL"},
	{name: "a compressed archive, which would be a bomb", run: func(t *testing.T, s *scene) string {
		return s.unpack(t, append([]byte{0x1f, 0x8b, 8, 0}, make([]byte, 2048)...))
	}, want: "BAD_ARCHIVE"},
}
