package repository

import (
	"bytes"
	"errors"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// errOutput means that Git's output violates its format.
var errOutput = errors.New("unexpected output of git: the repository is damaged, or hostile")

// Tail keeps the end of a command's output. The zero value is ready.
type Tail struct{ kept []byte }

// maxTail is how many bytes are kept.
const maxTail = 2 << 10

// Write implements io.Writer.
func (t *Tail) Write(b []byte) (int, error) {
	t.kept = append(t.kept, b...)
	if over := len(t.kept) - maxTail; over > 0 {
		t.kept = slices.Delete(t.kept, 0, over)
	}
	return len(b), nil
}

// String returns the end for people: without control characters, and with only the last version of an
// overwritten line.
func (t *Tail) String() string {
	var lines []string
	for line := range strings.SplitSeq(strings.ToValidUTF8(string(t.kept), "\uFFFD"), "\n") {
		line = strings.TrimRight(line, "\r")
		line = strings.Map(func(r rune) rune {
			if r < ' ' || r == 0x7f || r >= 0x80 && r < 0xa0 {
				return -1
			}
			return r
		}, line[strings.LastIndexByte(line, '\r')+1:])
		if line = strings.TrimSpace(line); line != "" && !progressForm.MatchString(line) {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, "; ")
}

// Bounded keeps the beginning of a command's output.
type Bounded struct {
	Most int // bytes
	Kept []byte
	Cut  bool
}

// Write implements io.Writer.
func (b *Bounded) Write(p []byte) (int, error) {
	n := min(len(p), b.Most-len(b.Kept))
	b.Kept = append(b.Kept, p[:n]...)
	b.Cut = b.Cut || n < len(p)
	return len(p), nil
}

var progressForm = regexp.MustCompile(`^(Counting objects|Compressing objects|Receiving objects|Resolving deltas|Updating files|Enumerating objects): +([0-9]{1,3})%`)

// Progress parses Git's progress and keeps the end of its other output.
type Progress struct {
	Tail
	// Report is called for new progress, at most a few times a second.
	Report func(phase string, percent int)

	line       []byte
	phase      string
	reportedAt time.Time
}

// progressPause is the shortest time between two calls of Tell for one phase.
const progressPause = 250 * time.Millisecond

// Write implements io.Writer.
func (p *Progress) Write(b []byte) (int, error) {
	for _, c := range b {
		if c != '\r' && c != '\n' {
			if len(p.line) < 512 {
				p.line = append(p.line, c)
			}
			continue
		}
		p.see()
		p.line = p.line[:0]
	}
	return p.Tail.Write(b)
}

func (p *Progress) see() {
	m := progressForm.FindSubmatch(p.line)
	if m == nil || p.Report == nil {
		return
	}
	phase := string(m[1])
	percent, _ := strconv.Atoi(string(m[2])) // three digits at most
	if percent > 100 || phase == p.phase && percent < 100 && time.Since(p.reportedAt) < progressPause {
		return
	}
	p.phase, p.reportedAt = phase, time.Now()
	p.Report(phase, percent)
}

// Description is a repository's description of itself.
type Description struct{ Directory, Branch, Commit, URL string }

// ParseDescription decodes the output of Describe, as far as it is plausible.
func ParseDescription(out []byte) []Description {
	fields := strings.Split(string(out), "\x00")
	var all []Description
	for ; len(fields) > 4; fields = fields[4:] {
		d := Description{Directory: fields[0], Branch: printable(fields[1], 250), URL: printable(fields[3], 2048)}
		if CheckName(d.Directory) != nil {
			continue
		}
		if IsCommit(fields[2]) {
			d.Commit = fields[2]
		}
		all = append(all, d)
	}
	return all
}

// printable returns a text, or an empty string if it is not printable.
func printable(s string, most int) string {
	if len(s) > most || strings.ToValidUTF8(s, "") != s || strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r == 0x7f }) {
		return ""
	}
	return s
}

// Pushed is the result of a push.
type Pushed struct {
	Old      string // empty: the branch is new
	UpToDate bool
	Rejected string // why the remote rejected it; empty: accepted
}

// ParsePush decodes the standard output of PushCommit.
func ParsePush(out []byte, commit, branch string) (Pushed, error) {
	for line := range bytes.SplitSeq(out, []byte("\n")) {
		fields := strings.Split(string(line), "\t")
		if len(fields) != 3 || fields[1] != commit+":refs/heads/"+branch {
			continue
		}
		switch fields[0] {
		case "=":
			return Pushed{Old: commit, UpToDate: true}, nil
		case "*":
			return Pushed{}, nil
		case " ":
			before, after, found := strings.Cut(fields[2], "..")
			if !found || !IsCommit(before) || after != commit {
				return Pushed{}, errOutput
			}
			return Pushed{Old: before}, nil
		case "!":
			return Pushed{Rejected: printable(fields[2], 500)}, nil
		}
	}
	return Pushed{}, errOutput
}
