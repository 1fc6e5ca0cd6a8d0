package sqlite

import (
	"context"
	"database/sql/driver"
	"errors"

	"modernc.org/sqlite"
)

// maxStatements bounds the statements that a connection keeps. Those of the services are fewer; some differ by the
// length of a list.
const maxStatements = 400

// connector opens connections that prepare each statement once. Parsing takes longer than most statements run.
type connector struct{ dsn string }

// Driver implements driver.Connector.
func (connector) Driver() driver.Driver { return &sqlite.Driver{} }

// Connect implements driver.Connector.
func (c connector) Connect(context.Context) (driver.Conn, error) {
	made, err := (&sqlite.Driver{}).Open(c.dsn)
	if err != nil {
		return nil, err
	}
	inner, ok := made.(innerConn)
	if !ok {
		return nil, errors.Join(errors.New("the SQLite driver lacks a method that statements need"), made.Close())
	}
	return &conn{innerConn: inner, kept: map[string]*statement{}}, nil
}

// innerConn is what the driver's connections can do.
type innerConn interface {
	driver.Conn
	driver.ConnBeginTx
	driver.ConnPrepareContext
	driver.ExecerContext
	driver.QueryerContext
	driver.Pinger
	driver.SessionResetter
	driver.Validator
}

// conn is a connection with its statements. One goroutine uses it at a time.
type conn struct {
	innerConn
	kept map[string]*statement
}

// statement is a prepared statement. It is busy as long as its rows are read.
type statement struct {
	prepared
	busy bool
}

// prepared is what the driver's statements can do.
type prepared interface {
	driver.Stmt
	driver.StmtExecContext
	driver.StmtQueryContext
}

// ExecContext implements driver.ExecerContext.
func (c *conn) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	s, err := c.statement(ctx, query)
	if err != nil {
		return nil, err
	}
	if s == nil {
		return c.innerConn.ExecContext(ctx, query, args)
	}
	return s.ExecContext(ctx, args)
}

// QueryContext implements driver.QueryerContext.
func (c *conn) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	s, err := c.statement(ctx, query)
	if err != nil {
		return nil, err
	}
	if s == nil {
		return c.innerConn.QueryContext(ctx, query, args)
	}
	r, err := s.QueryContext(ctx, args)
	if err != nil {
		return nil, err
	}
	s.busy = true
	return &rows{Rows: r, of: s}, nil
}

// rows are the rows of a kept statement.
type rows struct {
	driver.Rows
	of *statement
}

// Close implements driver.Rows.
func (r *rows) Close() error {
	r.of.busy = false
	return r.Rows.Close()
}

// statement returns a prepared statement that is not busy, or nil if there is none.
func (c *conn) statement(ctx context.Context, query string) (*statement, error) {
	if s, ok := c.kept[query]; ok {
		if s.busy {
			return nil, nil //nolint:nilnil // the caller runs it without preparing
		}
		return s, nil
	}
	if len(c.kept) >= maxStatements {
		if err := c.forget(); err != nil {
			return nil, err
		}
	}
	made, err := c.PrepareContext(ctx, query)
	if err != nil {
		return nil, err
	}
	p, ok := made.(prepared)
	if !ok {
		return nil, errors.Join(errors.New("the SQLite driver lacks a method that statements need"), made.Close())
	}
	s := &statement{prepared: p}
	c.kept[query] = s
	return s, nil
}

// forget closes the statements that are not busy.
func (c *conn) forget() error {
	var faults []error
	for query, s := range c.kept {
		if !s.busy {
			faults = append(faults, s.Close())
			delete(c.kept, query)
		}
	}
	return errors.Join(faults...)
}

// Close implements driver.Conn.
func (c *conn) Close() error {
	faults := make([]error, 0, len(c.kept)+1)
	for _, s := range c.kept {
		faults = append(faults, s.Close())
	}
	return errors.Join(append(faults, c.innerConn.Close())...)
}
