package integration

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	commonv1 "github.com/fairlead/fairlead/gen/go/fairlead/common/v1"
	sandboxv1 "github.com/fairlead/fairlead/gen/go/fairlead/sandbox/v1"
	"github.com/fairlead/fairlead/services/internal/kit/apierr"
	"github.com/fairlead/fairlead/services/internal/kit/prove"
	"github.com/fairlead/fairlead/services/sandbox"
	"github.com/fairlead/fairlead/services/sandbox/gittest"
	"github.com/fairlead/fairlead/services/sandbox/internal/mount"
)

// after is what is found when a change was interrupted and then asked for again: the
// files, and the reason if the answer is an error.
type after struct{ files, reason string }

// interrupted is a change that a crash interrupts: when it is about to take effect, or
// when it has.
type interrupted struct {
	name    string
	prepare func(*testing.T, *client)
	do      func(*testing.T, *client) error // by the call id `victim`
	// others change the same before the call is repeated; folder is the one behind storage/.
	others func(t *testing.T, c *client, folder string)
	// What is wanted without others, and with them.
	undone, done, undoneThen, doneThen after
}

func (c *client) victim() *commonv1.CallRef { return c.named("victim") }

func put(name, content string) func(*testing.T, *client) {
	return func(t *testing.T, c *client) {
		if _, err := c.write(t, name, content, nil); err != nil {
			t.Error(err)
		}
	}
}

func writes(name string, change func(*sandboxv1.WriteFileStart)) func(*testing.T, *client) error {
	return func(t *testing.T, c *client) error {
		_, err := c.write(t, name, "one", func(s *sandboxv1.WriteFileStart) {
			s.Call = c.victim()
			if change != nil {
				change(s)
			}
		})
		return err
	}
}

func deleting(name string) func(*testing.T, *client) error {
	return func(t *testing.T, c *client) error {
		_, err := c.files.DeleteFile(t.Context(), &sandboxv1.DeleteFileRequest{Call: c.victim(), Path: name, Recursive: true})
		return err
	}
}

func moving(t *testing.T, c *client) error {
	_, err := c.files.MoveFile(t.Context(), &sandboxv1.MoveFileRequest{Call: c.victim(), Path: "old", NewPath: "f", Overwrite: true})
	return err
}

// running is what a command of the session does.
func running(script string) func(*testing.T, *client, string) {
	return func(t *testing.T, c *client, _ string) {
		if r := c.bash(t, script); r.GetExitCode() != 0 {
			t.Errorf("%s: %s", script, r.err)
		}
	}
}

// elsewhere is a change by another user of the same mount.
func elsewhere(script string) func(*testing.T, *client, string) {
	return func(t *testing.T, c *client, folder string) {
		cmd := exec.CommandContext(t.Context(), "bash", "-c", script)
		cmd.Dir = filepath.Join(folder, strings.TrimPrefix(c.session, "sessions/"))
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%s: %v %s", script, err, out)
		}
	}
}

// oldest is the first snapshot of a session.
func (c *client) oldest(t *testing.T) string {
	r, err := c.snapshots.ListSnapshots(t.Context(), &sandboxv1.ListSnapshotsRequest{Session: c.session})
	if err != nil || len(r.GetSnapshots()) == 0 {
		t.Errorf("%v, %v", r, err)
		return "none"
	}
	return r.GetSnapshots()[len(r.GetSnapshots())-1].GetId()
}

// keptAndRestored makes the victim's snapshot and goes back to it.
func keptAndRestored(t *testing.T, c *client) error {
	made, err := c.snapshots.CreateSnapshot(t.Context(), &sandboxv1.CreateSnapshotRequest{Call: c.victim()})
	if err != nil {
		return err
	}
	_, err = c.snapshots.RestoreSnapshot(t.Context(), &sandboxv1.RestoreSnapshotRequest{Call: c.call(), Snapshot: made.GetSnapshot().GetId()})
	return err
}

func pruning(t *testing.T, c *client, r *sandboxv1.DeleteSnapshotsRequest) error {
	_, err := c.snapshots.DeleteSnapshots(t.Context(), r)
	return err
}

// interruptions are all kinds of changes, with what becomes of them.
func interruptions(f *gittest.Forge) []interrupted {
	nothing := func(*testing.T, *client) {}
	replaced := running("echo two > f.new; mv f.new f")
	none, one, two := after{}, after{files: "f=one"}, after{files: "f=two"}
	return append(mountInterruptions(), []interrupted{
		{"a new file is written", nothing, writes("f", nil), replaced, one, one, one, two},
		{"a file is written that others then remove", put("f", "zero"), writes("f", nil), running("rm f"), one, one, one, none},
		{
			"a file is written that must be new", nothing, writes("f", func(s *sandboxv1.WriteFileStart) { s.CreateOnly = true }), replaced,
			one, one, after{"f=two", "FILE_EXISTS"}, two,
		},
		{"a file is edited", put("f", "a"), func(t *testing.T, c *client) error {
			_, err := c.files.EditFile(t.Context(), &sandboxv1.EditFileRequest{Call: c.victim(), Path: "f", Edits: []*sandboxv1.Edit{{OldText: "a", NewText: "aa", ReplaceAll: true}}})
			return err
		}, running("cp f g; mv g f"), after{files: "f=aa"}, after{files: "f=aa"}, after{files: "f=aa"}, after{files: "f=aa"}},
		{"a file is deleted", put("f", "zero"), deleting("f"), running("rm -f f; echo two > f"), none, none, none, two},
		{"a directory is deleted", put("f/g/h", "zero"), deleting("f"), running("rm -rf f; echo two > f"), none, none, none, two},
		{"a file is moved", put("old", "one"), moving, running("rm -f f old; echo two > old"), one, one, two, after{files: "old=two"}},
		{
			"a file is moved that others move on", put("old", "one"), moving, running("if test -e f; then mv f g; else mv old g; fi; echo two > old"),
			one, one, after{files: "f=two g=one"}, after{files: "g=one old=two"},
		},
		{"an archive is unpacked", nothing, func(t *testing.T, c *client) error {
			_, err := c.unpack(t, c.victim(), "d", tarOf(t, entry{name: "f", content: "one"}), sandboxv1.ArchiveFormat_ARCHIVE_FORMAT_TAR, 0)
			return err
		}, running("mv d e || true; echo two > d"), after{files: "d/f=one"}, after{files: "d/f=one"}, after{"d=two", "FILE_EXISTS"}, after{files: "d=two e/f=one"}},
		{"a repository is removed", put("repos/r/.git/config", ""), func(t *testing.T, c *client) error {
			_, err := c.repos.RemoveRepository(t.Context(), &sandboxv1.RemoveRepositoryRequest{Call: c.victim(), Directory: "r"})
			return err
		}, running("rm -rf repos/r; mkdir -p repos/r/.git; echo two > repos/r/f"), none, none, none, after{files: "repos/r/f=two"}},
		{
			"a repository is cloned", nothing, func(t *testing.T, c *client) error {
				_, _, err := c.clone(t, &sandboxv1.CloneRepositoryRequest{Call: c.victim(), Url: f.Repo("app")})
				return err
			}, running("if test -e repos/app; then mv repos/app gone; fi"),
			after{files: "repos/app/f=one"}, after{files: "repos/app/f=one"}, after{files: "repos/app/f=one"}, after{files: "gone/f=one"},
		},
		{
			"a repository is cloned again that a restore took away", func(t *testing.T, c *client) {
				before := c.snapshot(t, c.call()).GetId()
				if _, _, err := c.clone(t, &sandboxv1.CloneRepositoryRequest{Call: c.victim(), Url: f.Repo("app")}); err != nil {
					t.Error(err)
				}
				c.restore(t, before)
			}, func(t *testing.T, c *client) error {
				_, _, err := c.clone(t, &sandboxv1.CloneRepositoryRequest{Call: c.victim(), Url: f.Repo("app")})
				return err
			}, running("if test -e repos/app; then mv repos/app gone; fi"),
			after{files: "repos/app/f=one snapshots=1"}, after{files: "repos/app/f=one snapshots=1"}, after{files: "repos/app/f=one snapshots=1"}, after{files: "gone/f=one snapshots=1"},
		},
		{
			"a snapshot of before a clone is restored", func(t *testing.T, c *client) {
				c.snapshot(t, c.call())
				if _, _, err := c.clone(t, &sandboxv1.CloneRepositoryRequest{Call: c.named("clone"), Url: f.Repo("app")}); err != nil {
					t.Error(err)
				}
			}, func(t *testing.T, c *client) error {
				if _, err := c.snapshots.RestoreSnapshot(t.Context(), &sandboxv1.RestoreSnapshotRequest{Call: c.victim(), Snapshot: c.oldest(t)}); err != nil {
					return err
				}
				_, _, err := c.clone(t, &sandboxv1.CloneRepositoryRequest{Call: c.named("clone"), Url: f.Repo("app")})
				return err
			}, running("test ! -e repos/app"),
			after{files: "repos/app/f=one snapshots=1"}, after{files: "repos/app/f=one snapshots=1"}, after{files: "repos/app/f=one snapshots=1"}, after{files: "repos/app/f=one snapshots=1"},
		},
		{
			"a repository is made of files", put("repos/r/f", "one"), func(t *testing.T, c *client) error {
				made, err := c.repos.AddRepository(t.Context(), &sandboxv1.AddRepositoryRequest{Call: c.victim(), Directory: "r", Url: f.Repo("app")})
				if err == nil && (!made.GetCreated() || made.GetRepository().GetUrl() != f.Repo("app")) {
					t.Errorf("it is %v", made)
				}
				return err
			}, running("if test -e repos/r/.git; then mv repos/r gone; fi"),
			after{files: "repos/r/f=one"}, after{files: "repos/r/f=one"}, after{files: "repos/r/f=one"}, after{files: "gone/f=one"},
		},
		// A restore that has begun finishes before the next request.
		{"a snapshot is restored", func(t *testing.T, c *client) {
			put("f", "one")(t, c)
			c.snapshot(t, c.call())
			put("f", "zero")(t, c)
		}, func(t *testing.T, c *client) error {
			_, err := c.snapshots.RestoreSnapshot(t.Context(), &sandboxv1.RestoreSnapshotRequest{Call: c.victim(), Snapshot: c.oldest(t)})
			return err
		}, replaced, after{files: "f=one snapshots=1"}, after{files: "f=one snapshots=1"}, after{files: "f=two snapshots=1"}, after{files: "f=two snapshots=1"}},
		{"a snapshot is made", put("f", "one"), func(t *testing.T, c *client) error {
			_, err := c.snapshots.CreateSnapshot(t.Context(), &sandboxv1.CreateSnapshotRequest{Call: c.victim()})
			return err
		}, func(t *testing.T, c *client, _ string) {
			if err := pruning(t, c, &sandboxv1.DeleteSnapshotsRequest{Call: c.call(), KeepLast: 1}); err != nil {
				t.Error(err)
			}
			c.snapshot(t, c.call())
			if err := pruning(t, c, &sandboxv1.DeleteSnapshotsRequest{Call: c.call(), KeepLast: 1}); err != nil {
				t.Error(err)
			}
		}, after{files: "f=one snapshots=1"}, after{files: "f=one snapshots=1"}, after{files: "f=one snapshots=2"}, after{files: "f=one snapshots=1"}},
		{"an unchanged workspace is kept", func(t *testing.T, c *client) {
			put("f", "one")(t, c)
			c.snapshot(t, c.call())
		}, keptAndRestored, running("echo two > f"), after{files: "f=one snapshots=2"}, after{files: "f=one snapshots=2"}, after{files: "f=one snapshots=2"}, after{files: "f=one snapshots=2"}},
		{"a workspace is kept that a command left unchanged", func(t *testing.T, c *client) {
			put("f", "one")(t, c)
			c.snapshot(t, c.call())
			c.bash(t, "cat f")
		}, keptAndRestored, running("echo two > f"), after{files: "f=one snapshots=2"}, after{files: "f=one snapshots=2"}, after{files: "f=one snapshots=2"}, after{files: "f=one snapshots=2"}},
		{"snapshots are deleted", func(t *testing.T, c *client) {
			for range 3 {
				c.snapshot(t, c.call())
			}
		}, func(t *testing.T, c *client) error {
			return pruning(t, c, &sandboxv1.DeleteSnapshotsRequest{Call: c.victim(), KeepLast: 1})
		}, func(t *testing.T, c *client, _ string) { c.snapshot(t, c.call()) }, after{files: "snapshots=1"}, after{files: "snapshots=1"}, after{files: "snapshots=2"}, after{files: "snapshots=2"}},
		{"a workspace is imported", nil, func(t *testing.T, c *client) error {
			var b bytes.Buffer
			w := tar.NewWriter(&b)
			_, err := io.WriteString(headed(w, &tar.Header{Name: "f", Typeflag: tar.TypeReg, Mode: 0o644, Size: 3}), "one")
			if err := errors.Join(err, w.Close()); err != nil {
				return err
			}
			_, err = c.importing(t, "victim", b.Bytes())
			return err
		}, func(t *testing.T, c *client, folder string) {
			if _, err := c.read(t, "f"); !apierr.Is(err, sandboxv1.ErrorReason_ERROR_REASON_WORKSPACE_NOT_FOUND) {
				replaced(t, c, folder)
			}
		}, one, one, one, two},
	}...)
}

func headed(w *tar.Writer, h *tar.Header) *tar.Writer {
	if err := w.WriteHeader(h); err != nil {
		panic(err)
	}
	return w
}

// shared is a path in a folder of the mount that is the session's alone.
func (c *client) shared(name string) string {
	return "storage/" + strings.TrimPrefix(c.session, "sessions/") + "/" + name
}

// mountInterruptions are those in folders to which others come before the service does.
func mountInterruptions() []interrupted {
	has := func(name, content string) func(*testing.T, *client) {
		return func(t *testing.T, c *client) { put(c.shared(name), content)(t, c) }
	}
	remove := func(name string) func(*testing.T, *client) error {
		return func(t *testing.T, c *client) error { return deleting(c.shared(name))(t, c) }
	}
	replaced := elsewhere("echo two > f.new; chown --reference . f.new; mv f.new f")
	none, one, two := after{}, after{files: "shared/f=one"}, after{files: "shared/f=two"}
	unknown := func(files string) after { return after{files, "OUTCOME_UNKNOWN"} }
	return []interrupted{
		{"a file is written in a mount", has("f", "zero"), func(t *testing.T, c *client) error {
			return writes(c.shared("f"), nil)(t, c)
		}, replaced, one, one, one, unknown("shared/f=two")},
		{"a file is deleted in a mount", has("f", "zero"), remove("f"), replaced, none, none, two, two},
		{
			"a directory is deleted in a mount", has("f/g", "zero"), remove("f"), elsewhere("mkdir -p f; echo two > f/h; chmod 755 f; chmod 644 f/h"),
			unknown("shared/f/g=zero"), none, unknown("shared/f/g=zero shared/f/h=two"), after{files: "shared/f/h=two"},
		},
		{
			"a file is moved in a mount from which others take it", has("old", "one"), func(t *testing.T, c *client) error {
				_, err := c.files.MoveFile(t.Context(), &sandboxv1.MoveFileRequest{Call: c.victim(), Path: c.shared("old"), NewPath: c.shared("f")})
				return err
			}, elsewhere("rm -f old f"), one, one, unknown(""), unknown(""),
		},
	}
}

// Where the service that is killed finds what the test has.
const (
	crashLevel = "FAIRLEAD_TEST_CRASH_LEVEL"
	crashForge = "FAIRLEAD_TEST_CRASH_FORGE"
)

// scenes calls a function for each interruption at each point, with and without others;
// each has a session.
func scenes(f *gittest.Forge, do func(i interrupted, session, point string, others bool, want after)) {
	for n, i := range interruptions(f) {
		do(i, fmt.Sprintf("s%d-alone-intended", n), "intended", false, i.undone)
		do(i, fmt.Sprintf("s%d-alone-made", n), "made", false, i.done)
		do(i, fmt.Sprintf("s%d-others-intended", n), "intended", true, i.undoneThen)
		do(i, fmt.Sprintf("s%d-others-made", n), "made", true, i.doneThen)
	}
}

// in is the client, in another session.
func (c *client) in(session string) *client {
	d := *c
	d.session = "sessions/" + session
	return &d
}

func crashing(t *testing.T, level, data, shared string, f *gittest.Forge) sandbox.Config {
	cfg := configuration(t, level)
	cfg.Data, cfg.CgroupParent, cfg.UIDBase = data, "fairlead-twice-test", 399_000 // the same in both processes
	cfg.Mounts = []mount.Rule{{Name: "common", Source: shared, Alias: "storage", Mode: "rw"}}
	allow(f)(&cfg)
	return cfg
}

// TestDieAmidChanges is the service that TestNoChangeIsMadeTwice kills: each session's
// change stops where it is to be interrupted.
func TestDieAmidChanges(t *testing.T) {
	dir := os.Getenv(crashDirectory)
	forge := strings.Split(os.Getenv(crashForge), "|")
	if dir == "" || len(forge) != 4 {
		t.Skip("runs in a process of its own")
	}
	port, err := strconv.Atoi(forge[1])
	if err != nil {
		t.Fatal(err)
	}
	f := &gittest.Forge{URL: forge[0], Port: port, PEM: forge[2]}
	reached, prepared := make(chan struct{}), atomic.Bool{}
	deps := sandbox.Deps{Log: discard(), Fault: func(session, call, point string) {
		if call == "victim" && strings.HasSuffix(session, "-"+point) && prepared.Load() {
			reached <- struct{}{}
			select {} // until it is killed
		}
	}}
	c := startWith(t, crashing(t, os.Getenv(crashLevel), dir, forge[3], f), deps)
	scenes(f, func(i interrupted, session, _ string, _ bool, _ after) {
		c := c.in(session)
		if i.prepare != nil {
			c.ensure(t.Context(), t)
			prepared.Store(false) // the changes before this one stand still
			i.prepare(t, c)
		}
		prepared.Store(true)
		go func() {
			fmt.Printf("%s: %s ended: %v\n", i.name, session, i.do(t, c))
			os.Exit(1)
		}()
		<-reached
	})
	fmt.Print("\nREADY\n")
	_, _ = io.Copy(io.Discard, os.Stdin) // until it is killed
}

func TestNoChangeIsMadeTwice(t *testing.T) {
	t.Parallel()
	prove.Only(t, "it cuts off every change at every point")
	atLevel(t, func(t *testing.T, level string) {
		f := gittest.New(t)
		f.Publish("app", map[string]string{"f": "one"})
		data, shared := filepath.Join(t.TempDir(), "data"), sources(t, "shared")+"/shared"
		killAmidChanges(t, level, data, shared, f)
		c := start(t, crashing(t, level, data, shared, f))
		scenes(f, func(i interrupted, session, point string, others bool, want after) {
			t.Run(fmt.Sprintf("%s/%s/others %v", i.name, point, others), func(t *testing.T) {
				c := c.in(session)
				if others {
					i.others(t, c, shared)
				}
				for range 2 {
					if got := (after{reason: apierr.Reason(i.do(t, c))}); got.reason != want.reason {
						t.Errorf("the answer has the reason %q, want %q", got.reason, want.reason)
					}
				}
				if got := c.look(t); got != want.files {
					t.Errorf("there is %q, want %q", got, want.files)
				}
			})
		})
	})
}

// TestAChangeGoesOnWithoutItsCaller: who comes again, and be it several at a time, gets
// the answer of the first.
func TestAChangeGoesOnWithoutItsCaller(t *testing.T) {
	t.Parallel()
	leave := func() {}
	c := startWith(t, configuration(t, sandbox.LevelBasic), sandbox.Deps{Log: discard(), Fault: func(_, call, point string) {
		if call == "victim" && point == "intended" {
			leave()
		}
	}})
	for i, do := range []func(context.Context, *client, string) error{
		func(ctx context.Context, c *client, _ string) error {
			_, err := c.files.EditFile(ctx, &sandboxv1.EditFileRequest{Call: c.victim(), Path: "f", Edits: []*sandboxv1.Edit{{OldText: "a", NewText: "aa", ReplaceAll: true}}})
			return err
		},
		func(ctx context.Context, c *client, snapshot string) error {
			_, err := c.snapshots.RestoreSnapshot(ctx, &sandboxv1.RestoreSnapshotRequest{Call: c.victim(), Snapshot: snapshot})
			return err
		},
		func(ctx context.Context, c *client, _ string) error {
			_, err := c.files.DeleteFile(ctx, &sandboxv1.DeleteFileRequest{Call: c.victim(), Path: "f"})
			return err
		},
	} {
		c := c.in(fmt.Sprint("left", i))
		c.ensure(t.Context(), t)
		put("f", "aa")(t, c)
		snapshot := c.snapshot(t, c.call()).GetId()
		put("f", "a")(t, c)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		leave = cancel
		if err := do(ctx, c, snapshot); status.Code(err) != codes.Canceled {
			t.Errorf("the caller that left: %v", err)
		}
		var again sync.WaitGroup
		for range 4 {
			again.Go(func() {
				if err := do(t.Context(), c, snapshot); err != nil {
					t.Errorf("again: %v", err)
				}
			})
		}
		again.Wait()
		if got, want := c.look(t), []string{"f=aa snapshots=1", "f=aa snapshots=1", "snapshots=1"}[i]; got != want {
			t.Errorf("there is %q, want %q", got, want)
		}
	}
}

// look tells what files there are, but for Git's, and how many snapshots.
func (c *client) look(t *testing.T) string {
	name := strings.TrimPrefix(c.session, "sessions/")
	r := c.bash(t, `find . -path ./storage -prune -o -type f -print | grep -v /.git/ | sort | while read f; do echo "${f#./}=$(cat $f)"; done
		cd storage/`+name+` 2> /dev/null && find . -type f | sort | while read f; do echo "shared/${f#./}=$(cat $f)"; done`)
	found := strings.Fields(r.out)
	list, err := c.snapshots.ListSnapshots(t.Context(), &sandboxv1.ListSnapshotsRequest{Session: c.session})
	if err != nil {
		t.Error(err)
	}
	if n := len(list.GetSnapshots()); n > 0 {
		found = append(found, fmt.Sprintf("snapshots=%d", n))
	}
	return strings.Join(found, " ")
}

// killAmidChanges has a service of its own make the changes, and kills it in their midst.
func killAmidChanges(t *testing.T, level, data, shared string, f *gittest.Forge) {
	t.Helper()
	child(t, "TestDieAmidChanges", crashDirectory+"="+data, crashLevel+"="+level, fmt.Sprintf("%s=%s|%d|%s|%s", crashForge, f.URL, f.Port, f.PEM, shared))()
}
