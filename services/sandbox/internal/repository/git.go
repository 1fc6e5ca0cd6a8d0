package repository

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// Where Git works in a sandbox beside the session's own.
const (
	CloneDir = "/workspace/clone"
	pushDir  = "/workspace/push.git"
)

// options go before every command of Git: nothing that a repository says may run a
// program of its own, and nothing runs besides what was asked for.
var options = []string{
	"-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false", "-c", "core.protectHFS=true", "-c", "core.protectNTFS=true",
	"-c", "core.pager=cat", "-c", "credential.helper=", "-c", "gc.auto=0", "-c", "maintenance.auto=false", "-c", "submodule.recurse=false",
	"-c", "advice.detachedHead=false", "-c", "init.defaultBranch=main", "-c", "http.lowSpeedLimit=1000", "-c", "http.lowSpeedTime=60",
}

func git(args ...string) []string { return append(append([]string{"git"}, options...), args...) }

// Environment is Git's, in every sandbox: no configuration but ours, HTTPS alone, no
// question to anybody.
func Environment(home string) []string {
	return []string{
		"HOME=" + home, "XDG_CONFIG_HOME=" + home, "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=/dev/null", "GIT_ATTR_NOSYSTEM=1",
		"GIT_TERMINAL_PROMPT=0", "GIT_ASKPASS=", "SSH_ASKPASS=", "GIT_ALLOW_PROTOCOL=https", "GIT_PROTOCOL_FROM_USER=0",
		"GIT_OPTIONAL_LOCKS=0", "GIT_LFS_SKIP_SMUDGE=1", "LC_ALL=C.UTF-8",
		"NO_PROXY=", "no_proxy=", // whatever Git reaches, it reaches by the way out
	}
}

var (
	refForm    = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_./+@#=-]*$`)
	commitForm = regexp.MustCompile(`^([0-9a-f]{40}|[0-9a-f]{64})$`)
	nameForm   = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$`)
)

// CheckRef refuses what is no name of a branch or a tag for Git, and a few that are.
func CheckRef(s string) error {
	bad := !refForm.MatchString(s) || len(s) > 250 || strings.Contains(s, "..") || strings.Contains(s, "@{") || strings.Contains(s, "//")
	for part := range strings.SplitSeq(s, "/") {
		bad = bad || strings.HasPrefix(part, ".") || strings.HasSuffix(part, ".") || strings.HasSuffix(part, ".lock")
	}
	if bad || s == "HEAD" || strings.HasSuffix(s, "/") {
		return fmt.Errorf("the name %q of a branch or reference is %w", s, ErrInvalid)
	}
	return nil
}

// CheckName refuses what is no directory of a repository.
func CheckName(s string) error {
	if !nameForm.MatchString(s) {
		return fmt.Errorf("the directory %q is %w: letters, digits, dots, dashes and underscores, at most 100", s, ErrInvalid)
	}
	return nil
}

// IsCommit reports whether s is a full commit id.
func IsCommit(s string) bool { return commitForm.MatchString(s) }

// Clone returns the command that clones a repository without checking out its files.
func Clone(u URL, depth int) []string {
	args := []string{"clone", "--progress", "--no-checkout", "--no-recurse-submodules", "--template=", "--origin", "origin"}
	if depth > 0 {
		args = append(args, "--depth", strconv.Itoa(depth), "--no-single-branch")
	}
	return git(append(args, "--", u.String(), CloneDir)...)
}

// FetchCommit returns the command that fetches a commit that no branch of a clone leads to.
func FetchCommit(commit string, depth int) []string {
	args := []string{"-C", CloneDir, "fetch", "--progress", "--no-recurse-submodules", "--no-tags"}
	if depth > 0 {
		args = append(args, "--depth", strconv.Itoa(depth))
	}
	return git(append(args, "--", "origin", commit)...)
}

// Resolve prints the commit that a full reference or a commit id leads to.
func Resolve(dir, ref string) []string {
	return git("-C", dir, "rev-parse", "--quiet", "--verify", "--end-of-options", ref+"^{commit}")
}

// Checkout stands on a new branch at a reference, which it follows when it is a
// remote's branch and track is set.
func Checkout(branch, at string, track bool) []string {
	how := "--no-track"
	if track {
		how = "--track"
	}
	return git("-C", CloneDir, "checkout", "--progress", "--force", "--no-recurse-submodules", how, "-B", branch, at, "--")
}

// CheckoutHead stands on the remote's default branch.
func CheckoutHead() []string {
	return git("-C", CloneDir, "checkout", "--progress", "--force", "--no-recurse-submodules", "HEAD", "--")
}

// Detach stands on a commit.
func Detach(at string) []string {
	return git("-C", CloneDir, "checkout", "--progress", "--force", "--no-recurse-submodules", "--detach", at, "--")
}

// Init makes a repository out of a directory.
func Init(dir, branch string) []string {
	return git("init", "--quiet", "--template=", "--initial-branch="+branch, "--", dir)
}

// SetRemote names a new repository's remote.
func SetRemote(dir string, u URL) []string {
	return git("-C", dir, "remote", "add", "origin", u.String())
}

// newBranch makes a branch, if there is a commit, and stands on it. It does not look at files, for
// which Git runs filters that the repository names.
const newBranch = `branch=refs/heads/$1; shift
if at=$("$@" rev-parse -q --verify HEAD); then "$@" update-ref "$branch" "$at" "" || exit; fi
"$@" symbolic-ref HEAD "$branch"`

// NewBranch makes a branch where a repository stands, and switches to it.
func NewBranch(dir, branch string) []string {
	return append([]string{"sh", "-c", newBranch, "sh", branch}, git("-C", dir)...)
}

// Branch prints the commit of a branch.
func Branch(dir, branch string) []string {
	return git("-C", dir, "for-each-ref", "--format=%(objectname) %(refname)", "refs/heads/"+branch)
}

// Containing prints a branch that the remote had, if one holds a commit.
func Containing(dir, commit string) []string {
	return git("-C", dir, "for-each-ref", "--count=1", "--contains="+commit, "--format=%(refname)", "refs/remotes/")
}

// PreparePush returns the command that makes an empty repository of our own: a push reads only its
// configuration.
func PreparePush(commit string) []string {
	args := []string{"init", "--quiet", "--bare", "--template="}
	if len(commit) == 64 {
		args = append(args, "--object-format=sha256")
	}
	return git(append(args, "--", pushDir)...)
}

// ShallowFile is where the prepared repository records which history is cut off, below its sandbox's
// /workspace.
const ShallowFile = "push.git/shallow"

// Objects has the prepared repository find the objects in a directory.
func Objects(dir string) string { return "GIT_ALTERNATE_OBJECT_DIRECTORIES=" + dir }

// PushCommit brings a commit to a branch of the remote. It never forces.
func PushCommit(u URL, commit, branch string) []string {
	return git("-c", "core.abbrev=no", "-C", pushDir, "push", "--porcelain", "--no-verify", "--no-follow-tags", "--recurse-submodules=no",
		"--", u.String(), commit+":refs/heads/"+branch)
}

// describe prints four fields for each directory, each ended by a zero byte. It reads no object:
// for one that is missing Git would ask a remote, with helpers that the repository names.
const describe = `for d in "$@"; do printf '%s\0%s\0%s\0%s\0' "$d" "$(git -C "$d" symbolic-ref -q --short HEAD)" ` +
	`"$(git -C "$d" rev-parse -q --verify HEAD)" "$(git -C "$d" config --get remote.origin.url)"; done`

// Describe prints what ParseDescription reads, of directories below the one in which
// it runs.
func Describe(dirs []string) []string {
	return append([]string{"sh", "-c", describe, "sh"}, dirs...)
}
