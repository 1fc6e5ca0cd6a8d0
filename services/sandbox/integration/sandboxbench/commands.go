package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"google.golang.org/grpc"

	commonv1 "github.com/fairlead/fairlead/gen/go/fairlead/common/v1"
	sandboxv1 "github.com/fairlead/fairlead/gen/go/fairlead/sandbox/v1"
	"github.com/fairlead/fairlead/services/internal/kit/auth/internaltoken"
	"github.com/fairlead/fairlead/services/internal/kit/principal"
	"github.com/fairlead/fairlead/services/internal/kit/rpc"
	"github.com/fairlead/fairlead/services/sandbox"
	"github.com/fairlead/fairlead/services/sandbox/internal/box"
	"github.com/fairlead/fairlead/services/sandbox/internal/cgroup"
	"github.com/fairlead/fairlead/services/sandbox/internal/runner/rootfs"
	"github.com/fairlead/fairlead/services/sandbox/internal/seccomp"
)

// kind is one way to run /bin/true.
type kind struct {
	name string
	run  func() error
}

// commands runs /bin/true in each way. Each is measured beside what it is compared with, in
// turn, so that what disturbs one disturbs the other.
func (b *bench) commands(ctx context.Context) (err error) {
	r, err := b.runner(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	warm, err := b.sandbox()
	if err != nil {
		return err
	}
	busy, err := b.sandbox()
	if err != nil {
		return err
	}
	sibling, err := r.Start(ctx, box.Command{Sandbox: busy, Argv: []string{"sleep", "3600"}, Dir: "/", Limits: busy.Limits})
	if err != nil {
		return err
	}
	defer func() { sibling.Kill(); sibling.Wait(); _, _ = sibling.Stdout().Close(), sibling.Stderr().Close() }()
	lower := warm.Limits
	lower.MemoryBytes /= 2
	remote, err := b.dial(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, remote.close()) }()
	plain := kind{"plain fork and exec from Go", func() error { return exec.CommandContext(ctx, "/bin/true").Run() }}
	inside := kind{"in a warm sandbox", func() error { return finish(r.Start(ctx, truth(warm, warm.Limits))) }}
	limited := kind{"… with limits of its own", func() error { return finish(r.Start(ctx, truth(warm, lower))) }}
	beside := kind{"… beside another command", func() error { return finish(r.Start(ctx, truth(busy, busy.Limits))) }}
	far := kind{"… through gRPC Exec", func() error { return remote.truth(ctx) }}
	root, err := rootfs.Find(nil, nil)
	if err != nil {
		return err
	}
	made, err := b.madeFiles()
	if err != nil {
		return err
	}
	root.Binds = append(root.Binds, made...)
	alone := kind{"one hardened bwrap per command", func() error { return cold(ctx, warm, root, false) }}
	hiding := kind{"… that hides in /proc what a sandbox hides", func() error { return cold(ctx, warm, root, true) }}

	took, err := b.compare(plain, inside, far)
	if err != nil {
		return err
	}
	goal(took[1] <= 1.4, "warm: %.2f times plain; goal: 1.4", took[1])
	goal(took[2] <= 2, "through gRPC: %.2f times plain; goal: 2", took[2])
	if took, err = b.compare(inside, alone, hiding); err != nil {
		return err
	}
	goal(took[1] >= 5, "a bwrap per command takes %.2f times as long as a warm sandbox, one that hides as much %.2f times; goal: 5", took[1], took[2])
	if _, err := b.compare(plain, limited, beside); err != nil {
		return err
	}
	return b.favored(plain, limited, beside)
}

// favored measures again with quick moves between control groups, as
// `cgroup-favor-moves` sets them.
func (b *bench) favored(plain, limited, beside kind) (err error) {
	before, err := cgroup.MovesFavored()
	if err != nil {
		return err
	}
	if err := cgroup.FavorMoves(true); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, cgroup.FavorMoves(before)) }()
	row("with cgroup-favor-moves:", "")
	took, err := b.compare(plain, limited, beside)
	if err != nil {
		return err
	}
	goal(took[1] <= 2.5, "limits of its own: %.2f times plain; goal: 2.5", took[1])
	goal(took[2] <= 2.5, "beside another: %.2f times plain; goal: 2.5", took[2])
	return nil
}

// compare prints what each kind takes, and returns the medians as multiples of the first's.
func (b *bench) compare(kinds ...kind) ([]float64, error) {
	all, err := b.time(kinds)
	if err != nil {
		return nil, err
	}
	multiples := make([]float64, len(kinds))
	for i, k := range kinds {
		multiples[i] = float64(all[i].at(0.5)) / float64(all[0].at(0.5))
		row(k.name, "%s, %.2f times the first", all[i], multiples[i])
	}
	return multiples, nil
}

// time runs each kind once a round, in an order that changes: what one leaves for the
// kernel to do disturbs each of the others as often.
func (b *bench) time(kinds []kind) ([]times, error) {
	random := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // the same one in each run
	took := make([]times, len(kinds))
	for round := range b.rounds + 10 {
		for _, i := range random.Perm(len(kinds)) {
			begun := time.Now()
			if err := kinds[i].run(); err != nil {
				return nil, fmt.Errorf("%s: %w", kinds[i].name, err)
			}
			if round >= 10 { // the first ones make sandboxes, and warm caches
				took[i] = append(took[i], time.Since(begun))
			}
		}
	}
	return took, nil
}

func truth(s box.Sandbox, l box.Limits) box.Command {
	return box.Command{Sandbox: s, Argv: []string{"/bin/true"}, Dir: "/", Limits: l}
}

// finish waits for a command's end.
func finish(p box.Process, err error) error {
	if err != nil {
		return err
	}
	e := p.Wait()
	_, _ = p.Stdout().Close(), p.Stderr().Close()
	if e.Status != 0 || e.Signal != 0 || e.Lost {
		return fmt.Errorf("it ended with %+v", e)
	}
	return nil
}

// madeFiles writes the files of /etc that are made up.
func (b *bench) madeFiles() ([]rootfs.Bind, error) {
	var binds []rootfs.Bind
	for _, f := range rootfs.MadeFiles {
		path := filepath.Join(b.dir, filepath.Base(f.Path))
		if err := os.WriteFile(path, []byte(f.Text), 0o644); err != nil {
			return nil, err
		}
		binds = append(binds, rootfs.Bind{Path: f.Path, Source: path})
	}
	return binds, nil
}

// cold runs /bin/true in a bubblewrap of its own, with what a warm sandbox's shows: the
// curated root with its files of /etc, users, capabilities, filter, sized scratch folders.
// It has no control groups and no process limits. With hide, it hides in /proc what a
// warm sandbox hides.
func cold(ctx context.Context, s box.Sandbox, l *rootfs.Layout, hide bool) error {
	filter, in, err := os.Pipe()
	if err != nil {
		return err
	}
	defer func() { _ = filter.Close() }()
	_, err = in.Write(seccomp.Filter())
	if err := errors.Join(err, in.Close()); err != nil {
		return err
	}
	args := []string{"--unshare-all", "--unshare-user", "--disable-userns", "--uid", "1000", "--gid", "1000",
		"--cap-drop", "ALL", "--die-with-parent", "--new-session", "--clearenv"}
	for _, b := range l.Binds {
		args = append(args, "--ro-bind", b.Source, b.Path)
	}
	for _, x := range l.Links {
		args = append(args, "--symlink", x.Target, x.Path)
	}
	args = append(args, "--proc", "/proc", "--dev", "/dev")
	if hide {
		for _, f := range l.MaskedFiles {
			args = append(args, "--ro-bind", os.DevNull, f)
		}
		for _, f := range l.MaskedFolders {
			args = append(args, "--size", "4096", "--tmpfs", f, "--remount-ro", f)
		}
	}
	args = append(args, "--size", "536870912", "--tmpfs", "/tmp", "--size", "67108864", "--tmpfs", "/dev/shm",
		"--bind", s.Workspace, "/workspace", "--bind", s.Home, "/home/agent", "--remount-ro", "/dev", "--remount-ro", "/",
		"--seccomp", "3", "--chdir", "/workspace", "--", "/bin/true")
	cmd := exec.CommandContext(ctx, "bwrap", args...)
	cmd.ExtraFiles = []*os.File{filter}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(s.Owner.UID), Gid: uint32(s.Owner.GID)}}
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%w: %s", err, out)
	}
	return nil
}

// remote is a whole service, in this process, and a client of it.
type remote struct {
	execs     sandboxv1.ExecServiceClient
	files     sandboxv1.FileServiceClient
	workspace string // on the host
	session   string
	calls     int
	conn      grpc.ClientConnInterface
	close     func() error
}

// dial starts a service with one workspace.
func (b *bench) dial(ctx context.Context) (_ *remote, err error) {
	c := sandbox.Defaults()
	b.made++
	c.Limits.Flood, c.Limits.Output, c.Limits.FileSize, c.Limits.Execs = 8<<30, 4<<30, 4<<30, 2*loadSessions
	c.Level, c.Data, c.CgroupParent, c.UIDBase = sandbox.LevelFull, filepath.Join(b.dir, fmt.Sprint("data", b.made)), "fairlead-bench", 500_000
	s, err := sandbox.New(ctx, c, sandbox.Deps{Log: b.log})
	if err != nil {
		return nil, err
	}
	keys := internaltoken.Random()
	pipe, server := rpc.NewPipe(keys, rpc.WithFallback(principal.Service("default", "default"))), rpc.NewPeerServer(b.log, keys) //nolint:contextcheck // it outlives none
	s.RegisterPeer(server)
	done := make(chan error, 1)
	go func() { done <- server.Serve(pipe.Listener()) }()
	r := &remote{
		execs: sandboxv1.NewExecServiceClient(pipe.Conn), files: sandboxv1.NewFileServiceClient(pipe.Conn),
		workspace: filepath.Join(c.Data, "default", "one", "workspace"), session: "sessions/one", conn: pipe.Conn,
	}
	r.close = func() error {
		_ = pipe.Conn.Close()
		server.Stop()
		return errors.Join(<-done, s.Close())
	}
	return r, r.open(ctx, pipe.Conn)
}

func (r *remote) open(ctx context.Context, conn grpc.ClientConnInterface) error {
	_, err := sandboxv1.NewWorkspaceServiceClient(conn).EnsureWorkspace(ctx, &sandboxv1.EnsureWorkspaceRequest{Call: r.call()})
	return err
}

func (r *remote) call() *commonv1.CallRef {
	r.calls++
	return &commonv1.CallRef{Session: r.session, Epoch: 1, CallId: fmt.Sprint("call.", r.calls)}
}

// truth runs /bin/true.
func (r *remote) truth(ctx context.Context) error { return r.run(ctx, func() {}) }

// run is truth, and calls started when the command has started.
func (r *remote) run(ctx context.Context, started func()) error {
	stream, err := r.execs.Exec(ctx)
	if err != nil {
		return err
	}
	start := &sandboxv1.ExecStart{Call: r.call(), Argv: []string{"/bin/true"}}
	if err := stream.Send(&sandboxv1.ExecRequest{Kind: &sandboxv1.ExecRequest_Start{Start: start}}); err != nil {
		return err
	}
	for {
		m, err := stream.Recv()
		if err != nil {
			return err
		}
		if m.GetStarted() != nil {
			started()
		}
		if e := m.GetExited(); e != nil {
			if e.GetReason() != sandboxv1.ExitReason_EXIT_REASON_EXITED || e.GetExitCode() != 0 {
				return fmt.Errorf("it ended with %v", e)
			}
			_, err := stream.Recv()
			if !errors.Is(err, io.EOF) {
				return err
			}
			return nil
		}
	}
}
