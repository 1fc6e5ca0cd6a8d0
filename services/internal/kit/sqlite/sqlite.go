// Package sqlite opens an SQLite file for a service: one writer, several readers, and no other
// process.
package sqlite

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"github.com/pressly/goose/v3"
	"golang.org/x/sys/unix"
	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"
)

// maxReaders bounds the concurrent queries; with WAL they also run beside the writer.
const maxReaders = 8

// ErrLocked is returned by Open for a file that another process uses.
var ErrLocked = errors.New("the database is in use by another process; stop that one first, or give this one a data directory of its own")

// ErrNewer is returned by Migrate for a file that a later version of the program has migrated.
var ErrNewer = errors.New("the database has been migrated by a newer version of this program; run that version or restore a backup")

// DB is an open file. Both pools may be used by any number of goroutines.
type DB struct {
	// W writes. It is a single connection whose transactions take the write lock when they begin, so writers queue in
	// this process instead of failing with "database is locked". Do not query W while holding its transaction.
	W *sql.DB
	// R reads what has been committed. Writing through it fails.
	R *sql.DB

	lock *os.File
}

// Open opens the file at path, and creates it and its directory if necessary. Commits are on the disk when
// they return (WAL, synchronous=FULL). A lock file beside it keeps every other process out until Close, or
// until this process ends.
func Open(ctx context.Context, path string) (*DB, error) {
	db, err := open(ctx, path)
	if err != nil {
		return nil, fmt.Errorf("open database %s: %w", path, err)
	}
	return db, nil
}

func open(ctx context.Context, path string) (_ *DB, err error) {
	path, err = filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, err
	}
	db := &DB{}
	defer func() {
		if err != nil {
			err = errors.Join(err, db.Close())
		}
	}()
	if db.lock, err = lock(path + ".lock"); err != nil {
		return nil, err
	}
	if err := private(path); err != nil {
		return nil, err
	}
	db.W = sql.OpenDB(connector{dsn(path, "journal_mode(WAL)", "synchronous(FULL)", "foreign_keys(ON)") + "&_txlock=immediate"})
	db.W.SetMaxOpenConns(1)
	db.W.SetMaxIdleConns(1)
	if err := db.W.PingContext(ctx); err != nil {
		return nil, err
	}
	db.R = sql.OpenDB(connector{dsn(path, "query_only(ON)")})
	db.R.SetMaxOpenConns(maxReaders)
	db.R.SetMaxIdleConns(maxReaders)
	return db, db.R.PingContext(ctx)
}

func dsn(path string, pragmas ...string) string {
	q := url.Values{"_pragma": append([]string{"busy_timeout(10000)"}, pragmas...)}
	return (&url.URL{Scheme: "file", OmitHost: true, Path: path, RawQuery: q.Encode()}).String()
}

// private creates the file before SQLite does, readable only by its owner: it has conversations.
func private(path string) error {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	return f.Close()
}

// lock takes an exclusive lock that the kernel releases when the process ends.
func lock(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		holder := make([]byte, 20)
		n, _ := f.Read(holder)
		_ = f.Close()
		if errors.Is(err, unix.EWOULDBLOCK) {
			return nil, fmt.Errorf("%w (%s is held by process %s)", ErrLocked, path, strings.TrimSpace(string(holder[:n])))
		}
		return nil, fmt.Errorf("lock %s: %w", path, err)
	}
	// The process id of the owner helps a person who finds the lock; a failure to write it is
	// ignored.
	_ = f.Truncate(0)
	_, _ = fmt.Fprintf(f, "%d\n", os.Getpid())
	return f, nil
}

// Close closes the file. Running queries fail.
func (db *DB) Close() error {
	var faults []error
	if db.R != nil {
		faults = append(faults, db.R.Close())
	}
	if db.W != nil { // the writer last: it folds the log into the file
		faults = append(faults, db.W.Close())
	}
	if db.lock != nil {
		// A process that is being started may have the file open for a moment longer.
		faults = append(faults, unix.Flock(int(db.lock.Fd()), unix.LOCK_UN), db.lock.Close())
	}
	return errors.Join(faults...)
}

// Migrate brings the file up to the last migration, goose's SQL files in the root of migrations.
func Migrate(ctx context.Context, db *DB, migrations fs.FS) error {
	if err := migrate(ctx, db, migrations); err != nil {
		return fmt.Errorf("migrate the database: %w", err)
	}
	return nil
}

func migrate(ctx context.Context, db *DB, migrations fs.FS) error {
	p, err := goose.NewProvider(goose.DialectSQLite3, db.W, migrations)
	if err != nil {
		return err
	}
	current, target, err := p.GetVersions(ctx)
	if err != nil {
		return err
	}
	if current > target {
		return fmt.Errorf("%w (schema version %d, program's version %d)", ErrNewer, current, target)
	}
	_, err = p.Up(ctx)
	return err
}

// Tx runs do in a transaction of the writer, and commits it unless do returns an error, which Tx returns
// unchanged.
func (db *DB) Tx(ctx context.Context, do func(*sql.Tx) error) error {
	tx, err := db.W.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }() // after a commit it does nothing
	if err := do(tx); err != nil {
		return err
	}
	return tx.Commit()
}

// TxUnsynced is Tx without the wait for the disk: a crash of the machine may lose the commit, but not one that a
// later Tx follows. The end of the process loses nothing.
func (db *DB) TxUnsynced(ctx context.Context, do func(*sql.Tx) error) (err error) {
	conn, err := db.W.Conn(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, conn.Close()) }()
	if err := synchronous(ctx, conn, "normal"); err != nil {
		return err
	}
	defer func() {
		if e := synchronous(context.WithoutCancel(ctx), conn, "full"); e != nil {
			_ = conn.Raw(func(any) error { return driver.ErrBadConn }) // the next one is opened with a full one
		}
	}()
	tx, err := conn.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }() // after a commit it does nothing
	if err := do(tx); err != nil {
		return err
	}
	return tx.Commit()
}

// synchronous sets when a connection's commits wait for the disk. SQLite does that when it parses the statement, so a
// kept one would do nothing.
func synchronous(ctx context.Context, c *sql.Conn, when string) error {
	return c.Raw(func(made any) error {
		inner, ok := made.(*conn)
		if !ok {
			return driver.ErrBadConn
		}
		_, err := inner.innerConn.ExecContext(ctx, "pragma synchronous = "+when, nil)
		return err
	})
}

// Unavailable reports whether err means that the file takes no work now: the disk is full or another process
// holds it.
func Unavailable(err error) bool {
	var e *sqlite.Error
	if !errors.As(err, &e) {
		return false
	}
	switch e.Code() & 0xff {
	case sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR:
		return true
	}
	return false
}
