package permission

import (
	"fmt"
	"strings"
)

// subject is a request, prepared for its rules.
type subject struct {
	Request
	path   string // relative to the workspace
	inside bool   // whether the path is
	parsed *script
}

// newSubject prepares a request. The command is taken apart only when a rule
// looks into it.
func newSubject(q Request, p *Profile) subject {
	s := subject{Request: q}
	switch {
	case q.Tool == "Bash" && p.looksIntoCommands():
		s.parsed = parseScript(q.Command)
	case pathTools[q.Tool] != nil:
		s.path, s.inside = workspacePath(q.Path)
	}
	return s
}

// restricts reports whether a deny or ask rule matches; in doubt it does.
func (s subject) restricts(r rule) bool {
	switch {
	case !r.covers(s.Tool):
		return false
	case r.command != nil:
		return s.parsed.opaque != "" || s.parsed.anyMatches(r)
	case r.paths != nil:
		return !s.inside || r.paths.match(s.path)
	default:
		return true
	}
}

// doubt explains why a rule was taken to match.
func (s subject) doubt(r rule) string {
	switch {
	case r.command != nil && s.parsed.opaque != "" && !s.parsed.anyMatches(r):
		return " (cannot be ruled out: " + s.parsed.opaque + ")"
	case r.paths != nil && !s.inside:
		return " (cannot be ruled out: the path leads outside the workspace)"
	default:
		return ""
	}
}

// allowed reports whether the rules together allow the request, and which did.
func (s subject) allowed(rules []rule) (string, bool) {
	for _, r := range rules {
		if !r.covers(s.Tool) || r.command != nil {
			continue
		}
		if r.paths == nil || s.inside && r.paths.match(s.path) {
			return r.text, true
		}
	}
	if s.parsed == nil || s.parsed.complex != "" || len(s.parsed.commands) == 0 {
		return "", false
	}
	var used []string
	for _, c := range s.parsed.commands {
		text, ok := c.allowedBy(rules)
		if !ok {
			return "", false
		}
		if len(used) == 0 || used[len(used)-1] != text {
			used = append(used, text)
		}
	}
	return strings.Join(used, ", "), true
}

// missing says what no rule allows.
func (s subject) missing(rules []rule) string {
	byCommand, byPath := false, false
	for _, r := range rules {
		byCommand = byCommand || r.command != nil && s.parsed != nil
		byPath = byPath || r.paths != nil && r.covers(s.Tool)
	}
	switch {
	case byCommand && s.parsed.complex != "":
		return "this command: " + s.parsed.complex + ", which only a rule for every command (Bash) allows"
	case byCommand:
		for _, c := range s.parsed.commands {
			if _, ok := c.allowedBy(rules); !ok {
				return fmt.Sprintf("the command %q", clip(c.raw))
			}
		}
		return "an empty command"
	case byPath && !s.inside:
		return s.Tool + " outside the workspace"
	case byPath:
		return fmt.Sprintf("%s on %q", s.Tool, clip(s.path))
	default:
		return s.Tool
	}
}

// clip cuts what a model wrote for an explanation.
func clip(s string) string {
	const limit = 120
	if r := []rune(s); len(r) > limit {
		return string(r[:limit]) + "…"
	}
	return s
}
