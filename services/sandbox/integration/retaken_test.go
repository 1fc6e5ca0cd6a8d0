package integration

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	sandboxv1 "github.com/fairlead/fairlead/gen/go/fairlead/sandbox/v1"
	"github.com/fairlead/fairlead/services/internal/kit/apierr"
	"github.com/fairlead/fairlead/services/sandbox"
	"github.com/fairlead/fairlead/services/sandbox/gittest"
)

// agents clones by the same call again and again, as a session does for its agent in each turn.
func (c *client) agents(t *testing.T, f *gittest.Forge, call string) error {
	t.Helper()
	_, _, err := c.clone(t, &sandboxv1.CloneRepositoryRequest{Call: c.named(call), Url: f.Repo("app")})
	return err
}

// A restore makes of the clones what they were: made, not made, or made and removed.
func TestARestoreTakesClonesBackWithTheFiles(t *testing.T) {
	t.Parallel()
	f := gittest.New(t)
	f.Publish("app", map[string]string{"f": "one"})
	var data string
	c := open(t, sandbox.LevelBasic, allow(f), func(cfg *sandbox.Config) { data = cfg.Data })
	const call = "clone.agent"
	wanted := func(when string, there bool) {
		t.Helper()
		if err := c.agents(t, f, call); err != nil {
			t.Errorf("%s: %v", when, err)
		}
		if got := c.bash(t, "ls repos").out; (got == "app\n") != there {
			t.Errorf("%s there is %q", when, got)
		}
	}
	remove := func() {
		t.Helper()
		if _, err := c.repos.RemoveRepository(t.Context(), &sandboxv1.RemoveRepositoryRequest{Call: c.call(), Directory: "app"}); err != nil {
			t.Error(err)
		}
	}
	before := c.snapshot(t, c.call()).GetId()
	wanted("at first", true)
	with := c.snapshot(t, c.call()).GetId()
	remove()
	wanted("after the removal", false)
	without := c.snapshot(t, c.call()).GetId()
	c.restore(t, without)
	wanted("after a restore that is no earlier than the removal", false)
	c.restore(t, with)
	wanted("after one to before the removal", true)
	c.restore(t, without)
	wanted("after one back", false)
	// The removal is taken back with the clone, though there is nothing that the restore removes.
	c.restore(t, before)
	wanted("after one to before the clone", true)
	remove()
	if r, err := c.snapshots.ForkSnapshot(t.Context(), &sandboxv1.ForkSnapshotRequest{Call: c.in("fork").call(), Source: c.session, Snapshot: without}); err != nil || !r.GetCreated() {
		t.Errorf("%v, %v", r, err)
	}
	forgetClones(t, data)
	c.restore(t, without)
	wanted("after one to a snapshot that does not say, with nothing to be seen of a clone", true)

	c = c.in("fork") // to which nothing of the source's clones counts
	wanted("in a fork", true)
	c.restore(t, without)
	wanted("after a restore to its beginning", true)
}

// forgetClones makes of all snapshots some of a version that did not write down clones.
func forgetClones(t *testing.T, data string) {
	t.Helper()
	all, err := filepath.Glob(filepath.Join(data, "*", "*", "snapshots", "snapshots", "*.json"))
	if err != nil || len(all) == 0 {
		t.Fatalf("%v, %v", all, err)
	}
	for _, file := range all {
		raw, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, bytes.ReplaceAll(raw, []byte(`"clones":`), []byte(`"other":`)), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// What a user asked for by a request is not asked for anew when the request comes again.
func TestARestoreHasNoRequestActAgain(t *testing.T) {
	t.Parallel()
	f := gittest.New(t)
	f.Publish("app", map[string]string{"f": "one"})
	c := open(t, sandbox.LevelBasic, allow(f))
	c.snapshot(t, c.call())
	add := func() {
		t.Helper()
		if _, err := c.repos.AddRepository(t.Context(), &sandboxv1.AddRepositoryRequest{Call: c.named("repository.two"), Directory: "new"}); err != nil {
			t.Error(err)
		}
	}
	if err := c.agents(t, f, "repository.one"); err != nil {
		t.Error(err)
	}
	add()
	c.restore(t, c.oldest(t))
	if err := c.agents(t, f, "repository.one"); err != nil {
		t.Errorf("the request again: %v", err)
	}
	add()
	if got := c.bash(t, "ls repos").out; got != "" {
		t.Errorf("a request that came again made %q", got)
	}
}

const (
	retakenDirectory = "FAIRLEAD_TEST_RETAKEN"
	retakenPoint     = "FAIRLEAD_TEST_RETAKEN_POINT"
)

// TestDieAmidASecondClone is the service that TestASecondCloneIsMadeOnce kills.
func TestDieAmidASecondClone(t *testing.T) {
	data := os.Getenv(retakenDirectory)
	forge := strings.Split(os.Getenv(crashForge), "|")
	if data == "" || len(forge) != 4 {
		t.Skip("runs in a process of its own")
	}
	port, err := strconv.Atoi(forge[1])
	if err != nil {
		t.Fatal(err)
	}
	f := &gittest.Forge{URL: forge[0], Port: port, PEM: forge[2]}
	armed, reached := make(chan struct{}), make(chan struct{})
	c := startWith(t, crashing(t, sandbox.LevelBasic, data, forge[3], f), sandbox.Deps{Log: discard(), Fault: func(_, call, point string) {
		select {
		case <-armed:
			if call == "victim" && point == os.Getenv(retakenPoint) {
				reached <- struct{}{}
				select {} // until it is killed
			}
		default:
		}
	}})
	c.ensure(t.Context(), t)
	c.snapshot(t, c.call())
	if err := c.agents(t, f, "victim"); err != nil {
		t.Fatal(err)
	}
	c.restore(t, c.oldest(t))
	close(armed)
	go func() {
		fmt.Println("the second clone ended:", c.agents(t, f, "victim"))
		os.Exit(1)
	}()
	<-reached
	fmt.Print("\nREADY\n")
	_, _ = io.Copy(io.Discard, os.Stdin) // until it is killed
}

// A clone that a restore has taken back, and that is made again, is made once, as the first one is.
func TestASecondCloneIsMadeOnce(t *testing.T) {
	t.Parallel()
	f := gittest.New(t)
	f.Publish("app", map[string]string{"f": "one"})
	for _, tc := range []struct{ point, others, want string }{
		{"intended", "", "app"}, {"made", "", "app"}, {"intended", "touch new", "app"}, {"made", "mv repos/app gone", ""},
	} {
		t.Run(tc.point+" "+tc.others, func(t *testing.T) {
			data, shared := filepath.Join(t.TempDir(), "data"), sources(t, "shared")+"/shared"
			child(t, "TestDieAmidASecondClone", retakenDirectory+"="+data, retakenPoint+"="+tc.point,
				fmt.Sprintf("%s=%s|%d|%s|%s", crashForge, f.URL, f.Port, f.PEM, shared))()
			c := start(t, crashing(t, sandbox.LevelBasic, data, shared, f))
			if tc.others != "" {
				running(tc.others)(t, c, "")
			}
			for range 2 {
				if err := c.agents(t, f, "victim"); err != nil {
					t.Errorf("the call again: %s %v", apierr.Reason(err), err)
				}
			}
			if got := strings.TrimSpace(c.bash(t, "ls repos").out); got != tc.want {
				t.Errorf("there is %q, want %q", got, tc.want)
			}
		})
	}
}
