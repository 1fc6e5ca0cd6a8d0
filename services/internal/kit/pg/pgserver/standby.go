package pgserver

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/jackc/pgx/v5"
)

// Standby starts a server that follows this one until Promote. From then on a commit here waits until the
// standby has it. The caller must stop it.
func (s *Server) Standby(ctx context.Context) (_ *Server, err error) {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	_, uid, gid, err := identity()
	if err != nil {
		return nil, err
	}
	b := &Server{mine: true, bin: s.bin, settings: s.settings, attr: s.attr, log: &bytes.Buffer{}}
	if err := b.prepare(uid, gid); err != nil {
		return nil, err
	}
	backup := b.command(exec.CommandContext(ctx, filepath.Join(b.bin, "pg_basebackup"), //nolint:gosec // bin is ours
		"-h", s.dir, "-U", superuser, "-D", b.data(), "-R", "-X", "stream", "-c", "fast", "--no-sync"))
	if err := run(backup, nil); err != nil {
		return nil, errors.Join(fmt.Errorf("pg_basebackup: %w: %s", err, b.log), os.RemoveAll(b.dir))
	}
	b.launch()
	if err = b.ready(ctx); err == nil {
		err = s.Set(ctx, "synchronous_standby_names", "*")
	}
	if err != nil {
		return nil, errors.Join(err, b.Stop())
	}
	return b, nil
}

// Promote makes a standby an independent server. The server that it followed takes no more writes, on any
// connection, and keeps its open connections.
func (s *Server) Promote(ctx context.Context, primary *Server) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	if err := primary.Set(ctx, "default_transaction_read_only", "on"); err != nil {
		return err
	}
	if err := s.exec(ctx, "select pg_promote(true, 30)"); err != nil {
		return err
	}
	return s.Set(ctx, "synchronous_standby_names", "")
}

// Set changes a setting of the running server.
func (s *Server) Set(ctx context.Context, name, value string) error {
	if err := s.exec(ctx, fmt.Sprintf("alter system set %s = '%s'", name, value)); err != nil {
		return err
	}
	return s.exec(ctx, "select pg_reload_conf()")
}

func (s *Server) exec(ctx context.Context, statement string) error {
	conn, err := pgx.Connect(ctx, s.URL())
	if err != nil {
		return err
	}
	_, err = conn.Exec(ctx, statement)
	return errors.Join(err, conn.Close(ctx))
}
