package integration

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strconv"
	"strings"
	"testing"

	sandboxv1 "github.com/fairlead/fairlead/gen/go/fairlead/sandbox/v1"
	"github.com/fairlead/fairlead/services/sandbox"
)

// openWithQuota starts a service whose file system keeps the size of workspaces, or skips
// the test: TMPDIR must be on XFS mounted with pquota, or ext4 with prjquota.
func openWithQuota(t *testing.T) *client {
	t.Helper()
	cfg := configuration(t, sandbox.LevelAuto)
	small(&cfg)
	cfg.Limits.FileSize = 1 << 30
	cfg.WorkspaceQuota = sandbox.QuotaProject
	s, err := sandbox.New(t.Context(), cfg, sandbox.Deps{Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Skipf("no quota is to be had here: %v", err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	c := start(t, cfg)
	c.ensure(t.Context(), t)
	return c
}

// TestTheFileSystemKeepsTheSizeOfAWorkspace is what programs and people see of a quota
// that the kernel keeps: exactly so much, at once, and told.
func TestTheFileSystemKeepsTheSizeOfAWorkspace(t *testing.T) {
	t.Parallel()
	c := openWithQuota(t)
	answers := c.bystander(t)
	const bytes, files = 16 << 20, 500 // as small says
	for _, tt := range []struct {
		name, script string
		exits        int32
		hits         string
		least, most  int // of the number that it prints last
	}{
		{"a large file", "head -c 30000000 /dev/zero > f; s=$?; stat -c %s f; exit $s", 1, "workspace-bytes", bytes - 256<<10, bytes},
		{"in a full workspace", "echo x > g && sync g; s=$?; echo 0; exit $s", 1, "", 0, 0},
		{"room is made", "rm -f f g; echo 0", 0, "", 0, 0},
		{"a program that says nothing", "head -c 30000000 /dev/zero > f 2>/dev/null; stat -c %s f", 0, "workspace-bytes", bytes - 256<<10, bytes},
		{"room is made", "rm f; echo 0", 0, "", 0, 0},
		{"the home directory", "head -c 30000000 /dev/zero > ~/f; s=$?; stat -c %s ~/f; rm ~/f; exit $s", 1, "workspace-bytes|", bytes - 256<<10, bytes},
		{"deleted files", "n=0; for i in $(seq 9); do exec {fd}>f; rm f; head -c 3000000 /dev/zero >&$fd && n=$((n+1)); done 2>/dev/null; sleep 1; echo $n", 0, "workspace-bytes", 5, 5},
		{"many files", "mkdir m; i=0; while : > m/$i; do i=$((i+1)); done 2>/dev/null; sleep 1; echo $i", 0, "workspace-inodes", files - 60, files},
		{"a further file", ": > m/more; s=$?; echo 0; exit $s", 1, "", 0, 0},
		{"room is made", "rm -r m; echo 0", 0, "", 0, 0},
		{"what fits", "head -c 8000000 /dev/zero > f; stat -c %s f; rm f", 0, "", 8_000_000, 8_000_000},
		{"a full /tmp", "head -c 9000000 /dev/zero > /tmp/f; s=$?; rm /tmp/f; echo 0; exit $s", 1, "", 0, 0},
	} {
		r := c.bash(t, tt.script)
		lines := strings.Fields(r.out)
		n := -1
		if len(lines) > 0 {
			n, _ = strconv.Atoi(lines[len(lines)-1])
		}
		if r.GetReason() != sandboxv1.ExitReason_EXIT_REASON_EXITED || r.GetExitCode() != tt.exits || n < tt.least || n > tt.most || !strings.Contains("|"+tt.hits+"|", "|"+r.hits()+"|") {
			t.Errorf("%s: %v, %.200q %.200q", tt.name, r.ExecExited, r.out, r.err)
		}
		answers()
	}
}

// TestTheServiceHeedsTheFileSystemsQuota has the service write into a workspace that only
// the kernel knows to be full.
func TestTheServiceHeedsTheFileSystemsQuota(t *testing.T) {
	t.Parallel()
	c := openWithQuota(t)
	// Deleted files that a command holds are counted by the kernel alone.
	stream := c.launch(t.Context(), t, &sandboxv1.ExecStart{Call: c.call(), Stdin: true, Argv: []string{"bash", "-c", "exec 9>f; rm f; head -c 30000000 /dev/zero >&9; echo full; read x"}})
	for {
		m, err := stream.Recv()
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(m.GetStdout().GetData()), "full") {
			break
		}
	}
	_, err := c.write(t, "a", strings.Repeat("x", 300_000), nil)
	wantReason(t, err, "WORKSPACE_FULL")
	send(t, stream, &sandboxv1.ExecRequest{Kind: &sandboxv1.ExecRequest_Stdin{Stdin: &sandboxv1.ExecStdin{Data: []byte("\n")}}})
	if _, err := follow(stream); err != nil && !errors.Is(err, io.EOF) {
		t.Fatal(err)
	}
	if _, err := c.write(t, "a", strings.Repeat("x", 300_000), nil); err != nil {
		t.Error(err)
	}
}

// TestAQuotaFollowsItsWorkspace changes limits, and takes a slot that another workspace had.
func TestAQuotaFollowsItsWorkspace(t *testing.T) {
	t.Parallel()
	c := openWithQuota(t)
	fill := func() int {
		r := c.bash(t, "head -c 30000000 /dev/zero > f 2>/dev/null; stat -c %s f; rm f")
		n, _ := strconv.Atoi(strings.TrimSpace(r.out))
		return n
	}
	for _, limit := range []int64{4 << 20, 0, 1 << 20} {
		if _, err := c.workspaces.EnsureWorkspace(t.Context(), &sandboxv1.EnsureWorkspaceRequest{Call: c.call(), Limits: &sandboxv1.WorkspaceLimits{WorkspaceBytes: limit}}); err != nil {
			t.Fatal(err)
		}
		want := int(limit)
		if want == 0 {
			want = 16 << 20
		}
		if n := fill(); n > want || n < want-256<<10 {
			t.Errorf("with a limit of %d a file of %d bytes fits", limit, n)
		}
	}
	for i := range 3 {
		if _, err := c.workspaces.DeleteWorkspace(t.Context(), &sandboxv1.DeleteWorkspaceRequest{Session: c.session}); err != nil {
			t.Fatal(err)
		}
		c.session = fmt.Sprintf("sessions/next-%d", i)
		c.ensure(t.Context(), t)
		if n := fill(); n > 16<<20 || n < 16<<20-256<<10 {
			t.Errorf("in a new workspace a file of %d bytes fits", n)
		}
	}
}
