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

// options precede every Git command: a repository cannot make Git run a program of its own, and Git runs
// only what was asked for.
var options = []string{
	"-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false", "-c", "core.protectHFS=true", "-c", "core.protectNTFS=true",
	"-c", "core.pager=cat", "-c", "credential.helper=", "-c", "gc.auto=0", "-c", "maintenance.auto=false", "-c", "submodule.recurse=false",
	"-c", "advice.detachedHead=false", "-c", "init.defaultBranch=main", "-c", "http.lowSpeedLimit=1000", "-c", "http.lowSpeedTime=60",
}

func git(args ...string) []string { return append(append([]string{"git"}, options...), args...) }

// Environment returns Git's environment in every sandbox: only our configuration, only HTTPS, no prompts.
func Environment(home string) []string {
	return []string{
		"HOME=" + home, "XDG_CONFIG_HOME=" + home, "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=/dev/null", "GIT_ATTR_NOSYSTEM=1",
		"GIT_TERMINAL_PROMPT=0", "GIT_ASKPASS=", "SSH_ASKPASS=", "GIT_ALLOW_PROTOCOL=https", "GIT_PROTOCOL_FROM_USER=0",
		"GIT_OPTIONAL_LOCKS=0", "GIT_LFS_SKIP_SMUDGE=1", "LC_ALL=C.UTF-8",
		"NO_PROXY=", "no_proxy=", // Git uses the way out for every host
	}
}

var (
	refForm    = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_./+@#=-]*$`)
	commitForm = regexp.MustCompile(`^([0-9a-f]{40}|[0-9a-f]{64})$`)
	nameForm   = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$`)
)

// CheckRef refuses names that Git does not allow for a branch or a tag, and a few others.
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

// CheckName refuses an invalid directory of a repository.
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

// Resolve returns the command that prints the commit of a full reference or a commit id.
func Resolve(dir, ref string) []string {
	return git("-C", dir, "rev-parse", "--quiet", "--verify", "--end-of-options", ref+"^{commit}")
}

// Checkout returns the command that switches to a new branch at a reference. The branch tracks the
// reference if that is a remote's branch and track is set.
func Checkout(branch, at string, track bool) []string {
	how := "--no-track"
	if track {
		how = "--track"
	}
	return git("-C", CloneDir, "checkout", "--progress", "--force", "--no-recurse-submodules", how, "-B", branch, at, "--")
}

// CheckoutHead returns the command that switches to the remote's default branch.
func CheckoutHead() []string {
	return git("-C", CloneDir, "checkout", "--progress", "--force", "--no-recurse-submodules", "HEAD", "--")
}

// Detach returns the command that checks out a commit.
func Detach(at string) []string {
	return git("-C", CloneDir, "checkout", "--progress", "--force", "--no-recurse-submodules", "--detach", at, "--")
}

// Init returns the command that makes a repository in a directory.
func Init(dir, branch string) []string {
	return git("init", "--quiet", "--template=", "--initial-branch="+branch, "--", dir)
}

// SetRemote returns the command that sets a new repository's remote.
func SetRemote(dir string, u URL) []string {
	return git("-C", dir, "remote", "add", "origin", u.String())
}

// newBranch makes a branch, if there is a commit, and switches to it. It does not read files, for which Git
// would run filters that the repository names.
const newBranch = `branch=refs/heads/$1; shift
if at=$("$@" rev-parse -q --verify HEAD); then "$@" update-ref "$branch" "$at" "" || exit; fi
"$@" symbolic-ref HEAD "$branch"`

// NewBranch returns the command that makes a branch at the current commit and switches to it.
func NewBranch(dir, branch string) []string {
	return append([]string{"sh", "-c", newBranch, "sh", branch}, git("-C", dir)...)
}

// Branch returns the command that prints the commit of a branch.
func Branch(dir, branch string) []string {
	return git("-C", dir, "for-each-ref", "--format=%(objectname) %(refname)", "refs/heads/"+branch)
}

// Containing returns the command that prints a branch of the remote that contains a commit.
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

// Objects returns the variable that makes the prepared repository find the objects in a directory.
func Objects(dir string) string { return "GIT_ALTERNATE_OBJECT_DIRECTORIES=" + dir }

// PushCommit returns the command that pushes a commit to a branch of the remote, never by force.
func PushCommit(u URL, commit, branch string) []string {
	return git("-c", "core.abbrev=no", "-C", pushDir, "push", "--porcelain", "--no-verify", "--no-follow-tags", "--recurse-submodules=no",
		"--", u.String(), commit+":refs/heads/"+branch)
}

// describe prints four fields for each directory, each followed by a zero byte. It reads no object: for a
// missing one Git would ask a remote, with helpers that the repository names.
const describe = `for d in "$@"; do printf '%s\0%s\0%s\0%s\0' "$d" "$(git -C "$d" symbolic-ref -q --short HEAD)" ` +
	`"$(git -C "$d" rev-parse -q --verify HEAD)" "$(git -C "$d" config --get remote.origin.url)"; done`

// Describe returns the command that prints the input of ParseDescription, for directories below its working
// directory.
func Describe(dirs []string) []string {
	return append([]string{"sh", "-c", describe, "sh"}, dirs...)
}
