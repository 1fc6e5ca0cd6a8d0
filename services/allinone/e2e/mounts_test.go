package e2e

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// mountSource is a folder of the host's that holds a file, and is not root's.
func mountSource(t *testing.T, dir, name string) string {
	t.Helper()
	at := filepath.Join(dir, name)
	if err := errors.Join(os.Mkdir(at, 0o755), os.WriteFile(filepath.Join(at, "file"), []byte("from "+name+"\n"), 0o644)); err != nil {
		t.Fatal(err)
	}
	if os.Getuid() == 0 {
		if err := os.Chown(at, 4001, 4001); err != nil {
			t.Fatal(err)
		}
	}
	return at
}

// withMounts makes a session that asks for mounts, given as JSON.
func (s *system) withMounts(t *testing.T, agent, mounts string) string {
	t.Helper()
	r := s.call(t, http.MethodPost, "/v1/sessions", fmt.Sprintf(`{"agent":%q,"mounts":%s}`, agent, mounts))
	var answer struct {
		Name   string
		Mounts json.RawMessage
	}
	if err := json.Unmarshal([]byte(r.body), &answer); err != nil || r.code != http.StatusOK || string(answer.Mounts) != mounts {
		t.Fatalf("create a session: %d %s", r.code, r.body)
	}
	return answer.Name
}

// TestASessionSeesTheMountsThatItOrItsAgentAsksFor has an operator who shows folders of
// the host to those that ask for them: one to read, and one to write of a user's.
func TestASessionSeesTheMountsThatItOrItsAgentAsksFor(t *testing.T) {
	for _, four := range []bool{false, true} {
		t.Run(map[bool]string{false: "all in one", true: "four processes"}[four], func(t *testing.T) {
			t.Parallel()
			dir := sandboxDir(t)
			drafts := mountSource(t, dir, "drafts")
			s := start(t, options{
				four:   four,
				agents: "  reader: {profile: full, tools: [Bash, Read], mounts: [books]}\n  plain: {profile: full, tools: [Bash, Read]}\n",
				sandbox: fmt.Sprintf(`
mounts:
  - {name: books, source: %q, alias: books, on-request: true}
  - {name: drafts, source: %q, alias: mnt/drafts, mode: rw, for: [default/default], on-request: true}
  - {name: secrets, source: %q, alias: mnt/secrets, for: [default/another], on-request: true}
`, mountSource(t, dir, "books"), drafts, mountSource(t, dir, "secrets")),
			})
			session := s.withMounts(t, "reader", `["drafts"]`)
			for _, name := range []string{session, s.withMounts(t, "plain", `["books","drafts"]`)} {
				frames := s.turn(t, name, "use the mounts")
				last(t, frames, "COMPLETE")
				got := strings.Join(results(frames), "\n")
				for _, want := range []string{"from books\n", "Read-only file system", "mine\n", "Read OK", "1\tfrom books"} {
					if !strings.Contains(got, want) {
						t.Errorf("%s: %q is not in what the model reads: %s", name, want, got)
					}
				}
				if raw, err := os.ReadFile(filepath.Join(drafts, "new")); err != nil || string(raw) != "mine\n" {
					t.Errorf("on the host: %q, %v", raw, err)
				}
				if err := os.Remove(filepath.Join(drafts, "new")); err != nil {
					t.Error(err)
				}
			}
			frames := s.turn(t, s.session(t, "plain"), "use the mounts")
			got := strings.Join(results(frames), "\n")
			if strings.Contains(got, "from books") || strings.Contains(got, "mine") || !strings.Contains(got, "No such file") || !strings.Contains(got, "File does not exist: books/file") {
				t.Errorf("a session that does not ask: %s", got)
			}
			for _, name := range []string{"secrets", "nowhere"} { // one is for another user: both are answered the same
				end := last(t, s.turn(t, s.withMounts(t, "plain", `["`+name+`"]`), "use the mounts"), "FAILED")
				if !strings.Contains(end.data, "there is no such mount: "+name) {
					t.Errorf("a turn with the mount %s ended %s", name, end.data)
				}
			}
		})
	}
}

// TestWhatAUserStoresStaysUntilItIsDeleted has sessions share their user's storage, and
// the user delete it.
func TestWhatAUserStoresStaysUntilItIsDeleted(t *testing.T) {
	for _, four := range []bool{false, true} {
		t.Run(map[bool]string{false: "all in one", true: "four processes"}[four], func(t *testing.T) {
			t.Parallel()
			s := start(t, options{four: four, agents: "  plain: {profile: full, tools: [Bash]}\n", sandbox: "storage: {alias: storage}\n"})
			use := func(want string) {
				t.Helper()
				frames := s.turn(t, s.session(t, "plain"), "use the storage")
				last(t, frames, "COMPLETE")
				if got := results(frames); len(got) != 1 || strings.TrimSpace(got[0]) != want {
					t.Errorf("the commands say %q, want %q", got, want)
				}
			}
			const empty, stored = "Bash OK ---\nkept", "Bash OK kept\n---\nkept"
			use(empty)
			use(stored)
			if r := s.call(t, http.MethodDelete, "/v1/users/another/storage", ""); r.code != http.StatusForbidden || !strings.Contains(r.body, "OTHER_USER") {
				t.Errorf("another user's: %d %s", r.code, r.body)
			}
			use(stored)
			for _, then := range []string{empty, stored} { // the repetition deletes nothing
				if r := s.call(t, http.MethodDelete, "/v1/users/default/storage", "", "Idempotency-Key", "once"); r.code != http.StatusOK {
					t.Fatalf("delete: %d %s", r.code, r.body)
				}
				use(then)
			}
		})
	}
}
