package server

import (
	"cmp"
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
	"github.com/fairlead/fairlead/services/internal/kit/filename"
	"github.com/fairlead/fairlead/services/sandbox/internal/box"
	"github.com/fairlead/fairlead/services/sandbox/internal/diskspace"
	"github.com/fairlead/fairlead/services/sandbox/internal/files"
	"github.com/fairlead/fairlead/services/sandbox/internal/snapshot"
)

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
	w, release, err := s.node.View(c.Key, c.Generation)
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
	name, err := t.bind(start)
	if err != nil {
		return status(err)
	}
	sum, epoch, err := receive(stream, t.account(w, name), d)
	if err != nil {
		return status(err)
	}
	c.Epoch = cmp.Or(epoch, c.Epoch)
	resp, err := s.put(c, t, d, name, start, sum)
	if err != nil {
		return status(err)
	}
	return stream.SendAndClose(resp)
}

// receive writes the data of a stream into a draft. It returns the data's hash, and the epoch at its end if
// the caller sent one.
func receive(stream sandboxv1.FileService_WriteFileServer, to account, d *files.Draft) (sum []byte, epoch int64, err error) {
	hash := sha256.New()
	for {
		r, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return hash.Sum(nil), epoch, nil
		}
		if err != nil {
			return nil, 0, err
		}
		switch kind := r.GetKind().(type) {
		case *sandboxv1.WriteFileRequest_Epoch:
			epoch = kind.Epoch
			continue
		case *sandboxv1.WriteFileRequest_Start:
			return nil, 0, invalid("kind", "only the first request may be `start`")
		}
		hash.Write(r.GetData())
		if _, err := d.Write(r.GetData()); err != nil {
			return nil, 0, err
		}
		if err := to.reserve(d.Size(), 1); err != nil {
			return nil, 0, err
		}
	}
}

func (s *fileServer) put(c box.Call, t *space, d *files.Draft, name string, start *sandboxv1.WriteFileStart, sum []byte) (*sandboxv1.WriteFileResponse, error) {
	request, err := json.Marshal([]any{start.GetPath(), start.GetMode(), start.GetIfEtag(), start.GetCreateOnly(), sum})
	if err != nil {
		return nil, err
	}
	raw, err := s.node.Mutate(c, box.Change{
		Method: "write", Request: request, Failure: failure,
		Do: func(w *box.Workspace, intend func([]byte) error) ([]byte, error) {
			to := files.Target{Mode: start.GetMode(), IfEtag: start.GetIfEtag(), CreateOnly: start.GetCreateOnly()}
			resp := &sandboxv1.WriteFileResponse{}
			info, created, err := place(w, t, d, name, to, intend, func(i files.Info, created bool) proto.Message {
				resp.File, resp.Created = fileInfo(i), created
				return resp
			})
			if err != nil {
				return nil, err
			}
			resp.File, resp.Created = fileInfo(info), created
			return proto.Marshal(resp)
		},
	})
	if err != nil {
		return nil, err
	}
	resp := &sandboxv1.WriteFileResponse{}
	return resp, proto.Unmarshal(raw, resp)
}

// place puts a draft in place within the workspace's limits. It first journals the step and the answer.
func place(w *box.Workspace, t *space, d *files.Draft, name string, to files.Target, intend func([]byte) error, answer func(i files.Info, created bool) proto.Message) (files.Info, bool, error) {
	var grown, inodes int64
	counted := t.account(w, name)
	to.Before = func(p files.RenameStep, i files.Info, replaces int64) error {
		grown, inodes = d.Size()-max(replaces, 0), 0
		if replaces < 0 {
			inodes = 1
		}
		if err := counted.reserve(grown, inodes); err != nil {
			return err
		}
		return journalRename(p, answer(i, replaces < 0), intend)
	}
	info, created, err := t.Put(d, name, to)
	if err == nil {
		counted.changed(grown, inodes)
	}
	return info, created, err
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
	var d *files.Draft
	defer func() {
		if d != nil { // only once it is known not to be in place
			d.Discard()
		}
	}()
	raw, err := s.node.Mutate(c, box.Change{
		Method: "edit", Request: request, Failure: failure,
		Do: func(w *box.Workspace, intend func([]byte) error) (got []byte, err error) {
			d, got, err = edit(ctx, w, r, edits, intend)
			return got, err
		},
	})
	if err != nil {
		return nil, status(err)
	}
	resp := &sandboxv1.EditFileResponse{}
	return resp, proto.Unmarshal(raw, resp)
}

// edit edits a file and fails if it changes meanwhile. The caller discards the draft.
func edit(ctx context.Context, w *box.Workspace, r *sandboxv1.EditFileRequest, edits []files.Edit, intend func([]byte) error) (*files.Draft, []byte, error) {
	t, err := openSpace(ctx, w)
	if err != nil {
		return nil, nil, err
	}
	defer func() { _ = t.Close() }()
	name, err := t.bind(r)
	if err != nil {
		return nil, nil, err
	}
	e, err := t.Edit(name, edits)
	if err != nil {
		return nil, nil, err
	}
	d, err := t.Draft()
	if err != nil {
		return nil, nil, err
	}
	if _, err := d.Write(e.Content); err != nil {
		return d, nil, fmt.Errorf("write the edited file: %w", err)
	}
	resp := &sandboxv1.EditFileResponse{Replacements: e.Replacements, Snippet: e.Snippet, SnippetFirstLine: e.FirstLine}
	to := files.Target{IfEtag: e.Etag, CreateOnly: e.Etag == ""}
	info, _, err := place(w, t, d, name, to, intend, func(i files.Info, _ bool) proto.Message {
		short := &sandboxv1.EditFileResponse{File: fileInfo(i), Replacements: e.Replacements}
		if len(e.Snippet) <= longSnippet {
			short.Snippet, short.SnippetFirstLine = e.Snippet, e.FirstLine
		}
		return short
	})
	if err != nil {
		return d, nil, err
	}
	resp.File = fileInfo(info)
	got, err := proto.Marshal(resp)
	return d, got, err
}

// longSnippet is the longest snippet, in bytes, that is journaled for the answer of an interrupted edit.
const longSnippet = 2 << 10

func (s *fileServer) DeleteFile(ctx context.Context, r *sandboxv1.DeleteFileRequest) (*sandboxv1.DeleteFileResponse, error) {
	c, err := call(ctx, r.GetCall())
	if err != nil {
		return nil, status(err)
	}
	request, err := json.Marshal([]any{r.GetPath(), r.GetRecursive()})
	if err != nil {
		return nil, err
	}
	_, err = s.node.Mutate(c, box.Change{
		Method: "delete", Request: request, Failure: failure,
		Do: func(w *box.Workspace, intend func([]byte) error) ([]byte, error) {
			t, err := openSpace(ctx, w)
			if err != nil {
				return nil, err
			}
			defer func() { _ = t.Close() }()
			name := filename.Decode(r.GetPath())
			defer t.account(w, name).recount()
			return nil, t.Remove(name, r.GetRecursive(), func(p files.RenameStep) error { return journalRename(p, nil, intend) })
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
	raw, err := s.node.Mutate(c, box.Change{
		Method: "move", Request: request, Failure: failure,
		Do: func(w *box.Workspace, intend func([]byte) error) ([]byte, error) {
			t, err := openSpace(ctx, w)
			if err != nil {
				return nil, err
			}
			defer func() { _ = t.Close() }()
			from, to := filename.Decode(r.GetPath()), filename.Decode(r.GetNewPath())
			defer t.account(w, from).recount()
			info, err := t.Move(from, to, r.GetOverwrite(), func(p files.RenameStep) error {
				return journalRename(p, &sandboxv1.MoveFileResponse{}, intend)
			})
			if err != nil {
				return nil, err
			}
			return proto.Marshal(&sandboxv1.MoveFileResponse{File: fileInfo(info)})
		},
	})
	if err != nil {
		return nil, status(err)
	}
	resp := &sandboxv1.MoveFileResponse{}
	return resp, proto.Unmarshal(raw, resp)
}

// failure encodes the error of a change if it is about the change itself: then the call ends with it.
func failure(err error) []byte {
	if errors.Is(err, diskspace.ErrFull) || errors.Is(err, box.ErrMountsInUse) || errors.Is(err, snapshot.ErrChanged) {
		return nil // a retry may succeed
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
