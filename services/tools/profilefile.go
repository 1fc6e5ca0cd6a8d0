package tools

import (
	commonv1 "github.com/fairlead/fairlead/gen/go/fairlead/common/v1"
	"github.com/fairlead/fairlead/services/internal/kit/config"
	"github.com/fairlead/fairlead/services/tools/internal/policy"
)

// ProfileFile reads a YAML file with the keys of one profile of tools.profiles. Only the
// server knows whether the rules are valid.
func ProfileFile(name string) (*commonv1.PermissionRules, error) {
	var p Profile
	if err := config.Load(&p, config.Options{Name: "the profile", Args: []string{"--config=" + name}, Environ: []string{}}); err != nil {
		return nil, err
	}
	return policy.Proto(p), nil
}
