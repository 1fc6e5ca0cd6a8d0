package builtin

import (
	"context"

	sandboxv1 "github.com/fairlead/fairlead/gen/go/fairlead/sandbox/v1"
	"github.com/fairlead/fairlead/services/tools/internal/tool"
)

// Resolve asks the sandbox for the target of a path.
func (s *sandbox) Resolve(ctx context.Context, c tool.Call, path string) (leads, doubt string, err error) {
	if bad := badPath(path); bad != nil {
		return "", tool.Text(bad), nil
	}
	found, err := s.files.ResolvePath(to(ctx, c), &sandboxv1.ResolvePathRequest{Session: c.Session, Path: path, WorkspaceGeneration: c.WorkspaceGeneration})
	if err == nil {
		return found.GetPath(), "", nil
	}
	told, err := failure(ctx, err, path)
	return "", tool.Text(told), err
}
