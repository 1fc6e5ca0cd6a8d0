package permission

import (
	"fmt"
	"slices"
	"strings"
)

// subject is a request, prepared for the rules.
type subject struct {
	Request
	mode   Mode
	path   string // relative to the workspace
	leads  string // its target; the path if that was not requested
	inside bool   // whether both are inside, as far as is known
	doubt  string // why that is unknown or false
	parsed *script
	meter  *meter
	free   []bool // by command, whether all rules allow it without a question; nil until that is known
}

// newSubject prepares a request. It parses the command only if a rule needs that.
func newSubject(q Request, looks bool, mode Mode, m *meter) *subject {
	s := &subject{Request: q, mode: mode, meter: m}
	switch {
	case q.Tool == bash && looks:
		s.parsed = parseScript(q.Command, m)
	case pathTools[q.Tool] != nil:
		s.place()
	}
	return s
}

// place sets the path and its target.
func (s *subject) place() {
	if !s.meter.spend(len(s.Path) + len(s.Leads)) {
		s.doubt = tooMuch
		return
	}
	if s.path, s.inside = workspacePath(s.Path); !s.inside {
		s.doubt = "the path leads outside the workspace"
		return
	}
	s.leads = s.path
	if s.Leads != "" {
		s.leads, s.inside = workspacePath(s.Leads)
	}
	if s.doubt = s.Doubt; s.doubt != "" {
		s.inside = false
	}
}

// covers reports whether a rule on paths matches the path or its target.
func (s *subject) covers(r *rule) bool {
	return s.onPath(r, s.path) || s.leads != s.path && s.onPath(r, s.leads)
}

// onPath reports whether a rule on paths matches one path. Once there are too many steps, the place of the path is in doubt.
func (s *subject) onPath(r *rule, path string) bool {
	if !s.meter.spend(r.paths.steps(path)) {
		s.inside, s.doubt = false, tooMuch
		return false
	}
	return r.paths.match(path)
}

// onName reports whether a rule on names matches the request's. Once there are too many steps, it is not known.
func (s *subject) onName(r *rule) bool {
	if s.Name != "" && !s.meter.spend(matchSteps+len(s.Name)/4) {
		s.Name = ""
	}
	return s.Name != "" && r.named.match(s.Name)
}

// restricts reports whether a deny or ask rule matches; in doubt it does.
func (s *subject) restricts(r *rule) bool {
	switch {
	case !r.limits(s.Tool):
		return false
	case r.command != nil:
		// The last one is set by too many steps.
		return s.parsed.opaque != "" || s.parsed.may(r) && (s.parsed.anyMatches(r) || s.parsed.mayMatch(r) != nil) || s.parsed.opaque != ""
	case r.paths != nil:
		return !s.inside || s.covers(r) || !s.inside
	case r.named != nil:
		return s.onName(r) || s.Name == ""
	default:
		return true
	}
}

// sure reports whether a rule that restricts does so for what is known of the request.
func (s *subject) sure(r *rule) bool {
	switch {
	case r.command != nil:
		return s.parsed.anyMatches(r)
	case r.paths != nil:
		return s.inside
	case r.named != nil:
		return s.Name != ""
	default:
		return true
	}
}

// reason explains why a rule matches although the text as written does not.
func (s *subject) reason(r *rule) string {
	switch {
	case r.command != nil:
		return s.parsed.reason(r)
	case r.paths != nil && !s.inside:
		return " (cannot be ruled out: " + s.doubt + ")"
	case r.named != nil && s.Name == "":
		return " (cannot be ruled out: the call names nothing)"
	case r.paths != nil && !s.onPath(r, s.path):
		return fmt.Sprintf(" (the path leads to %q)", clip(s.leads))
	case r.showsTo(s.Tool):
		return fmt.Sprintf(" (%s shows lines of the file)", s.Tool)
	default:
		return ""
	}
}

// allowed reports whether the rules together allow the request, and names the
// rule.
func (s *subject) allowed(rules []rule) (string, bool) {
	if text, ok := s.allowedWhole(rules); ok {
		return text, true
	}
	if s.parsed == nil || s.parsed.complex != "" || len(s.parsed.commands) == 0 {
		return "", false
	}
	var used []string
	for i := range s.parsed.commands {
		text, ok := s.parsed.commands[i].allowedBy(rules, s.meter)
		if !ok {
			return "", false
		}
		if len(used) < maxUsed && !slices.Contains(used, text) {
			used = append(used, text)
		}
	}
	if len(used) == maxUsed {
		used[maxUsed-1] = "and others"
	}
	return strings.Join(used, ", "), true
}

// maxUsed bounds the rules that a decision names: each command of a script may be allowed by another one.
const maxUsed = 10

// allowedWhole reports whether rules allow the request as a whole: every call of the
// tool, its path, or just this command, whatever is in it.
func (s *subject) allowedWhole(rules []rule) (string, bool) {
	if s.Tool == bash {
		whole := strings.TrimSpace(s.Command)
		for i := range rules {
			if p := rules[i].command; p != nil {
				if text, ok := p.exact(); ok && text == whole {
					return rules[i].text, true
				}
			}
		}
	}
	return s.allowedPath(rules)
}

// allowedPath reports whether a rule allows every call of the tool, or rules allow
// both the path and its target.
func (s *subject) allowedPath(rules []rule) (string, bool) {
	written, leads := "", ""
	for i := range rules {
		r := &rules[i]
		switch {
		case r.command != nil || !r.covers(s.Tool):
		case r.named != nil:
			if s.onName(r) {
				return r.text, true
			}
		case r.paths == nil:
			return r.text, true
		case s.inside:
			if written == "" && s.onPath(r, s.path) {
				written = r.text
			}
			if leads == "" && s.onPath(r, s.leads) {
				leads = r.text
			}
		}
	}
	if written == leads {
		return written, written != ""
	}
	return written + ", " + leads, written != "" && leads != ""
}

// missing says what no rule allows.
func (s *subject) missing(rules []rule) string {
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
			if _, ok := c.allowedBy(rules, s.meter); !ok {
				return fmt.Sprintf("the command %q", clip(c.raw))
			}
		}
		return "an empty command"
	case byPath && !s.inside:
		return s.Tool + ": " + s.doubt
	case byPath && s.leads != s.path:
		return fmt.Sprintf("%s on %q, which leads to %q", s.Tool, clip(s.path), clip(s.leads))
	case byPath:
		return fmt.Sprintf("%s on %q", s.Tool, clip(s.path))
	case slices.Contains(namingTools, s.Tool) && s.Name != "":
		return fmt.Sprintf("%s of %q", s.Tool, clip(s.Name))
	default:
		return s.Tool
	}
}

// clip shortens a model's text for an explanation.
func clip(s string) string {
	const limit = 120
	if r := []rune(s); len(r) > limit {
		return string(r[:limit]) + "…"
	}
	return s
}
