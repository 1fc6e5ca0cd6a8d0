package integration

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	sandboxv1 "github.com/fairlead/fairlead/gen/go/fairlead/sandbox/v1"
	"github.com/fairlead/fairlead/services/internal/kit/principal"
	"github.com/fairlead/fairlead/services/sandbox"
)

func send(t *testing.T, s sandboxv1.ExecService_ExecClient, r *sandboxv1.ExecRequest) {
	t.Helper()
	if err := s.Send(r); err != nil {
		t.Fatal(err)
	}
}

// launch starts a command and waits until it has started.
func (c *client) launch(ctx context.Context, t *testing.T, s *sandboxv1.ExecStart) sandboxv1.ExecService_ExecClient {
	t.Helper()
	stream, err := c.execs.Exec(ctx)
	if err != nil {
		t.Fatal(err)
	}
	send(t, stream, &sandboxv1.ExecRequest{Kind: &sandboxv1.ExecRequest_Start{Start: s}})
	m, err := stream.Recv()
	if err != nil {
		t.Fatal(err)
	}
	if m.GetStarted() == nil {
		t.Fatalf("the first answer is %v", m)
	}
	return stream
}

// A caller whose input is not read goes away: then another caller owns the command.
func TestACommandThatDoesNotExistIsNotStarted(t *testing.T) {
	t.Parallel()
	c := open(t, sandbox.LevelBasic)
	for _, s := range []*sandboxv1.ExecStart{
		{Argv: []string{"no-such-program"}}, {Argv: []string{"/workspace"}}, {Argv: []string{"true"}, Cwd: "no/such/folder"},
	} {
		s.Call = c.call()
		r, err := follow(c.launch(t.Context(), t, s))
		if err != nil || r.GetReason() != sandboxv1.ExitReason_EXIT_REASON_NOT_STARTED || r.GetMessage() == "" || r.err != "" {
			t.Errorf("%v: %v, %v, %q", s.GetArgv(), r.ExecExited, err, r.err)
		}
	}
}

func TestStartingAgainAttaches(t *testing.T) {
	t.Parallel()
	c := open(t, sandbox.LevelBasic)
	s := &sandboxv1.ExecStart{Call: c.call(), Argv: []string{"bash", "-c", "echo -n abc; echo -n def >&2; until [ -e go ]; do sleep 0.02; done; echo ghi; echo run >> runs"}}
	ctx, drop := context.WithCancel(t.Context())
	c.launch(ctx, t, s)
	drop() // the command goes on
	again := c.launch(t.Context(), t, s)
	if _, err := c.write(t, "go", "", nil); err != nil {
		t.Fatal(err)
	}
	r, err := follow(again)
	if err != nil || r.out != "abcghi\n" || r.err != "def" {
		t.Errorf("%q %q %v", r.out, r.err, err)
	}
	if runs, err := c.read(t, "runs"); err != nil || runs != "run\n" {
		t.Errorf("it ran %q, %v", runs, err)
	}
	attach, err := c.execs.Exec(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	send(t, attach, &sandboxv1.ExecRequest{Kind: &sandboxv1.ExecRequest_Attach{Attach: &sandboxv1.ExecAttach{Call: s.GetCall(), StdoutOffset: 3, StderrOffset: 1}}})
	if r, err := follow(attach); err != nil || r.out != "ghi\n" || r.err != "ef" || !r.attached {
		t.Errorf("from an offset: %q %q %v", r.out, r.err, err)
	}
	_, err = c.exec(t.Context(), "echo another", func(other *sandboxv1.ExecStart) { other.Call = s.GetCall() })
	wantReason(t, err, "CALL_ID_REUSED")
}

func TestResultsAreKeptUntilTheyAreAcknowledged(t *testing.T) {
	t.Parallel()
	c := open(t, sandbox.LevelBasic)
	ref := c.named("kept")
	if _, err := c.exec(t.Context(), "echo x", func(s *sandboxv1.ExecStart) { s.Call = ref }); err != nil {
		t.Fatal(err)
	}
	list := func() int {
		r, err := c.execs.ListExecs(t.Context(), &sandboxv1.ListExecsRequest{Session: c.session})
		if err != nil {
			t.Fatal(err)
		}
		return len(r.GetExecs())
	}
	if n := list(); n != 1 {
		t.Errorf("%d execs before", n)
	}
	for range 2 {
		if _, err := c.execs.AcknowledgeExec(t.Context(), &sandboxv1.AcknowledgeExecRequest{Call: ref}); err != nil {
			t.Error(err)
		}
	}
	if n := list(); n != 0 {
		t.Errorf("%d execs afterwards", n)
	}
	attach, err := c.execs.Exec(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	send(t, attach, &sandboxv1.ExecRequest{Kind: &sandboxv1.ExecRequest_Attach{Attach: &sandboxv1.ExecAttach{Call: ref}}})
	_, err = follow(attach)
	wantReason(t, err, "EXEC_ACKNOWLEDGED")
}

func TestListsHavePages(t *testing.T) {
	t.Parallel()
	c := open(t, sandbox.LevelBasic)
	for range 3 {
		c.bash(t, "true")
	}
	var ids []string
	r := &sandboxv1.ListExecsRequest{Session: c.session, PageSize: 2}
	for {
		p, err := c.execs.ListExecs(t.Context(), r)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range p.GetExecs() {
			ids = append(ids, e.GetCallId())
		}
		if r.PageToken = p.GetNextPageToken(); r.PageToken == "" {
			break
		}
	}
	if got := strings.Join(ids, " "); got != "call.2 call.3 call.4" {
		t.Errorf("ids %s", got)
	}
	r.PageToken = "nonsense"
	_, err := c.execs.ListExecs(t.Context(), r)
	wantReason(t, err, "BAD_PAGE_TOKEN")
}

func TestCancellingKillsAllAndRefusesALaterStart(t *testing.T) {
	t.Parallel()
	atLevel(t, func(t *testing.T, level string) {
		c := open(t, level)
		ref := c.named("cancelled")
		s := &sandboxv1.ExecStart{Call: ref, Argv: []string{"bash", "-c", "trap '' TERM; (while :; do date >> alive; sleep 0.02; done) & setsid sleep 100 & echo ready; wait"}}
		stream := c.launch(t.Context(), t, s)
		if _, err := stream.Recv(); err != nil {
			t.Fatal(err)
		}
		got, err := c.execs.CancelExec(t.Context(), &sandboxv1.CancelExecRequest{Call: ref})
		if err != nil || got.GetExited().GetReason() != sandboxv1.ExitReason_EXIT_REASON_CANCELLED {
			t.Fatalf("%v, %v", got, err)
		}
		size := func() int64 {
			r, err := c.files.StatFile(t.Context(), &sandboxv1.StatFileRequest{Session: c.session, Path: "alive"})
			if err != nil {
				return -1 // killed before its first line
			}
			return r.GetFile().GetSize()
		}
		before := size()
		if r := c.bash(t, "sleep 0.2"); r.GetReason() != sandboxv1.ExitReason_EXIT_REASON_EXITED {
			t.Errorf("%v", r.ExecExited)
		}
		if after := size(); after != before {
			t.Errorf("it still writes: %d, then %d bytes", before, after)
		}
		if r, err := follow(stream); err != nil || r.GetReason() != sandboxv1.ExitReason_EXIT_REASON_CANCELLED {
			t.Errorf("%v, %v", r.ExecExited, err)
		}
		early := c.named("early")
		if got, err := c.execs.CancelExec(t.Context(), &sandboxv1.CancelExecRequest{Call: early}); err != nil || got.GetExited() != nil {
			t.Errorf("before the start: %v, %v", got, err)
		}
		for _, ref := range []string{"cancelled", "early"} {
			_, err := c.exec(t.Context(), "echo no", func(s *sandboxv1.ExecStart) { s.Call = c.named(ref) })
			wantReason(t, err, "CALL_CANCELLED")
		}
	})
}

func TestTwoTenantsNeverMeet(t *testing.T) {
	t.Parallel()
	atLevel(t, func(t *testing.T, level string) {
		cfg := configuration(t, level)
		c := start(t, cfg)
		for _, tenant := range []string{"blue", "red"} {
			ctx := principal.With(t.Context(), principal.Service(tenant, "u"))
			if !c.ensure(ctx, t).GetCreated() {
				t.Errorf("the workspace of %s was there", tenant)
			}
			r, err := c.exec(ctx, "ls -A; echo "+tenant+" > mine; ls / /home", func(s *sandboxv1.ExecStart) { s.Call = c.named("same") })
			if err != nil || strings.Contains(r.out, "mine") || strings.Contains(r.out, "blue") {
				t.Errorf("%s sees %q, %v", tenant, r.out, err)
			}
		}
		for _, dir := range []string{"blue", "red"} {
			if _, err := os.Stat(filepath.Join(cfg.Data, dir, "one", "workspace", "mine")); err != nil {
				t.Error(err)
			}
		}
		_, err := c.files.StatFile(t.Context(), &sandboxv1.StatFileRequest{Session: c.session, Path: "."})
		wantReason(t, err, "WORKSPACE_NOT_FOUND")
	})
}

func TestADeletedWorkspaceIsGone(t *testing.T) {
	t.Parallel()
	atLevel(t, func(t *testing.T, level string) {
		c := open(t, level)
		stream := c.launch(t.Context(), t, &sandboxv1.ExecStart{Call: c.call(), Argv: []string{"bash", "-c", "mkdir -p a/b; chmod 0 a/b a; sleep 100"}})
		for range 2 {
			if _, err := c.workspaces.DeleteWorkspace(t.Context(), &sandboxv1.DeleteWorkspaceRequest{Session: c.session}); err != nil {
				t.Fatal(err)
			}
		}
		if r, err := follow(stream); err != nil || r.GetReason() != sandboxv1.ExitReason_EXIT_REASON_CANCELLED {
			t.Errorf("%v, %v", r.ExecExited, err)
		}
		_, err := c.exec(t.Context(), "true", nil)
		wantReason(t, err, "WORKSPACE_NOT_FOUND")
		if !c.ensure(t.Context(), t).GetCreated() {
			t.Error("the new workspace is not new")
		}
		if r := c.bash(t, "ls -A"); r.out != standardFolders {
			t.Errorf("it holds %q", r.out)
		}
	})
}

func TestOneServicePerDirectory(t *testing.T) {
	t.Parallel()
	cfg := configuration(t, sandbox.LevelBasic)
	start(t, cfg)
	if _, err := sandbox.New(t.Context(), cfg, sandbox.Deps{Log: discard()}); err == nil || !strings.Contains(err.Error(), "used by another") {
		t.Errorf("%v", err)
	}
}

func TestWhatIsMissingIsNamed(t *testing.T) {
	t.Parallel()
	cfg := configuration(t, sandbox.LevelBasic)
	cfg.Bubblewrap = "/bin/false"
	if _, err := sandbox.New(t.Context(), cfg, sandbox.Deps{Log: discard()}); err == nil || !strings.Contains(err.Error(), "apt-get install -y bubblewrap") {
		t.Errorf("%v", err)
	}
	cfg = configuration(t, "strong")
	if _, err := sandbox.New(t.Context(), cfg, sandbox.Deps{Log: discard()}); err == nil || !strings.Contains(err.Error(), "full, basic, auto") {
		t.Errorf("%v", err)
	}
	if os.Getuid() != 0 {
		if _, err := sandbox.New(t.Context(), configuration(t, sandbox.LevelFull), sandbox.Deps{Log: discard()}); err == nil || !strings.Contains(err.Error(), "needs root") {
			t.Errorf("%v", err)
		}
	}
}

func TestMalformedStartsAreRefused(t *testing.T) {
	t.Parallel()
	c := open(t, sandbox.LevelBasic)
	for name, r := range map[string]*sandboxv1.ExecRequest{
		"nothing":       {},
		"input first":   {Kind: &sandboxv1.ExecRequest_Stdin{Stdin: &sandboxv1.ExecStdin{}}},
		"no call":       {Kind: &sandboxv1.ExecRequest_Start{Start: &sandboxv1.ExecStart{Argv: []string{"true"}}}},
		"no program":    {Kind: &sandboxv1.ExecRequest_Start{Start: &sandboxv1.ExecStart{Call: c.call()}}},
		"an empty name": {Kind: &sandboxv1.ExecRequest_Start{Start: &sandboxv1.ExecStart{Call: c.call(), Argv: []string{""}}}},
		"a zero byte":   {Kind: &sandboxv1.ExecRequest_Start{Start: &sandboxv1.ExecStart{Call: c.call(), Argv: []string{"a\x00b"}}}},
		"an argument that is too long": {Kind: &sandboxv1.ExecRequest_Start{Start: &sandboxv1.ExecStart{
			Call: c.call(), Argv: []string{"echo", strings.Repeat("a", 131_073)},
		}}},
		"a folder outside": {Kind: &sandboxv1.ExecRequest_Start{Start: &sandboxv1.ExecStart{
			Call: c.call(), Argv: []string{"true"}, Cwd: "../..",
		}}},
	} {
		s, err := c.execs.Exec(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		send(t, s, r)
		if _, err := s.Recv(); status.Code(err) != codes.InvalidArgument {
			t.Errorf("%s: %v", name, err)
		}
	}
	s, err := c.execs.Exec(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := s.CloseSend(); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Recv(); status.Code(err) != codes.InvalidArgument {
		t.Errorf("no request: %v", err)
	}
	if _, err := s.Recv(); errors.Is(err, io.EOF) {
		t.Error("the stream ended well")
	}
}

func TestManyCommandsRunAtOnce(t *testing.T) {
	t.Parallel()
	atLevel(t, func(t *testing.T, level string) {
		c := open(t, level)
		answers := make(chan string, 12)
		began := time.Now()
		for range cap(answers) {
			go func() {
				r, err := c.exec(t.Context(), "sleep 0.3; echo ok", nil)
				if err != nil {
					r.out = err.Error()
				}
				answers <- r.out
			}()
		}
		for range cap(answers) {
			if got := <-answers; got != "ok\n" {
				t.Errorf("%q", got)
			}
		}
		t.Logf("%d commands in %v", cap(answers), time.Since(began))
	})
}

func TestStandardErrorThatLooksLikeAComplaintIsNotLost(t *testing.T) {
	t.Parallel()
	c := open(t, sandbox.LevelBasic)
	for _, text := range []string{"b", "bwrap: execvp nothing at all", "bwr", "other"} {
		if r := c.bash(t, "printf '"+text+"' >&2; exit 3"); r.err != text || r.GetExitCode() != 3 {
			t.Errorf("%q became %q, %v", text, r.err, r.ExecExited)
		}
	}
}

// On a terminal the end of the input is a character. In the middle of a line it only
// has the program read what is there.
// Arguments may be long, and a page of them more than fits into one message.
func TestCommandsWithLongArgumentsAreListed(t *testing.T) {
	t.Parallel()
	c := open(t, sandbox.LevelBasic)
	long := strings.Repeat("x", 130_000)
	for range 15 {
		argv := []string{"true"}
		for range 10 {
			argv = append(argv, long)
		}
		if _, err := follow(c.launch(t.Context(), t, &sandboxv1.ExecStart{Call: c.call(), Argv: argv})); err != nil {
			t.Fatal(err)
		}
	}
	told := 0
	for token := ""; ; {
		r, err := c.execs.ListExecs(t.Context(), &sandboxv1.ListExecsRequest{Session: c.session, PageToken: token})
		if err != nil {
			t.Fatal(err)
		}
		told += len(r.GetExecs())
		if token = r.GetNextPageToken(); token == "" {
			break
		}
	}
	if told != 15 {
		t.Errorf("told of %d", told)
	}
}

// A terminal is closed a moment before the end is told: who counts the files meanwhile
// takes a while.
