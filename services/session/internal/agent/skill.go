package agent

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	sandboxv1 "github.com/fairlead/fairlead/gen/go/fairlead/sandbox/v1"
	"github.com/fairlead/fairlead/services/session/internal/claudecode/relaytree"
)

// SkillTool is the tool with which the model reads the instructions of a skill.
const SkillTool = "Skill"

// CreateTool and EditTool make agents and change them, which the session does.
const (
	CreateTool = "create_agent"
	EditTool   = "edit_agent"
)

// MaxSkills bounds the skills of a session.
const MaxSkills = 32

// Skill is a skill that a session keeps to.
type Skill struct {
	Name string `json:"name"`
	// User is the user to whom it belongs; empty for the tenant's and the operator's.
	User string `json:"user,omitempty"`
	// Version is 0 for the operator's.
	Version     int32  `json:"version,omitempty"`
	Description string `json:"description"`
	// Digest is the SHA-256 of its files, and Store names the place of the files of all its versions; empty for
	// the operator's.
	Digest string `json:"digest"`
	Store  string `json:"store,omitempty"`
}

// Path returns the skill's folder for commands and tools.
func (s Skill) Path() string { return "/skills/" + s.Name }

// Label returns the skill's name, with its version if it has one.
func (s Skill) Label() string {
	if s.Version == 0 {
		return s.Name
	}
	return s.Name + "@" + strconv.Itoa(int(s.Version))
}

// SplitSkill splits `name@version`; version 0 means the newest.
func SplitSkill(asked string) (name string, version int32, err error) {
	name, number, has := strings.Cut(asked, "@")
	if !has {
		return name, 0, nil
	}
	n, err := strconv.ParseInt(number, 10, 32)
	if err != nil || n < 1 {
		return name, 0, fmt.Errorf("%q: what follows the @ is not the number of a version", asked)
	}
	return name, int32(n), nil
}

// checkSkills checks only the names: which skills there are depends on the user.
func checkSkills(all []string) error {
	if len(all) > MaxSkills {
		return fmt.Errorf("%d skills are more than %d", len(all), MaxSkills)
	}
	var names []string
	for _, asked := range all {
		name, _, err := SplitSkill(asked)
		switch {
		case asked == Every && !slices.Contains(names, Every):
		case err != nil:
			return err
		case name == "" || len(name) > 64 || strings.Trim(name, "abcdefghijklmnopqrstuvwxyz0123456789-") != "":
			return fmt.Errorf("%q is not a skill's name: it has lower-case letters, digits and dashes", asked)
		case slices.Contains(names, name):
			return fmt.Errorf("skill %q is named twice", name)
		}
		names = append(names, name)
	}
	return nil
}

// WithSkills returns the spec of a session with skills. It has the tool to read them.
func (s Spec) WithSkills(all []Skill) Spec {
	s.PinnedSkills = all
	if len(all) > 0 && !slices.Contains(s.Tools, SkillTool) {
		s.Tools = append(slices.Clip(s.Tools), SkillTool)
	}
	return s
}

// Skill returns a skill of the session by its name.
func (s Spec) Skill(name string) (Skill, bool) {
	i := slices.IndexFunc(s.PinnedSkills, func(x Skill) bool { return x.Name == name })
	if i < 0 {
		return Skill{}, false
	}
	return s.PinnedSkills[i], true
}

// SkillLabels returns the session's skills as Session.skills shows them.
func (s Spec) SkillLabels() (all []string) {
	for _, x := range s.PinnedSkills {
		all = append(all, x.Label())
	}
	return all
}

// workspaceTrees returns the folders of the session's skills and of a runtime. An empty list removes those of the
// session's earlier agent.
func (s Spec) workspaceTrees(runtime string) *sandboxv1.WorkspaceTrees {
	t := &sandboxv1.WorkspaceTrees{}
	for _, x := range s.PinnedSkills {
		t.Trees = append(t.Trees, &sandboxv1.WorkspaceTree{Name: x.Name, Digest: x.Digest})
	}
	if relay, err := relaytree.Get(); err == nil && runtime == ClaudeCodeCLI {
		t.Trees = append(t.Trees, &sandboxv1.WorkspaceTree{Name: relaytree.Name, Digest: relay.Digest})
	}
	return t
}

// maxSkillPrompt bounds what the prompt says about all skills together, in bytes.
const maxSkillPrompt = 16 << 10

// SkillPrompt returns what the system prompt says about the session's skills. The model reads the
// instructions only when it needs a skill.
func (s Spec) SkillPrompt() string {
	if len(s.PinnedSkills) == 0 || !slices.Contains(s.Tools, SkillTool) { // a subagent may not have the tool
		return ""
	}
	var b strings.Builder
	b.WriteString("You have skills: folders with instructions, and perhaps scripts, for certain tasks. When a task fits the description of a skill, " +
		"call the tool " + SkillTool + " with its name before you begin, and follow what it returns. The files of a skill cannot be changed.\n")
	each := maxSkillPrompt / len(s.PinnedSkills)
	for _, x := range s.PinnedSkills {
		fmt.Fprintf(&b, "\n- %s (%s): %s", x.Name, x.Path(), shorten(x.Description, each))
	}
	return b.String()
}

// shorten cuts a text to a number of bytes.
func shorten(text string, most int) string {
	if len(text) <= most {
		return text
	}
	for most > 0 && !utf8.RuneStart(text[most]) {
		most--
	}
	return text[:most] + "…"
}
