package server

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"google.golang.org/grpc"

	sandboxv1 "github.com/fairlead/fairlead/gen/go/fairlead/sandbox/v1"
	"github.com/fairlead/fairlead/services/internal/kit/filename"
	"github.com/fairlead/fairlead/services/sandbox/internal/box"
	"github.com/fairlead/fairlead/services/sandbox/internal/files"
)

// archivePiece is how much of an archive goes into one message.
const archivePiece = 256 << 10

// formats are the formats of archives; the default is a tar.
var formats = map[sandboxv1.ArchiveFormat]files.Format{
	sandboxv1.ArchiveFormat_ARCHIVE_FORMAT_TAR_GZIP: files.TarGzip,
	sandboxv1.ArchiveFormat_ARCHIVE_FORMAT_ZIP:      files.Zip,
}

// ExportWorkspace streams a workspace's files.
func (s *workspaceServer) ExportWorkspace(r *sandboxv1.ExportWorkspaceRequest, stream grpc.ServerStreamingServer[sandboxv1.ExportWorkspaceResponse]) error {
	t, done, err := (&fileServer{Server: s.Server}).view(stream.Context(), r.GetSession(), r.GetWorkspaceGeneration())
	if err != nil {
		return status(err)
	}
	defer done()
	out := bufio.NewWriterSize(sender(func(b []byte) error {
		return stream.Send(&sandboxv1.ExportWorkspaceResponse{Data: b})
	}), archivePiece)
	name := filename.Decode(r.GetPath())
	if alias := t.Alias(name); alias != "" {
		return status(fmt.Errorf("%w: %s: a mount is not exported", files.ErrMountPoint, alias))
	}
	err = t.Pack(stream.Context(), name, formats[r.GetFormat()], out)
	if err := cmp.Or(t.checkCurrent(), err); err != nil { // files that vanish meanwhile are left out
		return status(err)
	}
	return out.Flush()
}

// sender is a Writer that sends messages. A message is marshaled before send returns, so the bytes need not
// be copied.
type sender func([]byte) error

func (s sender) Write(b []byte) (int, error) {
	if err := s(b); err != nil {
		return 0, err
	}
	return len(b), nil
}

// ImportWorkspace makes a workspace from an archive.
func (s *workspaceServer) ImportWorkspace(stream grpc.ClientStreamingServer[sandboxv1.ImportWorkspaceRequest, sandboxv1.ImportWorkspaceResponse]) error {
	first, err := stream.Recv()
	if err != nil {
		if errors.Is(err, io.EOF) {
			return invalid("kind", "the stream ended before open")
		}
		return err
	}
	open := first.GetOpen()
	if open == nil {
		return invalid("kind", "the first request has to be open")
	}
	c, err := call(stream.Context(), open.GetCall())
	if err != nil {
		return status(err)
	}
	in := &receiver{stream: stream}
	got, err := s.node.Import(c, func(w *box.Workspace) error { return unpack(w, formats[open.GetFormat()], in) })
	if err != nil {
		return status(err)
	}
	return stream.SendAndClose(&sandboxv1.ImportWorkspaceResponse{Created: got.Created})
}

// unpack writes an archive into a new workspace, in which nothing runs yet. It reads the whole stream and
// ignores data after the archive's end.
func unpack(w *box.Workspace, format files.Format, in *receiver) error {
	t, err := openTree(w)
	if err != nil {
		return err
	}
	defer func() { _ = t.Close() }()
	if err := unpackInto(in.stream.Context(), w, t, format, in); err != nil {
		return err
	}
	return w.MakeStandardFolders() // an archive from elsewhere lacks them
}

// unpackInto unpacks an archive into an empty directory of the workspace's file system, within the
// workspace's limits. It reads the whole archive.
func unpackInto(ctx context.Context, w *box.Workspace, t *files.Tree, format files.Format, in io.Reader) error {
	reserve := func(bytes int64) error {
		if err := w.Reserve(bytes, 1); err != nil {
			return err
		}
		w.Changed(bytes, 1)
		return nil
	}
	t.Folder = func() error { return reserve(folderBytes) }
	var err error
	switch format {
	case files.Zip:
		err = unzip(ctx, w, t, in, reserve)
	case files.TarGzip:
		err = t.UnpackGzip(ctx, in, reserve)
	default:
		err = t.Unpack(ctx, in, reserve)
	}
	if err != nil {
		return err
	}
	w.Recount()
	if err := w.Reserve(1, 0); err != nil { // on disk it may be larger than declared
		return err
	}
	_, err = io.Copy(io.Discard, in)
	return err
}

// unzip unpacks a zip. Its directory comes last, so the zip is first stored in an unnamed file, which may
// be no larger than a workspace.
func unzip(ctx context.Context, w *box.Workspace, t *files.Tree, in io.Reader, reserve func(int64) error) error {
	f, err := os.CreateTemp(w.Staging, "archive-")
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	if err := os.Remove(f.Name()); err != nil {
		return err
	}
	limits := w.Limits()
	size := int64(0)
	for {
		n, err := io.CopyN(f, in, archiveLook)
		if size += n; size > limits.WorkspaceBytes {
			return fmt.Errorf("%w: the archive itself has more than %d bytes", box.ErrWorkspaceFull, limits.WorkspaceBytes)
		}
		if errors.Is(err, io.EOF) {
			break
		}
		if err := errors.Join(err, w.CheckDiskSpace()); err != nil {
			return err
		}
	}
	return t.UnpackZip(ctx, f, size, limits.WorkspaceInodes, reserve)
}

// archiveLook is how much of an archive is stored between two checks of the disk.
const archiveLook = 8 << 20

// receiver reads the data of a stream.
type receiver struct {
	stream    grpc.ClientStreamingServer[sandboxv1.ImportWorkspaceRequest, sandboxv1.ImportWorkspaceResponse]
	remaining []byte
}

func (r *receiver) Read(b []byte) (int, error) {
	for len(r.remaining) == 0 {
		m, err := r.stream.Recv()
		if err != nil {
			return 0, err
		}
		if m.GetOpen() != nil {
			return 0, invalid("kind", "open is the first request, and only the first")
		}
		r.remaining = m.GetData()
	}
	n := copy(b, r.remaining)
	r.remaining = r.remaining[n:]
	return n, nil
}
