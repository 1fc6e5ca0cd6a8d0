package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/fairlead/fairlead/services/sandbox/gittest"
)

// repositories has sandbox know the repositories of a server, and a credential for them.
func repositories(forge *gittest.Forge) string {
	return fmt.Sprintf(`
egress:
  roots: %q
  credentials:
    forge: {hosts: [127.0.0.1], username: %s, secret: %s}
repositories:
  remotes:
    - {host: 127.0.0.1, ports: [%d], paths: ["/org/*"], credential: forge, addresses: [127.0.0.0/8], push: true}
`, forge.PEM, gittest.User, gittest.Secret, forge.Port)
}

// made is the name of what an answer says was made.
func made(t *testing.T, r reply) string {
	t.Helper()
	var m struct{ Name string }
	if err := json.Unmarshal([]byte(r.body), &m); err != nil || m.Name == "" {
		t.Fatalf("%d %s", r.code, r.body)
	}
	return m.Name
}

// TestAnAgentChangesARepositoryAndItsBranchIsPushed has an agent begin with a
// repository of a real server's: it is cloned beside the first model call, a command
// commits to the session's branch, and the end of the turn pushes it.
func TestAnAgentChangesARepositoryAndItsBranchIsPushed(t *testing.T) {
	t.Parallel()
	forge := gittest.New(t)
	for _, four := range []bool{false, true} {
		name := map[bool]string{false: "all in one", true: "four processes"}[four]
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			app := map[bool]string{false: "one", true: "four"}[four]
			first := forge.Publish(app, map[string]string{"README.md": "hello\n"})
			s := start(t, options{
				four: four,
				agents: fmt.Sprintf("  fixer: {profile: full, tools: [Bash], repositories: [{url: %q, directory: app, branch: session, push: turn_end}, {url: %q, directory: gone}]}\n",
					forge.Repo(app), forge.Repo("nothing")),
				sandbox: repositories(forge),
			})
			session := s.session(t, "fixer")
			branch := "fairlead/" + strings.TrimPrefix(session, "sessions/")
			frames := s.turn(t, session, "change the repository")
			last(t, frames, "COMPLETE")
			said := strings.Fields(strings.Join(results(frames), "\n"))
			if len(said) < 5 || said[2] != "hello" || said[3] != branch || len(said) > 5 {
				t.Fatalf("the command says %q", said)
			}
			if !slices.ContainsFunc(frames, func(f frame) bool {
				return f.event == "warning" && strings.Contains(f.data, "REPOSITORY_NOT_CLONED") && strings.Contains(f.data, "gone")
			}) {
				t.Errorf("nobody is told of the repository that is not there: %s", events(frames))
			}
			if at := slices.IndexFunc(frames, func(f frame) bool { return f.event == "repository.cloned" }); at < 0 || frames[at].field("repositoryCloned", "commit") != first ||
				frames[at].field("repositoryCloned", "branch") != branch || frames[at].field("repositoryCloned", "directory") != "app" {
				t.Errorf("the clone of %s is not told: %s", first, events(frames))
			}
			if got := events(frames); strings.Count(got, "workspace.created") != 1 || strings.Count(got, "repository.cloned") != 1 {
				t.Errorf("the setup is told as %s", got)
			}
			log := s.stream(t, http.MethodGet, "/v1/"+session+"/events", "", func(f frame) bool { return f.event != "repository.pushed" })
			pushed := log[len(log)-1]
			if slices.ContainsFunc(log, func(f frame) bool { return strings.Contains(f.data, gittest.Secret) }) {
				t.Error("the credential is in the log")
			}
			ref := "refs/heads/" + branch
			if pushed.field("repositoryPushed", "ref") != ref || pushed.field("repositoryPushed", "oldCommit") != "" {
				t.Errorf("pushed: %s", pushed.data)
			}
			at := forge.Dir + "/org/" + app + ".git"
			second := forge.Git("-C", at, "rev-parse", ref)
			if second != pushed.field("repositoryPushed", "newCommit") || !slices.Contains(said, second) || forge.Git("-C", at, "rev-parse", ref+"~1") != first {
				t.Errorf("the branch is at %s; pushed %s; the command says %q", second, pushed.data, said)
			}
			if forge.Git("-C", at, "rev-parse", "main") != first {
				t.Error("another branch was moved")
			}
			r := s.call(t, http.MethodGet, "/v1/"+session+"/repositories", "")
			if r.code != http.StatusOK || !strings.Contains(r.body, branch) {
				t.Errorf("list: %d %s", r.code, r.body)
			}
		})
	}
}

// TestARepositoryComesBackAfterARewindToBeforeItsClone rewinds to a checkpoint of before the
// first turn: the next turn clones again.
func TestARepositoryComesBackAfterARewindToBeforeItsClone(t *testing.T) {
	t.Parallel()
	forge := gittest.New(t)
	forge.Publish("one", map[string]string{"README.md": "hello\n"})
	s := start(t, options{
		agents:  fmt.Sprintf("  fixer: {profile: full, tools: [Bash], repositories: [{url: %q, directory: app}]}\n", forge.Repo("one")),
		sandbox: repositories(forge),
	})
	session := s.session(t, "fixer")
	checkpoint := made(t, s.call(t, http.MethodPost, "/v1/"+session+"/checkpoints", `{}`))
	for range 2 {
		s.turn(t, session, "change the repository")
		if list := s.call(t, http.MethodGet, "/v1/"+session+"/repositories", "").body; !strings.Contains(list, "repositories/app") {
			t.Fatalf("there is no repository: %s", list)
		}
		s.rewind(t, session, `{"checkpoint":"`+checkpoint+`"}`)
	}
}

// TestAForkPushesABranchOfItsOwn forks a session that works on a branch of its own: what the
// fork does goes to the fork's.
func TestAForkPushesABranchOfItsOwn(t *testing.T) {
	t.Parallel()
	forge := gittest.New(t)
	forge.Publish("one", map[string]string{"README.md": "hello\n"})
	s := start(t, options{
		agents:  fmt.Sprintf("  fixer: {profile: full, tools: [Bash], repositories: [{url: %q, directory: app, branch: session, push: turn_end}]}\n", forge.Repo("one")),
		sandbox: repositories(forge),
	})
	session := s.session(t, "fixer")
	s.turn(t, session, "change the repository")
	fork := made(t, s.call(t, http.MethodPost, "/v1/"+session+":fork", `{}`))
	s.turn(t, fork, "change the repository")
	log := s.stream(t, http.MethodGet, "/v1/"+fork+"/events", "", func(f frame) bool {
		return f.event != "repository.pushed" && f.event != "repository.push_failed"
	})
	ref := "refs/heads/fairlead/" + strings.TrimPrefix(fork, "sessions/")
	if end := log[len(log)-1]; end.field("repositoryPushed", "ref") != ref {
		t.Errorf("%s %s", end.event, end.data)
	}
}
