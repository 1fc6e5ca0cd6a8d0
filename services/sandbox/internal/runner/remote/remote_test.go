package remote_test

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"testing"

	"go.uber.org/goleak"

	"github.com/fairlead/fairlead/services/internal/kit/prove"
	"github.com/fairlead/fairlead/services/sandbox/internal/box"
	"github.com/fairlead/fairlead/services/sandbox/internal/runner/pool"
	"github.com/fairlead/fairlead/services/sandbox/internal/runner/remote"
	"github.com/fairlead/fairlead/services/sandbox/internal/runner/rootfs"
	"github.com/fairlead/fairlead/services/sandbox/internal/runner/runnertest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// maker runs init at the other end of two pipes, in as much of a sandbox as it needs
// to end everything.
type maker struct {
	layout *rootfs.Layout
	image  *os.File
}

func (m *maker) Close() error { return m.image.Close() }

func (m *maker) Make(_ context.Context, b pool.Build) (pool.Body, error) {
	args := []string{"--unshare-all", "--as-pid-1", "--new-session", "--uid", "1000", "--gid", "1000", "--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp"}
	for _, x := range m.layout.Binds {
		args = append(args, "--ro-bind", x.Source, x.Path)
	}
	for _, x := range m.layout.Links {
		args = append(args, "--symlink", x.Target, x.Path)
	}
	args = append(args, "--ro-bind", "/dev/null", "/etc/passwd", "--bind", b.Spec.Home, box.HomePath, "--bind", b.Spec.Workspace, box.WorkspacePath)
	cmd := exec.Command("bwrap", append(args, "--", "/proc/self/fd/3", "stream", "filter")...)
	cmd.ExtraFiles, cmd.Stderr = []*os.File{m.image}, b.Errors
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	link, err := remote.Join(b.Socket, out, in)
	if err := errors.Join(err, cmd.Start()); err != nil {
		return nil, err
	}
	made := &body{cmd: cmd, link: link, end: func() { _ = in.Close() }, ended: make(chan struct{})}
	go func() {
		defer close(made.ended)
		_ = link.Run(made.end)
		made.end()
		_ = cmd.Wait()
		link.Wait()
	}()
	return made, nil
}

// body is a sandbox that ends when its connection is silent.
type body struct {
	cmd   *exec.Cmd
	link  *remote.Link
	end   func()
	ended chan struct{}
}

func (b *body) Init() int              { return 0 }
func (b *body) Release() error         { return nil }
func (b *body) Complete() error        { return nil }
func (b *body) Kill()                  { b.end() }
func (b *body) Listener() net.Listener { return b.link.Listener() }
func (b *body) Wait() error {
	<-b.ended
	return nil
}

func TestConformsOverPlainPipes(t *testing.T) {
	prove.Only(t, "pipes to a pod are not the default driver")
	runnertest.Run(t, runnertest.Subject{
		Owner: box.Self,
		Has:   runnertest.Features{Network: true},
		New: func(t *testing.T, o runnertest.Options) box.Runner {
			layout, err := rootfs.Find(nil, nil)
			if err != nil {
				t.Fatal(err)
			}
			image, err := pool.OpenInit("")
			if err != nil {
				t.Fatal(err)
			}
			r, err := pool.New(pool.Options{
				Maker: &maker{layout, image}, Path: layout.Path, Max: o.Max, Idle: o.Idle, Network: o.Network, Log: slog.New(slog.NewTextHandler(t.Output(), nil)),
			})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() {
				if err := r.Close(); err != nil {
					t.Error(err)
				}
			})
			return r
		},
	})
}
