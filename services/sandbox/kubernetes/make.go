package kubernetes

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/remotecommand"
	"k8s.io/klog/v2"

	"github.com/fairlead/fairlead/services/sandbox/internal/runner/pool"
	"github.com/fairlead/fairlead/services/sandbox/internal/runner/remote"
)

// endTimeout limits how long the cluster may take to end a pod.
const endTimeout = 60 * time.Second

// body is a pool.Body: one pod.
type body struct {
	m         *maker
	name      string // of all objects of the sandbox
	workspace string
	link      *remote.Link
	cancel    context.CancelFunc // closes the connection to init
	ended     chan struct{}      // closed when the connection has ended
	starved   atomic.Bool
	killed    atomic.Bool
	fate      string // the report about a pod that ended by itself; only remove uses it
}

// Make implements pool.Maker.
func (m *maker) Make(ctx context.Context, b pool.Build) (_ pool.Body, err error) {
	at, err := m.place(b.Spec)
	if err != nil {
		return nil, err
	}
	if err := m.endLeftover(ctx, b.Spec.Workspace); err != nil {
		return nil, err
	}
	if err := m.putTrust(); err != nil {
		return nil, err
	}
	made := &body{m: m, name: objectName(rand.Text()), workspace: b.Spec.Workspace, ended: make(chan struct{})}
	defer func() {
		if err != nil {
			err = errors.Join(err, made.remove(ctx))
		}
	}()
	if err := m.create(ctx, made.name, m.spec(b.Spec, at)); err != nil {
		return nil, fmt.Errorf("make the pod: %w", err)
	}
	pod, err := m.awaitRunning(ctx, made.name)
	if err != nil {
		return nil, err
	}
	return made, made.connect(ctx, b, pod, m.words(b.Spec.Limits, at.shown))
}

// create makes the pod, directly or through its API.
func (m *maker) create(ctx context.Context, name string, spec corev1.PodSpec) error {
	if m.o.API == AgentSandboxes {
		return m.client.create(ctx, agentSandboxes, m.agentSandbox(name, spec), nil)
	}
	return m.client.create(ctx, pods, &corev1.Pod{
		TypeMeta: metav1.TypeMeta{Kind: "Pod", APIVersion: "v1"}, ObjectMeta: m.meta(name), Spec: spec,
	}, nil)
}

func selector(name string) string { return LabelSandbox + "=" + name }

// awaitRunning waits until a sandbox's pod runs and returns its name.
func (m *maker) awaitRunning(ctx context.Context, name string) (pod string, err error) {
	why := "the cluster has not started to create it"
	err = m.client.await(ctx, selector(name), func(all []corev1.Pod) (bool, error) {
		for _, p := range all {
			switch p.Status.Phase {
			case corev1.PodRunning:
				if p.DeletionTimestamp == nil {
					pod = p.Name
					return true, nil
				}
			case corev1.PodFailed, corev1.PodSucceeded:
				return false, fmt.Errorf("the pod ended before it started: %s", state(&p))
			}
			why = state(&p)
			if hopeless(&p) {
				return false, fmt.Errorf("the pod cannot start: %s", why)
			}
		}
		return false, nil
	})
	if errors.Is(err, context.DeadlineExceeded) {
		return "", fmt.Errorf("the pod did not start within %v (key `kubernetes.start-timeout`): %s", m.o.StartTimeout, why)
	}
	return pod, err
}

// hopeless reports whether a pod waits for something that will not come by itself.
func hopeless(p *corev1.Pod) bool {
	for _, c := range p.Status.ContainerStatuses {
		if w := c.State.Waiting; w != nil {
			switch w.Reason {
			case "InvalidImageName", "CreateContainerConfigError", "CreateContainerError", "RunContainerError":
				return true
			}
		}
	}
	return false
}

// state returns what the cluster reports about a pod.
func state(p *corev1.Pod) string {
	said := []string{string(p.Status.Phase)}
	for _, s := range []string{p.Status.Reason, p.Status.Message} {
		if s != "" {
			said = append(said, s)
		}
	}
	for _, c := range p.Status.Conditions {
		if c.Status == corev1.ConditionFalse && c.Message != "" {
			said = append(said, c.Reason+": "+c.Message)
		}
	}
	for _, c := range p.Status.ContainerStatuses {
		if w := c.State.Waiting; w != nil {
			said = append(said, strings.TrimSpace(w.Reason+" "+w.Message))
		}
		if t := c.State.Terminated; t != nil {
			said = append(said, fmt.Sprintf("%s (exit code %d) %s", t.Reason, t.ExitCode, t.Message))
		}
	}
	return strings.TrimSpace(strings.Join(said, ", "))
}

// connect runs init in the pod and joins the socket to it.
func (b *body) connect(ctx context.Context, build pool.Build, pod string, words []string) error {
	run, err := remotecommand.NewWebSocketExecutor(b.m.client.config, http.MethodGet, b.m.client.execURL(pod, container, words).String())
	if err != nil {
		return fmt.Errorf("prepare the connection to init: %w", err)
	}
	complaints, err := again(build.Errors)
	if err != nil {
		return err
	}
	in, toInit := io.Pipe()
	fromInit, out := io.Pipe()
	link, err := remote.Join(build.Socket, fromInit, toInit)
	if err != nil {
		return errors.Join(err, complaints.Close())
	}
	b.link = link
	ctx, b.cancel = context.WithCancel(context.WithoutCancel(ctx))
	ctx = klog.NewContext(ctx, klog.Logger{}) // do not log a connection that is ended on purpose
	b.m.work.Add(2)
	go func() {
		defer b.m.work.Done()
		err := run.StreamWithContext(ctx, remotecommand.StreamOptions{Stdin: in, Stdout: out, Stderr: complaints})
		if ctx.Err() == nil {
			if err == nil { // a cut between two frames has no error
				err = errors.New("it ended")
			}
			_, _ = fmt.Fprintf(complaints, "the connection to the pod: %v\n", err)
		}
		_ = errors.Join(out.CloseWithError(io.EOF), in.CloseWithError(io.ErrClosedPipe), complaints.Close())
	}()
	go func() {
		defer b.m.work.Done()
		err := link.Run(b.cancel)
		if err != nil && !b.killed.Load() {
			b.m.o.Log.WarnContext(ctx, "the stream of a sandbox broke", "sandbox", b.name, "error", err)
		}
		b.cancel()
		_ = errors.Join(fromInit.Close(), toInit.Close())
		close(b.ended)
		link.Wait()
	}()
	return nil
}

// again duplicates a file that must outlive its owner's.
func again(f *os.File) (*os.File, error) {
	fd, err := unix.FcntlInt(f.Fd(), unix.F_DUPFD_CLOEXEC, 3)
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd), f.Name()), nil
}

// Init implements pool.Body: it is no process of this machine.
func (b *body) Init() int { return 0 }

// Release implements pool.Body: init already runs.
func (b *body) Release() error { return nil }

// Complete implements pool.Body.
func (b *body) Complete() error { return nil }

// Kill implements pool.Body. Init ends all processes when its stream ends. In any case Wait removes the
// pod, which ends them too.
func (b *body) Kill() {
	b.killed.Store(true)
	b.cancel()
}

// Wait implements pool.Body.
func (b *body) Wait() error {
	<-b.ended
	return b.remove(context.Background())
}

// Listener implements pool.Elsewhere.
func (b *body) Listener() net.Listener { return b.link.Listener() }

// OutOfMemory implements pool.Told.
func (b *body) OutOfMemory() bool { return b.starved.Load() }
