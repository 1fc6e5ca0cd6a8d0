package server

import (
	"context"
	"strings"

	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/types/known/timestamppb"

	sandboxv1 "github.com/fairlead/fairlead/gen/go/fairlead/sandbox/v1"
	"github.com/fairlead/fairlead/services/internal/kit/filename"
	"github.com/fairlead/fairlead/services/internal/kit/page"
	"github.com/fairlead/fairlead/services/sandbox/internal/box"
	"github.com/fairlead/fairlead/services/sandbox/internal/files"
)

type fileServer struct {
	sandboxv1.UnimplementedFileServiceServer
	*Server
}

func openTree(w *box.Workspace) (*files.Tree, error) {
	return files.Open(w.Dir, w.Staging, files.Owner{UID: w.Owner.UID, GID: w.Owner.GID})
}

// view opens a session's workspace for reading. The returned function closes it.
func (s *fileServer) view(ctx context.Context, session string, generation int64) (*space, func(), error) {
	k, err := key(ctx, session)
	if err != nil {
		return nil, nil, err
	}
	w, release, err := s.node.View(k, generation)
	if err != nil {
		return nil, nil, err
	}
	t, err := openSpace(ctx, w)
	if err != nil {
		release()
		return nil, nil, err
	}
	return t, func() { _ = t.Close(); release() }, nil
}

func fileInfo(i files.Info) *sandboxv1.FileInfo {
	return &sandboxv1.FileInfo{
		Path: filename.Encode(i.Path), Type: sandboxv1.FileType(i.Type), Size: i.Size, Mode: i.Mode,
		ModifyTime: timestamppb.New(i.Modified), LinkTarget: filename.Encode(i.Target), Etag: i.Etag,
	}
}

func fileInfos(all []files.Info) []*sandboxv1.FileInfo {
	out := make([]*sandboxv1.FileInfo, 0, len(all))
	for _, i := range all {
		out = append(out, fileInfo(i))
	}
	return out
}

func (s *fileServer) StatFile(ctx context.Context, r *sandboxv1.StatFileRequest) (*sandboxv1.StatFileResponse, error) {
	t, done, err := s.view(ctx, r.GetSession(), r.GetWorkspaceGeneration())
	if err != nil {
		return nil, status(err)
	}
	defer done()
	i, err := t.Stat(filename.Decode(r.GetPath()))
	if err != nil {
		return nil, status(err)
	}
	return &sandboxv1.StatFileResponse{File: fileInfo(i)}, nil
}

func (s *fileServer) ResolvePath(ctx context.Context, r *sandboxv1.ResolvePathRequest) (*sandboxv1.ResolvePathResponse, error) {
	t, done, err := s.view(ctx, r.GetSession(), r.GetWorkspaceGeneration())
	if err != nil {
		return nil, status(err)
	}
	defer done()
	to, err := t.Resolve(filename.Decode(r.GetPath()))
	if err != nil {
		return nil, status(err)
	}
	return &sandboxv1.ResolvePathResponse{Path: filename.Encode(to)}, nil
}

func (s *fileServer) ListFiles(ctx context.Context, r *sandboxv1.ListFilesRequest) (*sandboxv1.ListFilesResponse, error) {
	t, done, err := s.view(ctx, r.GetSession(), r.GetWorkspaceGeneration())
	if err != nil {
		return nil, status(err)
	}
	defer done()
	k, err := key(ctx, r.GetSession())
	if err != nil {
		return nil, status(err)
	}
	list, method := t.List, "ListFiles"
	if r.GetRecursive() {
		list, method = t.ListAll, "ListFiles.recursive"
	}
	scope := strings.Join(append([]string{method, k.Tenant, k.Session, r.GetPath(), r.GetResolvedPath()}, r.GetIgnore()...), "\x00")
	var after []byte // bytes: a name may be anything
	if r.GetPageToken() != "" {
		if err := page.Decode(r.GetPageToken(), scope, &after); err != nil {
			return nil, status(err)
		}
	}
	name, err := t.bind(r)
	if err != nil {
		return nil, status(err)
	}
	all, more, err := list(ctx, name, string(after), page.Size(r.GetPageSize(), 1000, 10000), r.GetIgnore())
	if err != nil {
		return nil, status(err)
	}
	resp := &sandboxv1.ListFilesResponse{Files: fileInfos(all), LeftOut: t.Rules.LeftOut}
	n := fits(resp.GetFiles())
	if resp.Files = resp.Files[:n]; more || n < len(all) {
		last := all[n-1].Path
		if !r.GetRecursive() {
			last = last[strings.LastIndexByte(last, '/')+1:]
		}
		resp.NextPageToken = page.Encode(scope, []byte(last))
	}
	return resp, nil
}

func (s *fileServer) ReadFile(r *sandboxv1.ReadFileRequest, stream sandboxv1.FileService_ReadFileServer) error {
	if err := stream.SendHeader(metadata.MD{}); err != nil {
		return err
	}
	t, done, err := s.view(stream.Context(), r.GetSession(), r.GetWorkspaceGeneration())
	if err != nil {
		return status(err)
	}
	defer done()
	name, err := t.bind(r)
	if err != nil {
		return status(err)
	}
	f, err := t.Read(name)
	if err != nil {
		return status(err)
	}
	defer func() { _ = f.Close() }()
	head := &sandboxv1.ReadFileResponse{Kind: &sandboxv1.ReadFileResponse_File{File: fileInfo(f.Info)}}
	if err := stream.Send(head); err != nil {
		return err
	}
	send := func(b []byte) error {
		return stream.Send(&sandboxv1.ReadFileResponse{Kind: &sandboxv1.ReadFileResponse_Data{Data: b}})
	}
	l := r.GetLines()
	if l == nil {
		return f.Bytes(r.GetBytes().GetOffset(), r.GetBytes().GetLimit(), send)
	}
	part := files.Lines{First: l.GetFirst(), Count: l.GetCount(), MaxLine: l.GetMaxLineBytes(), Max: l.GetMaxBytes()}
	end, err := f.Lines(part, send)
	if err != nil {
		return status(err)
	}
	return stream.Send(&sandboxv1.ReadFileResponse{Kind: &sandboxv1.ReadFileResponse_End{
		End: &sandboxv1.ReadFileEnd{Lines: end.Lines, More: end.More, CutLines: end.Cut},
	}})
}

func (s *fileServer) GlobFiles(ctx context.Context, r *sandboxv1.GlobFilesRequest) (*sandboxv1.GlobFilesResponse, error) {
	t, done, err := s.view(ctx, r.GetSession(), r.GetWorkspaceGeneration())
	if err != nil {
		return nil, status(err)
	}
	defer done()
	name, err := t.bind(r)
	if err != nil {
		return nil, status(err)
	}
	all, more, err := t.Glob(ctx, r.GetPattern(), name, page.Size(r.GetMaxResults(), 100, 10000))
	if err != nil {
		return nil, status(err)
	}
	resp := &sandboxv1.GlobFilesResponse{Files: fileInfos(all), LeftOut: t.Rules.LeftOut}
	n := fits(resp.GetFiles())
	resp.Files, resp.Truncated = resp.Files[:n], more || n < len(all)
	return resp, nil
}

// Matches are sent in batches of at most this many, or this many bytes of text.
const (
	grepBatch      = 256
	grepBatchBytes = 128 << 10
)

func (s *fileServer) GrepFiles(r *sandboxv1.GrepFilesRequest, stream sandboxv1.FileService_GrepFilesServer) error {
	if err := stream.SendHeader(metadata.MD{}); err != nil {
		return err
	}
	t, done, err := s.view(stream.Context(), r.GetSession(), r.GetWorkspaceGeneration())
	if err != nil {
		return status(err)
	}
	defer done()
	name, err := t.bind(r)
	if err != nil {
		return status(err)
	}
	q := files.GrepQuery{
		Pattern: r.GetPattern(), Path: name, Glob: r.GetGlob(), IgnoreCase: r.GetIgnoreCase(), Multiline: r.GetMultiline(),
		Before: int(r.GetBefore()), After: int(r.GetAfter()), Max: page.Size(r.GetMaxLines(), 1000, 100000), Mode: grepMode(r.GetMode()),
	}
	batch, size := &sandboxv1.GrepFilesResponse{}, 0
	more, err := t.Grep(stream.Context(), q, func(m files.GrepMatch) error {
		batch.Matches = append(batch.Matches, &sandboxv1.GrepMatch{
			Path: filename.Encode(m.Path), Line: m.Line, Text: m.Text, Context: m.Context, Count: m.Count,
			CutBefore: m.CutBefore, CutAfter: m.CutAfter,
		})
		if size += len(m.Text) + len(m.Path); len(batch.Matches) < grepBatch && size < grepBatchBytes {
			return nil
		}
		full := batch
		batch, size = &sandboxv1.GrepFilesResponse{}, 0
		return stream.Send(full)
	})
	if err != nil {
		return status(err)
	}
	batch.Truncated, batch.LeftOut = more, t.Rules.LeftOut
	return stream.Send(batch)
}

func grepMode(m sandboxv1.GrepMode) files.GrepMode {
	switch m {
	case sandboxv1.GrepMode_GREP_MODE_FILES:
		return files.GrepFiles
	case sandboxv1.GrepMode_GREP_MODE_COUNT:
		return files.GrepCount
	}
	return files.GrepLines
}

func (s *fileServer) WatchFiles(r *sandboxv1.WatchFilesRequest, stream sandboxv1.FileService_WatchFilesServer) error {
	ctx := stream.Context()
	t, done, err := s.view(ctx, r.GetSession(), r.GetWorkspaceGeneration())
	if err != nil {
		return status(err)
	}
	defer done()
	if err := stream.SendHeader(metadata.MD{}); err != nil {
		return err
	}
	return status(t.Watch(ctx, filename.Decode(r.GetPath()), func(all []files.Changed) error {
		if len(all) == 0 { // the watch has begun
			return stream.Send(&sandboxv1.WatchFilesResponse{})
		}
		for told := changes(all); len(told) > 0; { // a folder may have appeared with its contents
			n := fits(told)
			if err := stream.Send(&sandboxv1.WatchFilesResponse{Changes: told[:n]}); err != nil {
				return err
			}
			told = told[n:]
		}
		return nil
	}))
}

func changes(all []files.Changed) []*sandboxv1.WatchedChange {
	told := make([]*sandboxv1.WatchedChange, 0, len(all))
	for _, c := range all {
		told = append(told, &sandboxv1.WatchedChange{
			Kind: sandboxv1.WatchedChangeKind(c.Kind), Path: filename.Encode(c.Path),
		})
	}
	return told
}
