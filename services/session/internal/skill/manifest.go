package skill

import (
	"bytes"
	"fmt"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
)

// Manifest is what SKILL.md says.
type Manifest struct {
	Name         string
	Description  string
	License      string
	AllowedTools []string // for people: they give no permission
	Body         string   // the instructions, without the front matter
}

const (
	maxManifest    = 128 << 10
	maxFrontMatter = 16 << 10
	maxDescription = 1024 // characters
	maxLicense     = 500
	maxTools       = 100
)

var nameForm = regexp.MustCompile(`^[a-z0-9]+(-[a-z0-9]+)*$`)

// tools reads a list of tools, or one text with commas or spaces between them.
type tools []string

// UnmarshalYAML implements yaml.Unmarshaler.
func (t *tools) UnmarshalYAML(n *yaml.Node) error {
	if n.Kind == yaml.SequenceNode {
		return n.Decode((*[]string)(t))
	}
	var text string
	if err := n.Decode(&text); err != nil {
		return err
	}
	*t = splitTools(text)
	return nil
}

// splitTools splits at commas and spaces that are not in brackets, as in `Bash(git add *), Read`.
func splitTools(text string) []string {
	depth := 0
	return strings.FieldsFunc(text, func(r rune) bool {
		switch r {
		case '(':
			depth++
		case ')':
			depth--
		}
		return depth <= 0 && (r == ',' || unicode.IsSpace(r))
	})
}

// parse reads a SKILL.md. It names every fault.
func parse(content []byte) (*Manifest, error) {
	if len(content) > maxManifest {
		return nil, broken(manifestName, "it has %d bytes, and may have %d: put details into further files", len(content), maxManifest)
	}
	if !utf8.Valid(content) || bytes.IndexByte(content, 0) >= 0 {
		return nil, broken(manifestName, "it is not UTF-8 text")
	}
	front, body, err := split(string(content))
	if err != nil {
		return nil, err
	}
	var x struct {
		Name         string `yaml:"name"`
		Description  string `yaml:"description"`
		License      string `yaml:"license"`
		AllowedTools tools  `yaml:"allowed-tools"`
	}
	if err := yaml.Unmarshal([]byte(front), &x); err != nil {
		return nil, broken(manifestName, "its front matter is not valid YAML: %s", strings.TrimPrefix(err.Error(), "yaml: "))
	}
	m := &Manifest{Name: x.Name, Description: strings.Join(strings.Fields(x.Description), " "), License: x.License, AllowedTools: x.AllowedTools, Body: body}
	if faults := m.faults(); len(faults) > 0 {
		return nil, &Error{faults}
	}
	return m, nil
}

// split separates the front matter from the body.
func split(text string) (front, body string, err error) {
	text = strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(text)
	text = strings.TrimLeftFunc(text, func(r rune) bool { return unicode.IsSpace(r) || zeroWidth(r) })
	first, rest, _ := strings.Cut(text, "\n")
	if visible(first) != "---" {
		return "", "", broken(manifestName, "it does not begin with front matter: a line `---`, name and description, and a line `---`")
	}
	var lines []string
	for more := true; more; {
		var line string
		line, rest, more = strings.Cut(rest, "\n")
		if line = visible(line); line == "---" {
			if front = strings.Join(lines, "\n"); len(front) > maxFrontMatter {
				return "", "", broken(manifestName, "its front matter has more than %d bytes", maxFrontMatter)
			}
			return front, strings.TrimSpace(rest), nil
		}
		lines = append(lines, line)
	}
	return "", "", broken(manifestName, "its front matter does not end: a line `---` is missing")
}

// visible returns a line without characters that have no width, which programs leave in files, and with plain spaces in
// place of others. YAML reads both as part of a name or value.
func visible(line string) string {
	line = strings.Map(func(r rune) rune {
		switch {
		case zeroWidth(r):
			return -1
		case unicode.Is(unicode.Zs, r):
			return ' '
		}
		return r
	}, line)
	return strings.TrimRight(line, " \t")
}

// zeroWidth reports whether a character is invisible.
func zeroWidth(r rune) bool {
	return r == '\uFEFF' || r == '\u2060' || r == '\u00AD' || '\u200B' <= r && r <= '\u200F'
}

// CheckName returns an error for what is no name of a skill.
func CheckName(name string) error {
	if len(name) > 64 || !nameForm.MatchString(name) {
		return fmt.Errorf("%q is not a name: it has 1 to 64 lower-case letters, digits and single dashes between them", clip(name))
	}
	return nil
}

func (m *Manifest) faults() (all []Fault) {
	fault := func(bad bool, format string, args ...any) {
		if bad {
			all = append(all, Fault{manifestName, fmt.Sprintf(format, args...)})
		}
	}
	fault(m.Name == "", "name is missing")
	if err := CheckName(m.Name); m.Name != "" && err != nil {
		fault(true, "name: %v", err)
	}
	fault(m.Description == "", "description is missing: it tells an agent what the skill is for, and when to use it")
	fault(utf8.RuneCountInString(m.Description) > maxDescription, "description has more than %d characters", maxDescription)
	fault(strings.ContainsFunc(m.Description+m.License, func(r rune) bool { return !unicode.IsPrint(r) && r != '\n' }), "description or license has a control character")
	fault(len(m.License) > maxLicense, "license has more than %d bytes", maxLicense)
	fault(len(m.AllowedTools) > maxTools, "allowed-tools names more than %d tools", maxTools)
	for _, t := range m.AllowedTools {
		fault(len(t) > 256, "allowed-tools: %s is too long", clip(t))
	}
	return all
}
