package e2e

import (
	"archive/zip"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// greeting is the files of a skill that says a word.
func greeting(word string) map[string]string {
	return map[string]string{
		"SKILL.md":       "---\nname: greet\ndescription: Greets people with " + word + ".\nallowed-tools: Bash(rm *)\n---\nRun scripts/say.sh, and see words.md.\n",
		"scripts/say.sh": "#!/bin/sh\necho " + word + "\n",
		"words.md":       "the words of " + word + "\n",
	}
}

// skillZip is a skill as it is uploaded.
func skillZip(t *testing.T, files map[string]string) string {
	t.Helper()
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	for name, content := range files {
		h := &zip.FileHeader{Name: "greet/" + name, Method: zip.Deflate}
		h.SetMode(map[bool]fs.FileMode{false: 0o644, true: 0o755}[strings.HasSuffix(name, ".sh")])
		f, err := w.CreateHeader(h)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = f.Write([]byte(content))
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// upload uploads a file and returns its name.
func (s *system) upload(t *testing.T, content string) string {
	t.Helper()
	body, kind := form(t, "skill.zip", content)
	return fileOf(t, s.call(t, http.MethodPost, "/v1/files:upload", body, "Content-Type", kind)).Name
}

// addSkill makes a skill of the tenant, or of a user, or a new version of one.
func (s *system) addSkill(t *testing.T, user, word string, expected int) reply {
	t.Helper()
	file := s.upload(t, skillZip(t, greeting(word)))
	if expected == 0 {
		return s.call(t, http.MethodPost, "/v1/skills", fmt.Sprintf(`{"file":%q,"user":%q}`, file, user))
	}
	return s.call(t, http.MethodPut, "/v1/skills/greet", fmt.Sprintf(`{"file":%q,"user":%q,"expected_version":%d}`, file, user, expected))
}

// withSkills makes a session with skills and returns its name and the versions that it keeps to.
func (s *system) withSkills(t *testing.T, skills string) (name, kept string) {
	t.Helper()
	r := s.call(t, http.MethodPost, "/v1/sessions", fmt.Sprintf(`{"agent":"coder","skills":%s}`, skills))
	var answer struct {
		Name   string
		Skills []string
	}
	if err := json.Unmarshal([]byte(r.body), &answer); err != nil || r.code != http.StatusOK {
		t.Fatalf("create a session: %d %s", r.code, r.body)
	}
	return answer.Name, strings.Join(answer.Skills, " ")
}

// greets returns what the skill's script prints in a session.
func (s *system) greets(t *testing.T, session string) string {
	t.Helper()
	return strings.TrimSpace(last(t, s.turn(t, session, "say it"), "COMPLETE").field("turnFinished", "finalText"))
}

// skilled starts a system with a skill of the operator's.
func skilled(t *testing.T, o options) *system {
	t.Helper()
	dir := t.TempDir()
	for name, content := range greeting("global") {
		at := filepath.Join(dir, "skills", "greet", name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(at), 0o755), os.WriteFile(at, []byte(content), 0o755)); err != nil {
			t.Fatal(err)
		}
	}
	o.scenario, o.files = filepath.Join("testdata", "skills.yaml"), "file://"+filepath.Join(dir, "files")
	o.env = append(o.env, "FAIRLEAD_SESSION_SKILLS_DIR="+filepath.Join(dir, "skills"))
	return start(t, o)
}

func TestATurnUsesASkillAndCannotChangeIt(t *testing.T) {
	t.Parallel()
	shapes(t, func(t *testing.T, o options) {
		s := skilled(t, o)
		wants(t, s.addSkill(t, "", "tenant", 0), http.StatusOK, `"version":1`)
		session, kept := s.withSkills(t, `["greet"]`)
		if kept != "greet@1" {
			t.Errorf("it keeps to %s", kept)
		}
		frames := s.turn(t, session, "use it")
		last(t, frames, "COMPLETE")
		got := strings.Join(results(frames), "\n")
		for _, want := range []string{
			"Skill OK", "is in the folder /skills/greet", "Run scripts/say.sh, and see words.md.", "tenant\nthe words of tenant", "1\tthe words of tenant",
			"Glob OK", "/skills/greet/words.md", "Grep OK", "LS OK", "- /skills/greet/\n",
		} {
			if !strings.Contains(got, want) {
				t.Errorf("%q is not in %s", want, got)
			}
		}
		i := slices.IndexFunc(frames, func(f frame) bool { return f.event == "skill.used" })
		if i < 0 || frames[i].field("skillUsed", "skill") != "greet" || frames[i].field("skillUsed", "version") != "1" {
			t.Errorf("the events are %s", events(frames))
		}
		frames = s.turn(t, session, "change it")
		last(t, frames, "COMPLETE")
		got = strings.Join(results(frames), "\n")
		for _, want := range []string{"Read-only file system", "greet\n", "Write ERROR", "Edit ERROR"} {
			if !strings.Contains(got, want) {
				t.Errorf("%q is not in %s", want, got)
			}
		}
		if got := s.greets(t, session); got != "tenant" {
			t.Errorf("afterwards it says %q", got)
		}
		if got := last(t, s.turn(t, session, "another"), "COMPLETE").field("turnFinished", "finalText"); !strings.Contains(got, `There is no skill "nonesuch". The session has greet.`) {
			t.Errorf("another skill: %q", got)
		}
		if got := s.greets(t, s.session(t, "coder")); got != "tenant" {
			t.Errorf("a session of a built-in agent, which has every skill, says %q", got)
		}
		wants(t, s.call(t, http.MethodPost, "/v1/agents?agent_id=plain", `{"profile":"full","tools":["Bash"]}`), http.StatusOK, "agents/plain")
		if got := s.greets(t, s.session(t, "plain")); !strings.Contains(got, "/skills/greet/scripts/say.sh") {
			t.Errorf("a session without skills finds %q", got)
		}
	})
}

func TestASessionKeepsTheVersionsOfItsSkills(t *testing.T) {
	t.Parallel()
	shapes(t, func(t *testing.T, o options) {
		s := skilled(t, o)
		check := func(skills, kept, says string) string {
			t.Helper()
			session, got := s.withSkills(t, skills)
			if said := s.greets(t, session); got != kept || said != says {
				t.Errorf("%s keeps to %q and says %q, want %q and %q", skills, got, said, kept, says)
			}
			return session
		}
		global := check(`["greet"]`, "greet", "global")
		wants(t, s.addSkill(t, "", "one", 0), http.StatusOK, `"version":1`)
		wants(t, s.addSkill(t, "", "one", 0), http.StatusConflict, "ALREADY_EXISTS")
		first := check(`["greet"]`, "greet@1", "one")
		wants(t, s.addSkill(t, "", "two", 1), http.StatusOK, `"version":2`)
		wants(t, s.addSkill(t, "", "three", 1), http.StatusConflict, "VERSION_CONFLICT")
		second := check(`["greet"]`, "greet@2", "two")
		check(`["greet@1"]`, "greet@1", "one")
		wants(t, s.addSkill(t, "users/me", "mine", 0), http.StatusOK, `"user":"users/`)
		check(`["greet"]`, "greet@1", "mine")
		wants(t, s.call(t, http.MethodPost, "/v1/skills/greet:archive", `{"user":"users/me"}`), http.StatusOK, "archiveTime")
		check(`["greet"]`, "greet@2", "two")
		wants(t, s.call(t, http.MethodPost, "/v1/skills/greet:rollback", `{"version":1,"expected_version":2}`), http.StatusOK, `"version":3`)
		check(`["greet"]`, "greet@3", "one")
		for session, want := range map[string]string{global: "global", first: "one", second: "two"} {
			if got := s.greets(t, session); got != want {
				t.Errorf("a session that began with %q says %q", want, got)
			}
		}
		wants(t, s.call(t, http.MethodPost, "/v1/sessions", `{"agent":"coder","skills":["greet@9"]}`), http.StatusNotFound, "SKILL_NOT_FOUND")
		wants(t, s.call(t, http.MethodPost, "/v1/sessions", `{"agent":"coder","skills":["nonesuch"]}`), http.StatusNotFound, "SKILL_NOT_FOUND")
		wants(t, s.call(t, http.MethodGet, "/v1/skills/greet/versions", ""), http.StatusOK, `"restoredFrom":1`)
		wants(t, s.call(t, http.MethodDelete, "/v1/skills/greet", ""), http.StatusOK, "")
		wants(t, s.call(t, http.MethodGet, "/v1/skills", ""), http.StatusOK, `"global":true`)
		wants(t, s.call(t, http.MethodDelete, "/v1/skills/greet", ""), http.StatusBadRequest, "SKILL_READ_ONLY")
		check(`["greet"]`, "greet", "global")
	})
}

// The node loses the skill between two turns, as one that has removed it to make room.
func TestANodeThatLostASkillGetsItAgain(t *testing.T) {
	t.Parallel()
	shapes(t, func(t *testing.T, o options) {
		o.data = sandboxDir(t)
		s := skilled(t, o)
		session, _ := s.withSkills(t, `["greet"]`)
		if got := s.greets(t, session); got != "global" {
			t.Errorf("it says %q", got)
		}
		s.stop(t)
		trees := filepath.Join(o.data, "sandbox", ".trees")
		if found, err := os.ReadDir(trees); err != nil || len(found) < 2 {
			t.Fatalf("the node has %v, %v", found, err)
		}
		if err := os.RemoveAll(trees); err != nil {
			t.Fatal(err)
		}
		s = s.restart(t)
		if got := s.greets(t, session); got != "global" {
			t.Errorf("afterwards it says %q", got)
		}
	})
}

func TestAnUploadThatIsNoSkillNamesItsFaults(t *testing.T) {
	t.Parallel()
	s := skilled(t, options{})
	odd := greeting("x")
	odd["a\nb"] = "x"
	none := greeting("x")
	none["SKILL.md"] = "# No front matter\n"
	up := greeting("x")
	up["../../x"] = "x"
	for want, files := range map[string]map[string]string{
		"does not begin with front matter": none, "leads outside of the folder": up, "control character": odd,
	} {
		file := s.upload(t, skillZip(t, files))
		r := s.call(t, http.MethodPost, "/v1/skills", fmt.Sprintf(`{"file":%q}`, file))
		wants(t, r, http.StatusBadRequest, "INVALID_SKILL")
		wants(t, r, http.StatusBadRequest, want)
	}
	wants(t, s.call(t, http.MethodPost, "/v1/skills", fmt.Sprintf(`{"file":%q}`, s.upload(t, "text"))), http.StatusBadRequest, "neither a zip")
}

func TestASessionIsWarnedOfASkillThatWasDeleted(t *testing.T) {
	t.Parallel()
	s := skilled(t, options{})
	wants(t, s.addSkill(t, "", "tenant", 0), http.StatusOK, `"version":1`)
	session, kept := s.withSkills(t, `["greet"]`)
	if kept != "greet@1" {
		t.Errorf("it keeps to %s", kept)
	}
	wants(t, s.call(t, http.MethodDelete, "/v1/skills/greet", ""), http.StatusOK, "")
	frames := s.turn(t, session, "use it")
	last(t, frames, "COMPLETE")
	i := slices.IndexFunc(frames, func(f frame) bool { return f.event == "warning" && f.field("warning", "reason") == "SKILL_DELETED" })
	if i < 0 || !strings.Contains(frames[i].field("warning", "message"), "The skill greet@1 of this session was deleted") {
		t.Errorf("the events are %s", events(frames))
	}
	if got := strings.Join(results(frames), "\n"); !strings.Contains(got, "Skill ERROR") || !strings.Contains(got, "The skill was deleted since the session began.") {
		t.Errorf("the results are %s", got)
	}
}
