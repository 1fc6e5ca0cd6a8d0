package mcp

import (
	"regexp"
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"

	commonv1 "github.com/fairlead/fairlead/gen/go/fairlead/common/v1"
)

// Hidden stands for a value that is not shown.
const Hidden = "(hidden)"

var (
	// reference is `${NAME}` or `${NAME:-text}`.
	reference = regexp.MustCompile(`\$\{([A-Za-z_][A-Za-z0-9_]*)(:-[^}]*)?\}`)
	// shown is a value that has no secret itself: one reference, perhaps behind the name of a scheme.
	shown = regexp.MustCompile(`^([A-Za-z]+ )?\$\{[A-Za-z_][A-Za-z0-9_]*\}$`)
)

// MissingError names the variables that a server needs and the user does not have.
type MissingError struct{ Names []string }

// Error names them.
func (e *MissingError) Error() string {
	return "the user has no variable " + strings.Join(e.Names, ", ")
}

// resolver replaces references.
type resolver struct {
	variables map[string]string
	missing   []string
}

func (r *resolver) text(in string) string {
	return reference.ReplaceAllStringFunc(in, func(ref string) string {
		m := reference.FindStringSubmatch(ref)
		if value, ok := r.variables[m[1]]; ok {
			return value
		}
		if text, ok := strings.CutPrefix(m[2], ":-"); ok {
			return text
		}
		r.missing = append(r.missing, m[1])
		return ref
	})
}

func (r *resolver) values(in map[string]string) map[string]string {
	if len(in) == 0 {
		return in
	}
	out := make(map[string]string, len(in))
	for name, value := range in {
		out[name] = r.text(value)
	}
	return out
}

func (r *resolver) list(in []string) []string {
	var out []string
	for _, text := range in {
		out = append(out, r.text(text))
	}
	return out
}

// Resolve returns a server with the values of variables in place of the references to them. The
// error is a *MissingError.
func Resolve(s *commonv1.McpServer, variables map[string]string) (*commonv1.McpServer, error) {
	r := &resolver{variables: variables}
	out := proto.CloneOf(s)
	if p := out.GetStdio(); p != nil {
		p.Command, p.Args, p.Env = r.text(p.Command), r.list(p.Args), r.values(p.Env)
	}
	if p := out.GetHttp(); p != nil {
		p.Url, p.Headers = r.text(p.Url), r.values(p.Headers)
		if p.Oauth != nil {
			p.Oauth.ClientSecret = r.text(p.Oauth.ClientSecret)
		}
	}
	if len(r.missing) > 0 {
		slices.Sort(r.missing)
		return nil, &MissingError{slices.Compact(r.missing)}
	}
	return out, nil
}

// Show returns servers as they may be shown. A value that is not only a reference may be a
// secret.
func Show(all []*commonv1.McpServer) []*commonv1.McpServer {
	var out []*commonv1.McpServer
	for _, s := range all {
		s = proto.CloneOf(s)
		hide(s.GetStdio().GetEnv())
		hide(s.GetHttp().GetHeaders())
		if o := s.GetHttp().GetOauth(); o != nil {
			o.ClientSecret = hidden(o.ClientSecret)
		}
		out = append(out, s)
	}
	return out
}

func hide(values map[string]string) {
	for name, value := range values {
		values[name] = hidden(value)
	}
}

func hidden(value string) string {
	if value == "" || shown.MatchString(value) {
		return value
	}
	return Hidden
}
