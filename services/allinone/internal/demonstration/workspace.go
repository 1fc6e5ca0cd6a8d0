package demonstration

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"strings"

	"google.golang.org/grpc"

	commonv1 "github.com/fairlead/fairlead/gen/go/fairlead/common/v1"
	sandboxv1 "github.com/fairlead/fairlead/gen/go/fairlead/sandbox/v1"
)

// Epochs of the demonstration's requests: before the turn, when no worker has
// held the session, and after it, when none will any more.
const (
	epochBefore = 1
	epochAfter  = math.MaxInt64
)

// workspace is the session's workspace, through the sandbox's internal
// services.
type workspace struct {
	peers   grpc.ClientConnInterface
	session string
}

func (w workspace) call(id string, epoch int64) *commonv1.CallRef {
	return &commonv1.CallRef{Session: w.session, Epoch: epoch, CallId: id}
}

// seed makes the workspace with the files in it.
func (w workspace) seed(ctx context.Context, files fs.FS) error {
	seeds := map[string][]byte{}
	err := fs.WalkDir(files, ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		seeds[path], err = fs.ReadFile(files, path)
		return err
	})
	if err != nil {
		return fmt.Errorf("read the files of the demonstration: %w", err)
	}
	resp, err := sandboxv1.NewWorkspaceServiceClient(w.peers).EnsureWorkspace(ctx, &sandboxv1.EnsureWorkspaceRequest{
		Call: w.call("demo-seed", epochBefore), SeedFiles: seeds,
	})
	if err == nil && !resp.GetCreated() {
		err = errors.New("the new session has one already")
	}
	if err != nil {
		return fmt.Errorf("make the workspace: %w", err)
	}
	return nil
}

// run runs a command in the workspace and returns its output and exit code.
func (w workspace) run(ctx context.Context, call *commonv1.CallRef, argv ...string) (string, int32, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stream, err := sandboxv1.NewExecServiceClient(w.peers).Exec(ctx)
	if err != nil {
		return "", 0, err
	}
	start := &sandboxv1.ExecRequest{Kind: &sandboxv1.ExecRequest_Start{Start: &sandboxv1.ExecStart{Call: call, Argv: argv}}}
	if err := errors.Join(stream.Send(start), stream.CloseSend()); err != nil && !errors.Is(err, io.EOF) { // EOF: Recv says why
		return "", 0, err
	}
	var output strings.Builder
	for {
		m, err := stream.Recv()
		if err != nil {
			return "", 0, fmt.Errorf("run %q: %w", strings.Join(argv, " "), err)
		}
		output.Write(m.GetStdout().GetData())
		output.Write(m.GetStderr().GetData())
		if e := m.GetExited(); e != nil {
			if e.GetReason() != sandboxv1.ExitReason_EXIT_REASON_EXITED {
				return "", 0, fmt.Errorf("run %q: it did not exit by itself: %s %s", strings.Join(argv, " "), e.GetReason(), e.GetMessage())
			}
			return output.String(), e.GetExitCode(), nil
		}
	}
}
