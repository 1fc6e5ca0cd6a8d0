package server

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	grpcstatus "google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	sandboxv1 "github.com/fairlead/fairlead/gen/go/fairlead/sandbox/v1"
	"github.com/fairlead/fairlead/services/internal/kit/apierr"
	"github.com/fairlead/fairlead/services/sandbox/internal/box"
	"github.com/fairlead/fairlead/services/sandbox/internal/files"
	"github.com/fairlead/fairlead/services/sandbox/internal/room"
)

// intent identifies a change that took effect although nobody was told.
type intent struct {
	Path   string `json:"path"`
	Inode  uint64 `json:"inode"`
	Answer []byte `json:"answer"` // without the file's description
}

func (s *fileServer) WriteFile(stream sandboxv1.FileService_WriteFileServer) error {
	first, err := stream.Recv()
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	start := first.GetStart()
	if start == nil {
		return invalid("kind", "the first request must be `start`")
	}
	ctx := stream.Context()
	c, err := call(ctx, start.GetCall())
	if err != nil {
		return status(err)
	}
	w, release, err := s.node.View(c.Key, start.GetWorkspaceGeneration())
	if err != nil {
		return status(err)
	}
	defer release()
	t, err := openSpace(ctx, w)
	if err != nil {
		return status(err)
	}
	defer func() { _ = t.Close() }()
	d, err := t.Draft()
	if err != nil {
		return status(err)
	}
	defer d.Discard()
	sum, err := receive(stream, t.account(w, start.GetPath()), d)
	if err != nil {
		return status(err)
	}
	resp, err := s.put(c, t, d, start, sum)
	if err != nil {
		return status(err)
	}
	return stream.SendAndClose(resp)
}

// receive writes the data of a stream into a draft, and returns its hash.
func receive(stream sandboxv1.FileService_WriteFileServer, to account, d *files.Draft) ([]byte, error) {
	hash := sha256.New()
	for {
		r, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return hash.Sum(nil), nil
		}
		if err != nil {
			return nil, err
		}
		data, ok := r.GetKind().(*sandboxv1.WriteFileRequest_Data)
		if !ok {
			return nil, invalid("kind", "only the first request may be `start`")
		}
		hash.Write(data.Data)
		if _, err := d.Write(data.Data); err != nil {
			return nil, err
		}
		if err := to.reserve(d.Size(), 1); err != nil {
			return nil, err
		}
	}
}

func (s *fileServer) put(c box.Call, t *space, d *files.Draft, start *sandboxv1.WriteFileStart, sum []byte) (*sandboxv1.WriteFileResponse, error) {
	request, err := json.Marshal([]any{start.GetPath(), start.GetMode(), start.GetIfEtag(), start.GetCreateOnly(), sum})
	if err != nil {
		return nil, err
	}
	raw, err := s.node.Mutate(c, start.GetWorkspaceGeneration(), box.Change{
		Method: "write", Request: request, Failure: failure,
		Do: func(w *box.Workspace, intend func([]byte) error) ([]byte, error) {
			to := files.Target{Mode: start.GetMode(), IfEtag: start.GetIfEtag(), CreateOnly: start.GetCreateOnly()}
			resp := &sandboxv1.WriteFileResponse{}
			info, created, err := place(w, t, d, start.GetPath(), to, intend, func(created bool) proto.Message {
				resp.Created = created
				return resp
			})
			if err != nil {
				return nil, err
			}
			resp.File, resp.Created = fileInfo(info), created
			return proto.Marshal(resp)
		},
		Recover: func(_ *box.Workspace, raw []byte) ([]byte, bool) {
			resp := &sandboxv1.WriteFileResponse{}
			return recovered(t, raw, resp, func(i *sandboxv1.FileInfo) { resp.File = i })
		},
	})
	if err != nil {
		return nil, err
	}
	resp := &sandboxv1.WriteFileResponse{}
	return resp, proto.Unmarshal(raw, resp)
}

// place puts a draft in place within the workspace's limits, after writing down
// what it is about to do. answer is what will be answered, but for the file.
func place(w *box.Workspace, t *space, d *files.Draft, name string, to files.Target, intend func([]byte) error, answer func(created bool) proto.Message) (files.Info, bool, error) {
	var grown, inodes int64
	counted := t.account(w, name)
	to.Before = func(inode uint64, replaces int64) error {
		grown, inodes = d.Size()-max(replaces, 0), 0
		if replaces < 0 {
			inodes = 1
		}
		if err := counted.reserve(grown, inodes); err != nil {
			return err
		}
		raw, err := proto.Marshal(answer(replaces < 0))
		if err != nil {
			return err
		}
		note, err := json.Marshal(intent{Path: name, Inode: inode, Answer: raw})
		if err != nil {
			return err
		}
		return intend(note)
	}
	info, created, err := t.Put(d, name, to)
	if err == nil {
		counted.changed(grown, inodes)
	}
	return info, created, err
}

// recovered completes the answer of a change whose file is in its place.
func recovered(t *space, raw []byte, resp proto.Message, file func(*sandboxv1.FileInfo)) ([]byte, bool) {
	var n intent
	if json.Unmarshal(raw, &n) != nil {
		return nil, false
	}
	inode, info := t.Inode(n.Path)
	if inode == 0 || inode != n.Inode || proto.Unmarshal(n.Answer, resp) != nil {
		return nil, false
	}
	file(fileInfo(info))
	out, err := proto.Marshal(resp)
	return out, err == nil
}

func (s *fileServer) EditFile(ctx context.Context, r *sandboxv1.EditFileRequest) (*sandboxv1.EditFileResponse, error) {
	c, err := call(ctx, r.GetCall())
	if err != nil {
		return nil, status(err)
	}
	edits := make([]files.Edit, 0, len(r.GetEdits()))
	for _, e := range r.GetEdits() {
		edits = append(edits, files.Edit{Old: e.GetOldText(), New: e.GetNewText(), All: e.GetReplaceAll()})
	}
	request, err := json.Marshal([]any{r.GetPath(), edits})
	if err != nil {
		return nil, err
	}
	raw, err := s.node.Mutate(c, r.GetWorkspaceGeneration(), box.Change{
		Method: "edit", Request: request, Failure: failure,
		Do: func(w *box.Workspace, intend func([]byte) error) ([]byte, error) {
			return edit(ctx, w, r.GetPath(), edits, intend)
		},
		Recover: func(w *box.Workspace, raw []byte) ([]byte, bool) {
			t, err := openSpace(ctx, w)
			if err != nil {
				return nil, false
			}
			defer func() { _ = t.Close() }()
			resp := &sandboxv1.EditFileResponse{}
			return recovered(t, raw, resp, func(i *sandboxv1.FileInfo) { resp.File = i })
		},
	})
	if err != nil {
		return nil, status(err)
	}
	resp := &sandboxv1.EditFileResponse{}
	return resp, proto.Unmarshal(raw, resp)
}

// edit edits a file, if nobody else changes it meanwhile.
func edit(ctx context.Context, w *box.Workspace, name string, edits []files.Edit, intend func([]byte) error) ([]byte, error) {
	t, err := openSpace(ctx, w)
	if err != nil {
		return nil, err
	}
	defer func() { _ = t.Close() }()
	e, err := t.Edit(name, edits)
	if err != nil {
		return nil, err
	}
	d, err := t.Draft()
	if err != nil {
		return nil, err
	}
	defer d.Discard()
	if _, err := d.Write(e.Content); err != nil {
		return nil, fmt.Errorf("write the edited file: %w", err)
	}
	resp := &sandboxv1.EditFileResponse{Replacements: e.Replacements, Snippet: e.Snippet, SnippetFirstLine: e.FirstLine}
	to := files.Target{IfEtag: e.Etag, CreateOnly: e.Etag == ""}
	info, _, err := place(w, t, d, name, to, intend, func(bool) proto.Message { return resp })
	if err != nil {
		return nil, err
	}
	resp.File = fileInfo(info)
	return proto.Marshal(resp)
}

func (s *fileServer) DeleteFile(ctx context.Context, r *sandboxv1.DeleteFileRequest) (*sandboxv1.DeleteFileResponse, error) {
	c, err := call(ctx, r.GetCall())
	if err != nil {
		return nil, status(err)
	}
	request, err := json.Marshal([]any{r.GetPath(), r.GetRecursive()})
	if err != nil {
		return nil, err
	}
	remove := func(w *box.Workspace) error {
		t, err := openSpace(ctx, w)
		if err != nil {
			return err
		}
		defer func() { _ = t.Close() }()
		defer t.account(w, r.GetPath()).recount()
		return t.Remove(r.GetPath(), r.GetRecursive())
	}
	_, err = s.node.Mutate(c, r.GetWorkspaceGeneration(), box.Change{
		Method: "delete", Request: request, Failure: failure,
		Do: func(w *box.Workspace, intend func([]byte) error) ([]byte, error) {
			if err := intend([]byte("{}")); err != nil {
				return nil, err
			}
			return nil, remove(w)
		},
		Recover: func(w *box.Workspace, _ []byte) ([]byte, bool) {
			err := remove(w)
			return nil, err == nil || errors.Is(err, files.ErrNotFound)
		},
	})
	if err != nil {
		return nil, status(err)
	}
	return &sandboxv1.DeleteFileResponse{}, nil
}

func (s *fileServer) MoveFile(ctx context.Context, r *sandboxv1.MoveFileRequest) (*sandboxv1.MoveFileResponse, error) {
	c, err := call(ctx, r.GetCall())
	if err != nil {
		return nil, status(err)
	}
	request, err := json.Marshal([]any{r.GetPath(), r.GetNewPath(), r.GetOverwrite()})
	if err != nil {
		return nil, err
	}
	raw, err := s.node.Mutate(c, r.GetWorkspaceGeneration(), box.Change{
		Method: "move", Request: request, Failure: failure,
		Do: func(w *box.Workspace, intend func([]byte) error) ([]byte, error) {
			t, err := openSpace(ctx, w)
			if err != nil {
				return nil, err
			}
			defer func() { _ = t.Close() }()
			defer t.account(w, r.GetPath()).recount()
			info, err := t.Move(r.GetPath(), r.GetNewPath(), r.GetOverwrite(), func(inode uint64) error {
				note, err := json.Marshal(intent{Path: r.GetNewPath(), Inode: inode})
				return errors.Join(err, intend(note))
			})
			if err != nil {
				return nil, err
			}
			return proto.Marshal(&sandboxv1.MoveFileResponse{File: fileInfo(info)})
		},
		Recover: func(w *box.Workspace, raw []byte) ([]byte, bool) { return moved(ctx, w, raw) },
	})
	if err != nil {
		return nil, status(err)
	}
	resp := &sandboxv1.MoveFileResponse{}
	return resp, proto.Unmarshal(raw, resp)
}

// moved answers a move whose file has its new name.
func moved(ctx context.Context, w *box.Workspace, raw []byte) ([]byte, bool) {
	var n intent
	if json.Unmarshal(raw, &n) != nil {
		return nil, false
	}
	t, err := openSpace(ctx, w)
	if err != nil {
		return nil, false
	}
	defer func() { _ = t.Close() }()
	inode, info := t.Identity(n.Path)
	if inode == 0 || inode != n.Inode {
		return nil, false
	}
	out, err := proto.Marshal(&sandboxv1.MoveFileResponse{File: fileInfo(info)})
	return out, err == nil
}

// failure encodes what a change failed with, if it is about the change: then the
// call ends with it.
func failure(err error) []byte {
	if errors.Is(err, room.ErrFull) {
		return nil // there may be room the next time
	}
	told := status(err)
	if apierr.ErrorDomain(told) != domain {
		return nil
	}
	raw, err := proto.Marshal(grpcstatus.Convert(told).Proto())
	if err != nil {
		return nil
	}
	return raw
}
