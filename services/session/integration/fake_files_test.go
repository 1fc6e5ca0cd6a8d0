package integration

import (
	"context"
	"slices"

	"google.golang.org/grpc/codes"

	commonv1 "github.com/fairlead/fairlead/gen/go/fairlead/common/v1"
	sandboxv1 "github.com/fairlead/fairlead/gen/go/fairlead/sandbox/v1"
	"github.com/fairlead/fairlead/services/internal/kit/apierr"
)

// putFile makes an empty file in a session's workspace.
func (p *peers) putFile(session, path string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.paths[session+"/"+path] = true
}

// StatFile describes a file. A session has no workspace before EnsureWorkspace.
func (p *peers) StatFile(_ context.Context, r *sandboxv1.StatFileRequest) (*sandboxv1.StatFileResponse, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	made := slices.ContainsFunc(p.wanted, func(w *sandboxv1.EnsureWorkspaceRequest) bool { return w.GetCall().GetSession() == r.GetSession() })
	switch {
	case !made:
		return nil, apierr.Of(codes.NotFound, sandboxv1.ErrorReason_ERROR_REASON_WORKSPACE_NOT_FOUND, "no workspace")
	case r.GetPath() == "":
		return &sandboxv1.StatFileResponse{File: &sandboxv1.FileInfo{Type: sandboxv1.FileType_FILE_TYPE_DIRECTORY}}, nil
	case !p.paths[r.GetSession()+"/"+r.GetPath()]:
		return nil, noFile(r.GetPath())
	}
	return &sandboxv1.StatFileResponse{File: regular(r.GetPath())}, nil
}

func (p *peers) MoveFile(_ context.Context, r *sandboxv1.MoveFileRequest) (*sandboxv1.MoveFileResponse, error) {
	from, to := r.GetCall().GetSession()+"/"+r.GetPath(), r.GetCall().GetSession()+"/"+r.GetNewPath()
	err := p.changeFiles(r.GetCall(), "move "+from+" "+to, func() error {
		if !p.paths[from] {
			return noFile(r.GetPath())
		}
		delete(p.paths, from)
		p.paths[to] = true
		return nil
	})
	return &sandboxv1.MoveFileResponse{File: regular(r.GetNewPath())}, err
}

func (p *peers) DeleteFile(_ context.Context, r *sandboxv1.DeleteFileRequest) (*sandboxv1.DeleteFileResponse, error) {
	name := r.GetCall().GetSession() + "/" + r.GetPath()
	return &sandboxv1.DeleteFileResponse{}, p.changeFiles(r.GetCall(), "delete "+name, func() error {
		if !p.paths[name] {
			return noFile(r.GetPath())
		}
		delete(p.paths, name)
		return nil
	})
}

// changeFiles makes a change once a call.
func (p *peers) changeFiles(call *commonv1.CallRef, what string, do func() error) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := p.fence(call); err != nil {
		return err
	}
	switch p.fileCalls[call.GetCallId()] {
	case what:
		return nil
	case "":
		p.fileCalls[call.GetCallId()] = what
		return do()
	}
	return apierr.Of(codes.AlreadyExists, sandboxv1.ErrorReason_ERROR_REASON_CALL_ID_REUSED, "another change")
}

func noFile(path string) error {
	return apierr.Of(codes.NotFound, sandboxv1.ErrorReason_ERROR_REASON_FILE_NOT_FOUND, "there is no file "+path)
}

func regular(path string) *sandboxv1.FileInfo {
	return &sandboxv1.FileInfo{Path: path, Type: sandboxv1.FileType_FILE_TYPE_REGULAR}
}
