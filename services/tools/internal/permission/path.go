package permission

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/bmatcuk/doublestar/v4"
	"golang.org/x/text/unicode/norm"

	"github.com/fairlead/fairlead/services/internal/kit/filename"
)

// workspace is the path of the workspace for commands and the model, and skills that of the folders of
// skills beside it.
const (
	workspace = "/workspace"
	skills    = "/skills"
)

// pathPattern is the pattern in Read(…) and similar rules. It is relative to the
// workspace or absolute below it, as in a .gitignore file: without a slash in the
// middle it matches at any depth, and a directory covers everything in it. It also
// matches paths that contain its brackets, braces and backslashes literally: `[id]`
// is a directory of that name as well as `i` and `d`. Letters match in every Unicode
// form.
type pathPattern struct {
	globs []string
	// forms are the globs with their letters in one Unicode form, where that is another one.
	forms []string
	// cost is the number of steps for each byte of a path.
	cost int
}

// maxGlobs bounds the globs that the braces of a path pattern stand for, since each of them is tried.
const maxGlobs = 256

func newPathPattern(spec string) (*pathPattern, error) {
	anchored := strings.Contains(strings.TrimSuffix(spec, "/"), "/")
	rel, ok := workspacePath(filename.ParsePattern(spec))
	if !ok {
		return nil, errors.New("the path leads outside /workspace and /skills and would never match")
	}
	if rel == "." {
		rel = "**"
	}
	if !anchored && rel != "**" {
		rel = "**/" + rel
	}
	if !doublestar.ValidatePattern(rel) {
		return nil, errors.New("the path pattern is not valid")
	}
	many := filename.Alternatives(rel, maxGlobs)
	if many > maxGlobs {
		return nil, fmt.Errorf("its braces stand for more than %d paths; write several rules", maxGlobs)
	}
	p := &pathPattern{cost: len(rel) * many}
	for _, glob := range []string{rel, literally.Replace(rel)} {
		if len(p.globs) == 0 || glob != rel {
			p.globs = append(p.globs, glob, strings.TrimSuffix(glob, "/**")+"/**")
		}
	}
	for _, g := range p.globs {
		if form := norm.NFC.String(g); form != g {
			p.forms = append(p.forms, form)
		}
	}
	return p, nil
}

// steps bounds the steps of a match.
func (p *pathPattern) steps(path string) int { return 1 + p.cost*(1+len(path)) }

// literally quotes brackets, braces and backslashes.
var literally = strings.NewReplacer(`\`, `\\`, `[`, `\[`, `]`, `\]`, `{`, `\{`, `}`, `\}`)

// match reports whether the pattern covers a path that workspacePath returned.
func (p *pathPattern) match(rel string) bool {
	if slices.ContainsFunc(p.globs, func(g string) bool { return doublestar.MatchUnvalidated(g, rel) }) {
		return true
	}
	form := norm.NFC.String(rel)
	return (len(p.forms) > 0 || form != rel) &&
		slices.ContainsFunc(slices.Concat(p.globs, p.forms), func(g string) bool { return doublestar.MatchUnvalidated(g, form) })
}

// workspacePath makes a path relative to the workspace, like the sandbox; a path
// below /skills stays absolute. It returns false for one that leads outside.
func workspacePath(p string) (string, bool) {
	if strings.ContainsRune(p, 0) {
		return "", false
	}
	if path.IsAbs(p) {
		clean := path.Clean(p)
		if clean == skills || strings.HasPrefix(clean, skills+"/") {
			return clean, true
		}
		if clean != workspace && !strings.HasPrefix(clean, workspace+"/") {
			return "", false
		}
		p = strings.TrimPrefix(strings.TrimPrefix(clean, workspace), "/")
	}
	rel := path.Clean(p)
	if rel == ".." || strings.HasPrefix(rel, "../") {
		return "", false
	}
	return rel, true
}
