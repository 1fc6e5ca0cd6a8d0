package mcp

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"unicode/utf8"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

const (
	// prefix begins the name of every tool of a server.
	prefix = "mcp__"
	// maxName is the longest name that all model APIs take.
	maxName = 64
)

// modelNames returns the names under which models know a server's tools: `mcp__{server}__{tool}`.
// Characters that model APIs refuse become `_`. A name that is too long, or that another
// tool has, ends in a digest of the server's own name, so that it does not depend on the
// order of the list. A tool that is listed twice has no name the second time.
func modelNames(server string, tools []*mcp.Tool) []string {
	names := make([]string, len(tools))
	own := map[string]int{}   // by the server's name
	count := map[string]int{} // by the plain name
	for i, t := range tools {
		if _, twice := own[t.Name]; twice || t.Name == "" {
			continue
		}
		own[t.Name] = i
		names[i] = prefix + server + "__" + safe(t.Name)
		count[names[i]]++
	}
	taken := map[string]bool{}
	for i, t := range tools {
		if exact := names[i] == prefix+server+"__"+t.Name; exact && len(names[i]) <= maxName {
			taken[names[i]] = true
		}
	}
	for i, t := range tools {
		exact := names[i] == prefix+server+"__"+t.Name
		if names[i] == "" || exact && len(names[i]) <= maxName {
			continue
		}
		if count[names[i]] > 1 || len(names[i]) > maxName {
			sum := sha256.Sum256([]byte(t.Name))
			end := "_" + hex.EncodeToString(sum[:4])
			names[i] = names[i][:min(len(names[i]), maxName-len(end))] + end
		}
		if taken[names[i]] {
			names[i] = ""
			continue
		}
		taken[names[i]] = true
	}
	return names
}

// safe replaces the characters that model APIs refuse in names.
func safe(name string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '-', r == '_':
			return r
		default:
			return '_'
		}
	}, name)
}

// cut shortens a text at a character boundary.
func cut(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	for limit > 0 && !utf8.RuneStart(s[limit]) {
		limit--
	}
	return s[:limit] + "…"
}
