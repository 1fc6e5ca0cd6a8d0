package mount

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/fairlead/fairlead/services/sandbox/internal/bind"
	"github.com/fairlead/fairlead/services/sandbox/internal/box"
)

// tenantMark is replaced by the tenant in the path of workflows.
const tenantMark = "{tenant}"

// plainTenant matches a tenant that may be part of a path.
var plainTenant = regexp.MustCompile(`^[a-z0-9][a-z0-9_-]{0,62}$`)

// workflows returns the mount that every sandbox has.
func (s *Set) workflows(tenant string) box.Mount {
	own := box.Mount{Name: WorkflowsFolder, Alias: WorkflowsFolder}
	source := s.o.Workflows
	if strings.Contains(source, tenantMark) {
		if !plainTenant.MatchString(tenant) {
			return own
		}
		source = strings.ReplaceAll(source, tenantMark, tenant)
		f, err := bind.Folder(source)
		if err != nil {
			return own
		}
		_ = f.Close()
	}
	own.Source = source
	return own
}

func (s *Set) checkWorkflows() error {
	source := s.o.Workflows
	if source == "" {
		return nil
	}
	if before, _, ok := strings.Cut(source, tenantMark); ok {
		source = strings.TrimSuffix(before, "/")
	}
	if err := s.checkSource(source); err != nil {
		return fmt.Errorf("workflows: %w", err)
	}
	return nil
}
