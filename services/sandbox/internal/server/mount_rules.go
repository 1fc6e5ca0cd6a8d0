package server

import (
	"github.com/fairlead/fairlead/services/internal/kit/filename"
	"github.com/fairlead/fairlead/services/sandbox/internal/files"
)

// ruled is a request whose caller decides by path.
type ruled interface {
	GetPath() string
	GetResolvedPath() string
}

// bind applies the rules of a request to the space and returns the path to open.
func (s *space) bind(r ruled) (string, error) {
	given, resolved := filename.Decode(r.GetPath()), filename.Decode(r.GetResolvedPath())
	var denied []string
	if search, ok := r.(interface{ GetDenied() []string }); ok {
		denied = search.GetDenied()
	}
	rules, err := files.NewRules(given, resolved != "", denied)
	if err != nil {
		return "", err
	}
	s.Rules = rules
	if rules.NoLinks {
		return resolved, nil
	}
	return given, nil
}
