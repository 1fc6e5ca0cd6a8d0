package e2e

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
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
	if err := json.Unmarshal([]byte(r.body), &answer); err != nil || r.code != http.StatusOK || compact(t, answer.Mounts) != mounts {
		t.Fatalf("create a session: %d %s", r.code, r.body)
	}
	return answer.Name
}

// TestASessionSeesTheMountsThatItOrItsAgentAsksFor has an operator who shows folders of
// the host to those that ask for them: one to read, and one to write of a user's.
func TestASessionSeesTheMountsThatItOrItsAgentAsksFor(t *testing.T) {
	t.Parallel()
	for _, four := range []bool{false, true} {
		t.Run(map[bool]string{false: "all in one", true: "four processes"}[four], func(t *testing.T) {
			t.Parallel()
			dir := sandboxDir(t)
			drafts := mountSource(t, dir, "drafts")
			s := start(t, options{
				four:   four,
				agents: "  reader: {profile: full, tools: [Bash, Read], mounts: [{name: books}]}\n  plain: {profile: full, tools: [Bash, Read]}\n",
				sandbox: fmt.Sprintf(`
mounts:
  - {name: books, source: %q, alias: books, on-request: true}
  - {name: drafts, source: %q, alias: mnt/drafts, mode: rw, for: [default/default], on-request: true}
  - {name: secrets, source: %q, alias: mnt/secrets, for: [default/another], on-request: true}
`, mountSource(t, dir, "books"), drafts, mountSource(t, dir, "secrets")),
			})
			session := s.withMounts(t, "reader", `[{"name":"drafts"}]`)
			for _, name := range []string{session, s.withMounts(t, "plain", `[{"name":"books"},{"name":"drafts"}]`)} {
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
				end := last(t, s.turn(t, s.withMounts(t, "plain", `[{"name":"`+name+`"}]`), "use the mounts"), "FAILED")
				if !strings.Contains(end.data, "there is no such mount: "+name) {
					t.Errorf("a turn with the mount %s ended %s", name, end.data)
				}
			}
		})
	}
}

// TestASessionNarrowsItsMounts has a session and an environment that ask for less than the operator gives, and for
// more.
func TestASessionNarrowsItsMounts(t *testing.T) {
	t.Parallel()
	for _, four := range []bool{false, true} {
		t.Run(map[bool]string{false: "all in one", true: "four processes"}[four], func(t *testing.T) {
			t.Parallel()
			dir := sandboxDir(t)
			books := mountSource(t, dir, "books")
			june := filepath.Join(books, "2026", "june")
			if err := errors.Join(os.MkdirAll(june, 0o755), os.WriteFile(filepath.Join(june, "file"), []byte("from june\n"), 0o644)); err != nil {
				t.Fatal(err)
			}
			s := start(t, options{
				four:   four,
				agents: "  plain: {profile: full, tools: [Bash, Read]}\n",
				sandbox: fmt.Sprintf(`
mounts:
  - {name: books, source: %q, alias: books, on-request: true}
  - {name: drafts, source: %q, alias: mnt/drafts, mode: rw, on-request: true}
`, books, mountSource(t, dir, "drafts")),
			})
			const narrow = `[{"name":"books","path":"2026/june","alias":"mnt/reading/june"},{"name":"drafts","mode":"ro"},{"name":"nowhere","optional":true}]`
			if r := s.call(t, http.MethodPost, "/v1/environments?environment_id=reading", `{"mounts":`+narrow+`}`); r.code != http.StatusOK {
				t.Fatalf("create an environment: %d %s", r.code, r.body)
			}
			r := s.call(t, http.MethodPost, "/v1/sessions", `{"agent":"plain","environment":"reading"}`)
			var inEnvironment struct{ Name string }
			if err := json.Unmarshal([]byte(r.body), &inEnvironment); err != nil || r.code != http.StatusOK {
				t.Fatalf("create a session: %d %s", r.code, r.body)
			}
			for _, name := range []string{s.withMounts(t, "plain", narrow), inEnvironment.Name} {
				frames := s.turn(t, name, "use a part of the mounts")
				last(t, frames, "COMPLETE")
				got := strings.Join(results(frames), "\n")
				for _, want := range []string{"from june\n", "drafts\nreading\n", "'books': No such file", "'mnt/drafts/x': Read-only file system", "1\tfrom june"} {
					if !strings.Contains(got, want) {
						t.Errorf("%s: %q is not in what the model reads: %s", name, want, got)
					}
				}
				if !slices.ContainsFunc(frames, func(f frame) bool {
					return f.event == "warning" && f.field("warning", "reason") == "MOUNT_MISSING" && strings.Contains(f.data, "The mount nowhere")
				}) {
					t.Errorf("%s: no warning names the missing mount", name)
				}
			}
			for asked, want := range map[string]string{
				`[{"name":"books","mode":"rw"}]`:                            "books is read-only",
				`[{"name":"books","path":"2027"}]`:                          "there is no such mount: books has no folder",
				`[{"name":"books","alias":"mnt/drafts"},{"name":"drafts"}]`: "overlaps mnt/drafts",
			} {
				if end := last(t, s.turn(t, s.withMounts(t, "plain", asked), "use a part of the mounts"), "FAILED"); !strings.Contains(end.data, want) {
					t.Errorf("a turn with the mounts %s ended %s", asked, end.data)
				}
			}
			for asked, field := range map[string]string{
				`[{"name":"books","path":"../drafts"}]`:                                "session.mounts[0].path",
				`[{"name":"books","alias":"uploads"}]`:                                 "session.mounts[0].alias",
				`[{"name":"books","alias":"mnt/x"},{"name":"drafts","alias":"mnt/x"}]`: "session.mounts",
				`[{"name":"books","mode":"x"}]`:                                        "session.mounts[0].mode",
			} {
				if r := s.call(t, http.MethodPost, "/v1/sessions", `{"agent":"plain","mounts":`+asked+`}`); r.code != http.StatusBadRequest || !strings.Contains(r.body, `"`+field+`"`) {
					t.Errorf("%s: %d %s", asked, r.code, r.body)
				}
			}
		})
	}
}

// compact returns JSON without white space, which answers of the gateway have at random.
func compact(t *testing.T, raw json.RawMessage) string {
	t.Helper()
	var out bytes.Buffer
	if err := json.Compact(&out, raw); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// TestWhatAUserStoresStaysUntilItIsDeleted has sessions share their user's storage, and
// the user delete it.
func TestWhatAUserStoresStaysUntilItIsDeleted(t *testing.T) {
	t.Parallel()
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
