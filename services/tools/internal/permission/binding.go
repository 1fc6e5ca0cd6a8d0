package permission

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
)

// AnyBinding is the binding of a request whose tool is not known: grants count whatever they are bound to.
const AnyBinding = "*"

// Part is a part of what a grant on a tool of a server is bound to: its name for people, and its text.
type Part struct{ Name, Text string }

// Bind returns the binding of a tool with some parts: a digest of each.
func Bind(parts ...Part) string {
	all := make([]string, len(parts))
	for i, p := range parts {
		sum := sha256.Sum256([]byte(p.Text))
		all[i] = p.Name + "=" + hex.EncodeToString(sum[:16])
	}
	return strings.Join(all, ",")
}

// holds reports whether a grant is bound to the tool of a request.
func (g *Grant) holds(s *subject) bool { return g.binding == s.Binding || s.Binding == AnyBinding }

// changed names the parts in which two bindings differ.
func changed(was, is string) string {
	var names []string
	for part := range strings.SplitSeq(is, ",") {
		if !strings.Contains(","+was+",", ","+part+",") {
			name, _, _ := strings.Cut(part, "=")
			names = append(names, name)
		}
	}
	if len(names) < 2 {
		return strings.Join(names, "")
	}
	last := len(names) - 1
	return strings.Join(names[:last], ", ") + " and " + names[last]
}

// outdated says why the newest grant on the tool of a request does not hold for it; empty without such a grant.
func outdated(s *subject, grants []Grant) string {
	for i := range grants {
		g := &grants[i]
		switch {
		case !g.rule.covers(s.Tool) || g.holds(s):
		case g.binding == "":
			return " (allowed by " + g.said + ", before grants were bound to the definition of a tool)"
		default:
			names := changed(g.binding, s.Binding)
			has := " has"
			if strings.HasSuffix(names, "s") || strings.Contains(names, " and ") {
				has = " have"
			}
			return " (allowed by " + g.said + ", but its " + names + has + " changed since)"
		}
	}
	return ""
}
