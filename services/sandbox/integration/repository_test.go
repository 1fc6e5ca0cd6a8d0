package integration

import (
	"bytes"
	"cmp"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	sandboxv1 "github.com/fairlead/fairlead/gen/go/fairlead/sandbox/v1"
	"github.com/fairlead/fairlead/services/sandbox"
	"github.com/fairlead/fairlead/services/sandbox/gittest"
)

const commit = "git -c user.name=Agent -c user.email=agent@example.com commit -q"

func TestARepositoryIsClonedChangedAndPushed(t *testing.T) {
	t.Parallel()
	f := gittest.New(t)
	first := f.Publish("app", map[string]string{"README.md": "hello\n", "src/main.go": "package main\n"})
	everywhere(t, func(t *testing.T, level string, change func(*sandbox.Config)) {
		c := open(t, level, change, allow(f))
		branch := "fairlead/" + level
		ask := &sandboxv1.CloneRepositoryRequest{Url: f.Repo("app"), Branch: branch}
		made, phases, err := c.clone(t, ask)
		if err != nil {
			t.Fatal(err)
		}
		if made.GetDirectory() != "app" || made.GetBranch() != branch || made.GetCommit() != first || made.GetUrl() != f.Repo("app") {
			t.Fatalf("made %v", made)
		}
		if !slices.Contains(phases, "Receiving objects") || slices.Contains(phases, "repeated") {
			t.Errorf("told %v", phases)
		}
		if again, phases, err := c.clone(t, ask); err != nil || !proto.Equal(again, made) || !slices.Equal(phases, []string{"repeated"}) {
			t.Errorf("the same call again: %v %v %v", again, phases, err)
		}
		r := c.bash(t, "cd repos/app && cat README.md && git status --short && git log --format=%an && echo more >> README.md && echo x > new && git mv src/main.go src/m.go")
		if r.out != "hello\nSomebody\n" || r.GetExitCode() != 0 {
			t.Fatalf("the agent sees %q %q", r.out, r.err)
		}
		st, err := c.repos.GetRepositoryStatus(t.Context(), &sandboxv1.GetRepositoryStatusRequest{Session: c.session, Directory: "app"})
		if err != nil {
			t.Fatal(err)
		}
		var files []string
		for _, x := range st.GetFiles() {
			files = append(files, x.GetIndex()+"|"+x.GetWorktree()+"|"+x.GetOldPath()+"|"+x.GetPath())
		}
		if want := []string{"|M||README.md", "R||src/main.go|src/m.go", "|?||new"}; !slices.Equal(files, want) || st.GetRepository().GetBranch() != branch {
			t.Errorf("status %v, want %v: %v", files, want, st)
		}
		if r := c.bash(t, "cd repos/app && git add -A && "+commit+" -m second && git rev-parse HEAD"); r.GetExitCode() != 0 {
			t.Fatal(r.err)
		} else if second := strings.TrimSpace(r.out); true {
			push := func() *sandboxv1.PushRepositoryResponse {
				p, err := c.repos.PushRepository(t.Context(), &sandboxv1.PushRepositoryRequest{Call: c.call(), Directory: "app", Url: f.Repo("app")})
				if err != nil {
					t.Fatal(err)
				}
				return p
			}
			if p := push(); p.GetRef() != "refs/heads/"+branch || p.GetOldCommit() != "" || p.GetNewCommit() != second || p.GetUpToDate() {
				t.Errorf("first push: %v", p)
			}
			if p := push(); !p.GetUpToDate() || p.GetOldCommit() != second || p.GetNewCommit() != second {
				t.Errorf("second push: %v", p)
			}
			c.bash(t, "cd repos/app && echo y > y && git add -A && "+commit+" -m third")
			if p := push(); p.GetOldCommit() != second || p.GetNewCommit() == second || p.GetUpToDate() {
				t.Errorf("third push: %v", p)
			}
			if got := f.Git("-C", f.Dir+"/org/app.git", "rev-parse", branch+"~1"); got != second {
				t.Errorf("the remote has %s before the last commit, want %s", got, second)
			}
		}
		list, err := c.repos.ListRepositories(t.Context(), &sandboxv1.ListRepositoriesRequest{Session: c.session})
		if err != nil || len(list.GetRepositories()) != 1 || list.GetRepositories()[0].GetBranch() != branch {
			t.Errorf("list %v, %v", list, err)
		}
		if _, err := c.repos.RemoveRepository(t.Context(), &sandboxv1.RemoveRepositoryRequest{Call: c.call(), Directory: "app"}); err != nil {
			t.Error(err)
		}
		if r := c.bash(t, "ls -A repos"); r.out != "" {
			t.Errorf("left: %q", r.out)
		}
	})
}

func TestTheCredentialIsNowhereInside(t *testing.T) {
	t.Parallel()
	f := gittest.New(t)
	f.Publish("app", map[string]string{"README.md": "hello\n"})
	everywhere(t, func(t *testing.T, level string, change func(*sandbox.Config)) {
		var data string
		c := open(t, level, change, allow(f), func(c *sandbox.Config) { data = c.Data })
		if _, _, err := c.clone(t, &sandboxv1.CloneRepositoryRequest{Url: f.Repo("app"), Branch: "work-" + level}); err != nil {
			t.Fatal(err)
		}
		c.bash(t, "cd repos/app && echo y > y && git add -A && "+commit+" -m second")
		// While the remote is asked, the session's own commands look for the secret and for
		// the way out.
		looked := make(chan string, 1)
		f.Meddle(func(http.ResponseWriter, *http.Request) bool {
			f.Meddle(nil)
			r, err := c.exec(t.Context(), `grep -ra -e "$1" -e '[e]C1hY2Nlc3MtdG9rZW46' /workspace /home /tmp /proc/*/environ /proc/*/cmdline /etc 2>/dev/null && echo BROKEN secret
				env | grep -i proxy && echo BROKEN environment
				for x in 127.0.0.1:3128 127.0.0.1:`+f.URL[strings.LastIndexByte(f.URL, ':')+1:]+`; do (exec 3<>/dev/tcp/${x%:*}/${x#*:}) 2>/dev/null && echo BROKEN $x; done
				ls /proc/[0-9]*/exe -l 2>/dev/null | grep git && echo BROKEN process
				ls -d /workspace/push.git /home/agent/push.git /workspace/clone 2>/dev/null && echo BROKEN folder
				echo DONE`, func(s *sandboxv1.ExecStart) {
				s.Argv = append(s.Argv, "bash", "["+gittest.Secret[:1]+"]"+gittest.Secret[1:8])
			})
			if err != nil {
				t.Error(err)
			}
			wantNowhere(t, data)
			looked <- r.out
			return false
		})
		if _, err := c.repos.PushRepository(t.Context(), &sandboxv1.PushRepositoryRequest{Call: c.call(), Directory: "app", Url: f.Repo("app")}); err != nil {
			t.Fatal(err)
		}
		if out := <-looked; out != "DONE\n" {
			t.Errorf("the session's commands saw %s", out)
		}
		if !slices.ContainsFunc(f.Requests(), func(s string) bool { return strings.HasSuffix(s, "git-receive-pack x-access-token") }) {
			t.Errorf("the credential did not come: %v", f.Requests())
		}
	})
}

// wantNowhere looks from outside: at every file that the service keeps, and at every
// process of the machine.
func wantNowhere(t *testing.T, data string) {
	t.Helper()
	look := func(file string) {
		if raw, err := os.ReadFile(file); err == nil && (bytes.Contains(raw, []byte(gittest.Secret)) || bytes.Contains(raw, []byte(gittest.Basic))) {
			t.Errorf("the credential is in %s", file)
		}
	}
	if err := filepath.WalkDir(data, func(file string, d os.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			look(file)
		}
		return nil
	}); err != nil {
		t.Error(err)
	}
	found, err := filepath.Glob("/proc/[0-9]*/environ")
	if err != nil || len(found) == 0 {
		t.Errorf("processes: %v, %v", found, err)
	}
	for _, file := range found {
		look(file)
		look(filepath.Join(filepath.Dir(file), "cmdline"))
	}
}

// Who looks at a repository sees what the user's commands see, and has them keep their
// sandbox: with what is in its /tmp, and beside a command that runs.
func TestLookingAtARepositoryLeavesTheSandboxAsItIs(t *testing.T) {
	t.Parallel()
	atLevel(t, func(t *testing.T, level string) {
		c := open(t, level, func(cfg *sandbox.Config) { cfg.Storage.Alias = "storage" })
		if r := c.bash(t, "git init -q repos/mine && touch /tmp/kept"); r.GetExitCode() != 0 {
			t.Fatal(r.err)
		}
		look := func() {
			t.Helper()
			all, err := c.repos.ListRepositories(t.Context(), &sandboxv1.ListRepositoriesRequest{Session: c.session})
			if err != nil || len(all.GetRepositories()) != 1 {
				t.Errorf("listed %v, %v", all, err)
			}
			if _, err := c.repos.GetRepositoryStatus(t.Context(), &sandboxv1.GetRepositoryStatusRequest{Session: c.session, Directory: "mine"}); err != nil {
				t.Error(err)
			}
		}
		look()
		if r := c.bash(t, "ls /tmp"); r.out != "kept\n" {
			t.Errorf("afterwards there is %q", r.out)
		}
		stream := c.launch(t.Context(), t, &sandboxv1.ExecStart{Call: c.call(), Argv: []string{"cat"}, Stdin: true})
		look()
		send(t, stream, &sandboxv1.ExecRequest{Kind: &sandboxv1.ExecRequest_Stdin{Stdin: &sandboxv1.ExecStdin{Close: true}}})
		if _, err := follow(stream); err != nil {
			t.Error(err)
		}
	})
}

// A status is what Git says itself, though it does not run what the repository names.
func TestAStatusIsGits(t *testing.T) {
	t.Parallel()
	f := gittest.New(t)
	f.Publish("app", map[string]string{"f": "one\n", "g": "one\n"})
	c := open(t, sandbox.LevelBasic, allow(f))
	if _, _, err := c.clone(t, &sandboxv1.CloneRepositoryRequest{Url: f.Repo("app")}); err != nil {
		t.Fatal(err)
	}
	r := c.bash(t, `cd repos/app && echo two >f && `+commit+` -am two && git pack-refs --all && git update-index --split-index &&
		git config core.autocrlf input && printf 'one\r\n' >g && mkdir -p .git/info && echo hidden >.git/info/exclude && touch hidden seen && git config branch.a=b.remote 'x
filter.y.clean z'
		cd .. && git init -q --object-format=sha256 long && cd long && echo one >f && git add f && `+commit+` -m one && git checkout -q --detach`)
	if r.GetExitCode() != 0 {
		t.Fatal(r.err)
	}
	for _, name := range []string{"app", "long"} {
		st, err := c.repos.GetRepositoryStatus(t.Context(), &sandboxv1.GetRepositoryStatusRequest{Session: c.session, Directory: name})
		if err != nil {
			t.Fatal(err)
		}
		var said strings.Builder
		fmt.Fprintf(&said, "# branch.oid %s\n# branch.head %s\n", st.GetRepository().GetCommit(), cmp.Or(st.GetRepository().GetBranch(), "(detached)"))
		if st.GetUpstream() != "" {
			fmt.Fprintf(&said, "# branch.upstream %s\n# branch.ab +%d -%d\n", st.GetUpstream(), st.GetAhead(), st.GetBehind())
		}
		for _, x := range st.GetFiles() {
			fmt.Fprintf(&said, "%s %s%s\n", x.GetPath(), x.GetIndex(), x.GetWorktree())
		}
		want := c.bash(t, "cd repos/"+name+` && git status --porcelain=v2 --branch | sed 's/^? \(.*\)/\1 ?/; s/^1 [.]\(.\) .* /\1 /; s/^\([MD]\) \(.*\)/\2 \1/'`).out
		if said.String() != want || !strings.Contains(want, "branch.head") {
			t.Errorf("%s: it is %s, and Git says %s", name, &said, want)
		}
	}
}
