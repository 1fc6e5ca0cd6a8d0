package repository

import (
	"bytes"
	"strconv"
	"strings"

	"github.com/fairlead/fairlead/services/internal/kit/filename"
)

// maxChanges is how many changed files are reported.
const maxChanges = 1000

// Status is a repository's status.
type Status struct {
	Branch, Commit, Upstream string
	Ahead, Behind            int
	Changes                  []Change
	Truncated                bool
}

// Change is a file that differs.
type Change struct {
	Path, Old       string
	Index, Worktree string // Git's letters; empty: no difference
}

// ParseStatus decodes the output of StatusCommand (porcelain version 2, zero bytes between the entries).
// cut means that the end is missing; then the rest counts.
func ParseStatus(out []byte, cut bool) (Status, error) {
	var s Status
	for len(out) > 0 {
		entry, rest, whole := bytes.Cut(out, []byte{0})
		out = rest
		if !whole { // the last entry is incomplete
			if !cut {
				return Status{}, errOutput
			}
			break
		}
		if bytes.HasPrefix(entry, []byte("# ")) {
			s.header(string(entry[2:]))
			continue
		}
		change, renamed, err := parseChange(string(entry))
		if err != nil {
			return Status{}, err
		}
		if renamed {
			old, rest, whole := bytes.Cut(out, []byte{0})
			if out = rest; !whole {
				if !cut {
					return Status{}, errOutput
				}
				break
			}
			change.Old = filename.Encode(string(old))
		}
		if len(s.Changes) == maxChanges {
			cut = true
			break
		}
		s.Changes = append(s.Changes, change)
	}
	s.Truncated = cut
	return s, nil
}

// header parses one line about the branch. It ignores unknown lines.
func (s *Status) header(line string) {
	name, value, _ := strings.Cut(line, " ")
	switch name {
	case "branch.oid":
		if IsCommit(value) {
			s.Commit = value
		}
	case "branch.head":
		if value != "(detached)" {
			s.Branch = printable(value, 250)
		}
	case "branch.upstream":
		s.Upstream = printable(value, 500)
	case "branch.ab":
		ahead, behind, _ := strings.Cut(value, " ")
		s.Ahead, s.Behind = count(ahead, "+"), count(behind, "-")
	}
}

func count(s, sign string) int {
	digits, found := strings.CutPrefix(s, sign)
	n, err := strconv.ParseInt(digits, 10, 32)
	if !found || err != nil || n < 0 {
		return 0
	}
	return int(n)
}

// fieldsBefore is how many fields precede the path, by the kind of an entry.
var fieldsBefore = map[string]int{"1": 8, "2": 9, "u": 10, "?": 1}

func parseChange(entry string) (c Change, renamed bool, err error) {
	kind, _, _ := strings.Cut(entry, " ")
	before, known := fieldsBefore[kind]
	parts := strings.SplitN(entry, " ", before+1)
	if !known || len(parts) != before+1 || parts[before] == "" {
		return Change{}, false, errOutput
	}
	c.Path = filename.Encode(parts[before])
	if kind == "?" {
		c.Worktree = "?"
		return c, false, nil
	}
	letters := parts[1]
	if len(letters) != 2 || strings.Trim(letters, ".MTADRCU") != "" {
		return Change{}, false, errOutput
	}
	c.Index, c.Worktree = strings.Trim(letters[:1], "."), strings.Trim(letters[1:], ".")
	return c, kind == "2", nil
}
