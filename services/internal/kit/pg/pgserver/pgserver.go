// Package pgserver starts a throw-away Postgres server for tests and experiments.
//
// The server listens only on a unix socket, needs no password, and trades durability for speed unless it is
// started with StartDurable. It ends with the process that started it, however that ends.
package pgserver

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
)

// ErrMissing is returned by Start on a machine without Postgres; its text says how to install it.
var ErrMissing = errors.New("postgres is not installed on this machine; install it with: apt-get install -y postgresql")

const (
	superuser    = "fairlead"
	startTimeout = 30 * time.Second
	stopTimeout  = 10 * time.Second
	maxSocketDir = 107 - len("/.s.PGSQL.5432")
)

// Server is a running server. The caller must stop it.
type Server struct {
	dir      string
	mine     bool // dir was made by Start
	bin      string
	settings []string // instead of Postgres's own defaults
	attr     *syscall.SysProcAttr
	cmd      *exec.Cmd
	log      *bytes.Buffer

	exited chan struct{}
	err    error // of the process; read it after exited
	stop   sync.Once
}

// Start runs a server in dir, which must be empty or not exist, and returns when the server answers. With an
// empty dir it makes a temporary one, which Stop removes. Root cannot run Postgres: the server then runs as
// the user nobody, who becomes the owner of dir. ctx bounds only the start.
func Start(ctx context.Context, dir string) (*Server, error) {
	return start(ctx, dir, "fsync=off", "synchronous_commit=off", "full_page_writes=off", "max_connections=300")
}

// StartDurable is Start with Postgres's own settings for durability, all of them on: for measurements and for
// tests that kill the server. Further settings have the form name=value.
func StartDurable(ctx context.Context, dir string, settings ...string) (*Server, error) {
	return start(ctx, dir, append([]string{"fsync=on", "synchronous_commit=on", "full_page_writes=on", "max_connections=300"}, settings...)...)
}

func start(ctx context.Context, dir string, settings ...string) (*Server, error) {
	bin, err := find()
	if err != nil {
		return nil, err
	}
	s := &Server{dir: dir, mine: dir == "", bin: bin, settings: settings, log: &bytes.Buffer{}}
	if err := s.start(ctx); err != nil {
		if s.mine && s.dir != "" {
			err = errors.Join(err, os.RemoveAll(s.dir))
		}
		return nil, fmt.Errorf("start a throw-away postgres: %w", err)
	}
	return s, nil
}

func (s *Server) start(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	attr, uid, gid, err := identity()
	if err != nil {
		return err
	}
	s.attr = attr
	if err := s.prepare(uid, gid); err != nil {
		return err
	}
	init := s.command(exec.CommandContext(ctx, filepath.Join(s.bin, "initdb"), "-D", s.data(), "-U", superuser, //nolint:gosec // bin is ours
		"--auth=trust", "--no-sync", "-E", "UTF8", "--locale=C"))
	if err := run(init, nil); err != nil {
		return fmt.Errorf("initdb: %w: %s", err, s.log)
	}
	s.launch()
	if err := s.ready(ctx); err != nil {
		return errors.Join(err, s.Stop())
	}
	return nil
}

// launch starts the server's process.
func (s *Server) launch() {
	args := []string{"-D", s.data(), "-k", s.dir, "-c", "listen_addresses=", "-c", "unix_socket_permissions=0777"}
	for _, setting := range s.settings {
		args = append(args, "-c", setting)
	}
	s.cmd = s.command(exec.Command(filepath.Join(s.bin, "postgres"), args...)) //nolint:gosec,noctx // bin is ours, and the server outlives every context
	s.exited = make(chan struct{})
	started := make(chan struct{})
	go func() {
		s.err = run(s.cmd, started)
		close(s.exited)
	}()
	<-started
}

// Crash ends the server with a signal, such as SIGKILL, or SIGQUIT for an immediate shutdown, and returns
// when all its processes are gone. Restart starts it again. Neither may run concurrently with another method.
func (s *Server) Crash(signal syscall.Signal) error {
	err := s.cmd.Process.Signal(signal)
	<-s.exited
	return err
}

// Restart starts a server that has crashed, and returns when it has recovered and answers.
func (s *Server) Restart(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	s.launch()
	return s.ready(ctx)
}

// prepare makes the directory for the user that the server runs as.
func (s *Server) prepare(uid, gid int) error {
	if s.mine {
		dir, err := os.MkdirTemp("/tmp", "pg")
		if err != nil {
			return err
		}
		s.dir = dir
	}
	dir, err := filepath.Abs(s.dir)
	if err != nil {
		return err
	}
	s.dir = dir
	if len(dir) > maxSocketDir {
		return fmt.Errorf("the path %s is too long for a unix socket, at most %d bytes are possible", dir, maxSocketDir)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil { // clients of other users find the socket in it
		return err
	}
	if uid < 0 {
		return nil
	}
	return os.Chown(dir, uid, gid)
}

func (s *Server) data() string { return filepath.Join(s.dir, "data") }

// Socket returns the path of the server's unix socket.
func (s *Server) Socket() string { return filepath.Join(s.dir, ".s.PGSQL.5432") }

func (s *Server) command(c *exec.Cmd) *exec.Cmd {
	c.Dir, c.Stdout, c.Stderr, c.SysProcAttr = s.dir, s.log, s.log, s.attr
	c.Env = []string{"PATH=" + os.Getenv("PATH"), "LC_ALL=C", "TZ=UTC"}
	return c
}

// run runs c to its end on one thread: the kernel sends the parent-death signal when the forking thread ends,
// not the process. It closes started, if not nil, once c runs or has failed to start.
func run(c *exec.Cmd, started chan<- struct{}) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	err := c.Start()
	if started != nil {
		close(started)
	}
	if err != nil {
		return err
	}
	return c.Wait()
}

// ready waits until the server answers.
func (s *Server) ready(ctx context.Context) error {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		conn, err := pgx.Connect(ctx, s.URL())
		if err == nil {
			return conn.Close(ctx)
		}
		select {
		case <-tick.C:
		case <-s.exited:
			return fmt.Errorf("the server ended while starting: %w: %s", s.err, s.log)
		case <-ctx.Done():
			return fmt.Errorf("the server does not answer: %w", err)
		}
	}
}

// URL returns the URL of the server's maintenance database, as its superuser.
func (s *Server) URL() string {
	u := url.URL{Scheme: "postgres", User: url.User(superuser), Path: "/postgres", RawQuery: url.Values{"host": {s.dir}}.Encode()}
	return u.String()
}

// PID returns the process id of the server's first process, the parent of the others.
func (s *Server) PID() int { return s.cmd.Process.Pid }

// Stop ends the server at once, and removes its directory if Start made it. It may be called more than once.
func (s *Server) Stop() error {
	var err error
	s.stop.Do(func() {
		select {
		case <-s.exited:
		default:
			err = s.cmd.Process.Signal(syscall.SIGQUIT) // immediate shutdown
		}
		select {
		case <-s.exited:
		case <-time.After(stopTimeout):
			err = errors.Join(errors.New("postgres did not stop and is killed"), s.cmd.Process.Kill())
			<-s.exited
		}
		if s.mine {
			err = errors.Join(err, os.RemoveAll(s.dir))
		}
	})
	return err
}

// identity returns the user that runs the server: the current one (uid -1), or the user nobody
// instead of root.
func identity() (attr *syscall.SysProcAttr, uid, gid int, err error) {
	attr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGQUIT, Setpgid: true} // Ctrl-C is for the tests, not for their database
	if os.Getuid() != 0 {
		return attr, -1, -1, nil
	}
	u, err := user.Lookup("nobody")
	if err != nil {
		return nil, 0, 0, fmt.Errorf("root cannot run postgres, and there is no other user to run it as: %w", err)
	}
	uid64, err1 := strconv.ParseUint(u.Uid, 10, 32)
	gid64, err2 := strconv.ParseUint(u.Gid, 10, 32)
	if err := errors.Join(err1, err2); err != nil {
		return nil, 0, 0, err
	}
	attr.Credential = &syscall.Credential{Uid: uint32(uid64), Gid: uint32(gid64)}
	return attr, int(uid64), int(gid64), nil
}

// find returns the directory of initdb and postgres: the one on PATH, or Debian's with the highest version.
func find() (string, error) {
	candidates, _ := filepath.Glob("/usr/lib/postgresql/*/bin/initdb") // the pattern is valid
	slices.SortFunc(candidates, func(a, b string) int { return version(b) - version(a) })
	if onPath, err := exec.LookPath("initdb"); err == nil {
		candidates = slices.Insert(candidates, 0, onPath)
	}
	for _, c := range candidates {
		c, err := filepath.EvalSymlinks(c)
		if err != nil {
			continue
		}
		if _, err := os.Stat(filepath.Join(filepath.Dir(c), "postgres")); err == nil {
			return filepath.Dir(c), nil
		}
	}
	return "", ErrMissing
}

// version returns the number in /usr/lib/postgresql/15/bin/initdb.
func version(path string) int {
	n, _ := strconv.Atoi(filepath.Base(filepath.Dir(filepath.Dir(path))))
	return n
}
