//go:build linux

package sandbox

import (
	"errors"
	"fmt"

	"github.com/fairlead/fairlead/services/sandbox/internal/box"
	"github.com/fairlead/fairlead/services/sandbox/internal/quota"
	"github.com/fairlead/fairlead/services/sandbox/internal/runner/pool"
)

// openQuota tests whether the file system limits the size of workspaces; nil if it does not. If it is
// chosen by name, that is an error.
func (s *Service) openQuota(c Config, level, data string, owners box.Owners) (box.Quota, error) {
	switch {
	case c.WorkspaceQuota == QuotaCounted:
		return nil, nil //nolint:nilnil // a valid answer
	case level != LevelFull && c.WorkspaceQuota == QuotaProject:
		return nil, errors.New("workspace-quota: project needs the level `full`: choose `counted`, or that level")
	case level != LevelFull:
		return nil, nil //nolint:nilnil // as above
	}
	o := box.Owner{UID: owners.Base, GID: owners.Base}
	p, err := quota.Open(data, uint32(c.UIDBase), quota.As{
		UID: o.UID, GID: o.GID, Do: func(f func() error) error { return pool.As(o, f) },
	})
	switch {
	case err == nil:
		return projects{p}, nil
	case c.WorkspaceQuota == QuotaAuto && errors.Is(err, quota.ErrUnavailable):
		s.log.Info("the size of workspaces is counted", "why", err)
		return nil, nil //nolint:nilnil // as above
	}
	return nil, fmt.Errorf("workspace-quota: %w: mount the file system of %s with project quotas, or choose `counted`", err, data)
}

// projects implements box.Quota.
type projects struct{ *quota.Projects }

// Keep implements box.Quota.
func (p projects) Keep(slot int, bytes, inodes int64, folders ...string) error {
	return p.Set(slot, quota.Limit{Bytes: bytes, Inodes: inodes}, folders...)
}

func quotaKind(q box.Quota) string {
	if q == nil {
		return QuotaCounted
	}
	return QuotaProject
}
