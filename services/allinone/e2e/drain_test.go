package e2e

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

func TestAWorkspaceLeavesANodeThatIsDrained(t *testing.T) {
	t.Parallel()
	f := startFleet(t, "--workspace-export", "off") // leaving needs no earlier export
	session := f.session(t, "coder")
	first, second := "", ""
	last(t, f.stream(t, http.MethodPost, "/v1/"+session+"/turns:stream", `{"text":"take your time"}`, func(e frame) bool {
		if e.event == "tool_call.decision" && first == "" { // what has a turn is left to it
			first, second = f.home(t, session)
			f.cli(t, "nodes", "drain", first)
			until(t, "the replica knows of it", func() bool { return strings.Contains(f.cli(t, "nodes"), "yes") })
			if r := f.call(t, http.MethodPost, "/v1/"+session+"/turns", `{"text":"look now"}`); r.code != http.StatusOK {
				t.Fatalf("queue a turn: %d %s", r.code, r.body)
			}
			if err := os.WriteFile(filepath.Join(f.dir(first, session), "workspace", "go"), nil, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		return true
	}), "COMPLETE")
	ends := 0
	frames := f.stream(t, http.MethodGet, "/v1/"+session+"/events", "", func(e frame) bool {
		if e.event == "turn.finished" {
			ends++
		}
		return ends < 2
	})
	end := last(t, frames, "COMPLETE")
	event := moved(t, frames)
	if event.field("workspaceMoved", "cause") != "WORKSPACE_MOVE_CAUSE_PLANNED" || event.field("workspaceMoved", "toNode") != second {
		t.Errorf("it moved %s", event.data)
	}
	if got := end.field("turnFinished", "finalText"); !strings.Contains(got, "one") || !strings.Contains(got, "two") {
		t.Errorf("after the move there is %q", got)
	}
	until(t, "the old place is empty", func() bool { return !exists(f.dir(first, session)) })
	for _, line := range strings.Split(f.cli(t, "nodes"), "\n") {
		if strings.HasPrefix(line, first) && (!strings.Contains(line, "READY") || !strings.Contains(line, " 0 ")) {
			t.Errorf("the node that was drained stands so: %s", line)
		}
	}
}

func TestWhatChangesWhileAWorkspaceIsDrainedIsTakenAlong(t *testing.T) {
	t.Parallel()
	f := startFleet(t, "--workspace-export", "off")
	session := f.session(t, "coder")
	last(t, f.turn(t, session, "keep this"), "COMPLETE")
	first, second := f.home(t, session)
	snapshots := func() int {
		got, _ := filepath.Glob(filepath.Join(f.dir(first, session), "snapshots", "snapshots", "*"))
		return len(got)
	}
	before := snapshots()
	away := f.objects + ".away"
	if err := errors.Join(os.Rename(f.objects, away), os.WriteFile(f.objects, nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	f.cli(t, "nodes", "drain", first)
	until(t, "the snapshot for the move is made", func() bool { return snapshots() > before })
	if err := os.WriteFile(filepath.Join(f.dir(first, session), "workspace", "late"), []byte("late"), 0o600); err != nil {
		t.Fatal(err)
	}
	made := time.Now()
	until(t, "the object store was away for a while", func() bool { return time.Since(made) > 2*time.Second })
	if err := errors.Join(os.Remove(f.objects), os.Rename(away, f.objects)); err != nil {
		t.Fatal(err)
	}
	log := func() string { return f.call(t, http.MethodGet, "/v1/"+session+"/events?page_size=1000", "").body }
	until(t, "it has moved", func() bool { return strings.Contains(log(), `"workspaceMoved"`) })
	if text, err := os.ReadFile(filepath.Join(f.dir(second, session), "workspace", "late")); err != nil || string(text) != "late" {
		t.Errorf("what was written while it was moved is %q, %v", text, err)
	}
	if text := log(); !strings.Contains(text, "with its files as they were at 20") || strings.Contains(text, "with all its files") {
		t.Errorf("the log says %s", text)
	}
}

func TestWorkspacesOfSessionsThatRestLeaveANodeThatIsDrained(t *testing.T) {
	t.Parallel()
	f := startFleet(t, "--workspace-export", "off")
	var sessions []string
	for range 7 { // more than move at the same time
		s := f.session(t, "coder")
		last(t, f.turn(t, s, "keep this"), "COMPLETE")
		sessions = append(sessions, s)
	}
	first, second := f.home(t, sessions[0])
	there := 0
	for _, s := range sessions {
		if exists(f.dir(first, s)) {
			there++
		}
	}
	f.cli(t, "nodes", "drain", first)
	until(t, "all have left", func() bool { return strings.Contains(f.cli(t, "nodes"), first+"     READY  0 ") })
	until(t, "all have arrived, and nothing is left", func() bool {
		return !slices.ContainsFunc(sessions, func(s string) bool { return exists(f.dir(first, s)) || !exists(f.dir(second, s)) })
	})
	movedThere := 0
	log := func(s string) string { return f.call(t, http.MethodGet, "/v1/"+s+"/events?page_size=1000", "").body }
	until(t, "the logs tell of it", func() bool {
		told := 0
		for _, s := range sessions {
			told += strings.Count(log(s), `"workspaceMoved"`)
		}
		return told >= there
	})
	for _, s := range sessions {
		if text, err := os.ReadFile(filepath.Join(f.dir(second, s), "workspace", "kept")); string(text) != "one\n" {
			t.Errorf("%s has %q, %v", s, text, err)
		}
		if text := log(s); strings.Contains(text, `"workspaceMoved"`) {
			movedThere++
			if !strings.Contains(text, "WORKSPACE_MOVE_CAUSE_PLANNED") || !strings.Contains(text, `"toNode":"`+second+`"`) {
				t.Errorf("the log of %s says %s", s, text)
			}
		}
	}
	if movedThere != there || there == 0 {
		t.Errorf("%d of %d workspaces on the node have moved", movedThere, there)
	}
	end := last(t, f.turn(t, sessions[0], "look now"), "COMPLETE")
	if got := end.field("turnFinished", "finalText"); got != "one\ntwo" && got != "one\ntwo\n" {
		t.Errorf("the next turn finds %q", got)
	}
}

// What is answered while a workspace moves has been done, and is there afterwards.
func TestWhatIsAnsweredWhileAWorkspaceMovesIsNotLost(t *testing.T) {
	t.Parallel()
	f := startFleet(t, "--workspace-export", "off")
	session := f.session(t, "coder")
	last(t, f.turn(t, session, "keep this"), "COMPLETE")
	first, second := f.home(t, session)
	var answered sync.Map
	var wg sync.WaitGroup
	stop := make(chan struct{})
	for i := range 3 {
		wg.Go(func() {
			for n := 0; ; n++ {
				select {
				case <-stop:
					return
				default:
				}
				name := fmt.Sprintf("r%d-%d", i, n)
				switch r := f.call(t, http.MethodPost, "/v1/"+session+"/repositories", `{"repositoryId":"`+name+`"}`); {
				case r.code == http.StatusOK:
					answered.Store(name, true)
				case !strings.Contains(r.body, "WORKSPACE_SEALED") && !strings.Contains(r.body, "NODE_LOST") &&
					!strings.Contains(r.body, "STALE_") && !strings.Contains(r.body, "WORKSPACE_NOT_FOUND"): // it has a later holder, or place
					t.Errorf("%s: %d %s", name, r.code, r.body)
				}
			}
		})
	}
	f.cli(t, "nodes", "drain", first)
	log := func() string { return f.call(t, http.MethodGet, "/v1/"+session+"/events?page_size=1000", "").body }
	until(t, "it has moved", func() bool { return strings.Contains(log(), `"workspaceMoved"`) })
	close(stop)
	wg.Wait()
	count := 0
	answered.Range(func(name, _ any) bool {
		count++
		if !exists(filepath.Join(f.dir(second, session), "workspace", "repos", name.(string), ".git")) {
			t.Errorf("%s was answered, and is not there any more", name)
		}
		return true
	})
	t.Logf("%d were answered", count)
}
