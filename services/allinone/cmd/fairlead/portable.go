package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/allinone/internal/terminal"
	"github.com/fairlead/fairlead/services/internal/kit/id"
)

// exportCommand writes a session to a file.
type exportCommand struct {
	ID     string `arg:"" help:"The session."`
	Format string `enum:"jsonl,archive" default:"jsonl" help:"jsonl: the transcript, one JSON object per line. archive: a gzipped tar with the transcript and the files."`
	Output string `short:"o" placeholder:"FILE" help:"The file to write. The default is standard output."`
	target
}

// Run exports. The file appears only when it is complete.
func (c exportCommand) Run(ctx context.Context, s stdio) error {
	return c.with(ctx, s, func(ctx context.Context, b *backend) error {
		return save(s.out, c.Output, func(w io.Writer) error { return c.download(ctx, b, w) })
	})
}

// save writes a file, which appears only when it is complete. Without a name it writes to out.
func save(out io.Writer, name string, write func(io.Writer) error) (err error) {
	if name == "" {
		return write(out)
	}
	file, err := os.CreateTemp(filepath.Dir(name), "."+filepath.Base(name)+"-*")
	if err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.Remove(file.Name()))
		}
	}()
	if err := write(file); err != nil {
		return errors.Join(err, file.Close())
	}
	if err := errors.Join(file.Sync(), file.Close()); err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	return os.Rename(file.Name(), name)
}

func (c exportCommand) download(ctx context.Context, b *backend, w io.Writer) error {
	format := sessionv1.ExportFormat_EXPORT_FORMAT_JSONL
	if c.Format == "archive" {
		format = sessionv1.ExportFormat_EXPORT_FORMAT_ARCHIVE
	}
	stream, err := b.sessions.ExportSession(ctx, &sessionv1.ExportSessionRequest{Name: sessionName(c.ID), Format: format})
	if err != nil {
		return terminal.Explained(err)
	}
	return receive(stream, w, "export")
}

// receive writes the data of a stream, which is of what.
func receive[P interface{ GetData() []byte }](stream interface{ Recv() (P, error) }, w io.Writer, what string) error {
	for {
		piece, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return terminal.Explained(err)
		}
		if _, err := w.Write(piece.GetData()); err != nil {
			return fmt.Errorf("write the %s: %w", what, err)
		}
	}
}

// importCommand makes a session from a file.
type importCommand struct {
	File  string `arg:"" help:"The exported file; - is standard input."`
	ID    string `name:"id" placeholder:"ID" help:"The new session's id. The server makes one by default."`
	Agent string `placeholder:"NAME" help:"The agent of the new session. The default is the agent of the export."`
	JSON  bool   `name:"json" help:"Print the session as JSON."`
	target
}

// Run imports.
func (c importCommand) Run(ctx context.Context, s stdio) error {
	from := s.in
	if c.File != "-" {
		file, err := os.Open(c.File)
		if err != nil {
			return err
		}
		defer func() { _ = file.Close() }()
		from = file
	}
	return c.with(ctx, s, func(ctx context.Context, b *backend) error {
		open := &sessionv1.ImportOpen{SessionId: c.ID, Agent: c.Agent, RequestId: id.New()}
		made, err := send(ctx, b.sessions.ImportSession,
			&sessionv1.ImportSessionRequest{Kind: &sessionv1.ImportSessionRequest_Open{Open: open}},
			func(data []byte) *sessionv1.ImportSessionRequest {
				return &sessionv1.ImportSessionRequest{Kind: &sessionv1.ImportSessionRequest_Data{Data: data}}
			}, from)
		if err != nil {
			return terminal.Explained(err)
		}
		return printMade(s.out, made.GetSession(), c.JSON)
	})
}

// send opens a stream, sends start and then a file in pieces, and returns the answer. If the file cannot be read to its
// end, the stream is not closed, so the server does not take it for whole.
func send[R, A any](
	ctx context.Context, open func(context.Context, ...grpc.CallOption) (grpc.ClientStreamingClient[R, A], error),
	start *R, piece func([]byte) *R, from io.Reader,
) (*A, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stream, err := open(ctx)
	if err != nil {
		return nil, err
	}
	if err = stream.Send(start); err == nil {
		err = eachPiece(from, func(b []byte) error { return stream.Send(piece(b)) })
	}
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	return stream.CloseAndRecv() // also returns the cause of a failed Send
}

// eachPiece sends a file in pieces. It returns io.EOF if the server has ended the stream; the stream knows the
// cause.
func eachPiece(from io.Reader, send func([]byte) error) error {
	for buf := make([]byte, 256<<10); ; {
		n, readErr := from.Read(buf)
		if n > 0 {
			if err := send(buf[:n]); err != nil {
				return err
			}
		}
		if errors.Is(readErr, io.EOF) {
			return nil
		}
		if readErr != nil {
			return fmt.Errorf("read the file: %w", readErr)
		}
	}
}

// printMade prints the name of a new session.
func printMade(w io.Writer, x *sessionv1.Session, asJSON bool) error {
	if asJSON {
		return writeJSON(w, x)
	}
	_, err := fmt.Fprintln(w, bare(x.GetName()))
	return err
}

// fork makes a session that goes on from another one.
type fork struct {
	ID           string `arg:"" help:"The session."`
	Turn         string `placeholder:"ID" help:"Continue from the end of this turn. The default is the end of the conversation."`
	To           string `name:"id" placeholder:"ID" help:"The new session's id. The server makes one by default."`
	Title        string `help:"The new session's title. The default is the title of the session."`
	WithoutFiles bool   `help:"Do not copy the files."`
	jsonOne
	once
}

func (f fork) request() proto.Message {
	r := &sessionv1.ForkSessionRequest{Name: sessionName(f.ID), SessionId: f.To, Title: f.Title, WithoutFiles: f.WithoutFiles}
	if f.Turn != "" {
		r.Turn = r.Name + "/turns/" + bare(f.Turn)
	}
	return r
}

func (fork) show(s stdio, made *sessionv1.Session) error { return printMade(s.out, made, false) }

// compact shortens what the model sees.
type compact struct {
	ID           string `arg:"" help:"The session."`
	Instructions string `help:"What the summary should keep above all."`
	once
}

func (f compact) request() proto.Message {
	return &sessionv1.CompactSessionRequest{Name: sessionName(f.ID), Instructions: f.Instructions}
}

func (compact) done() string {
	return "It will be shortened; the event session.compacted says when it was."
}

// search finds messages.
type search struct {
	Words   []string `arg:"" help:"Words that a message must have, all of them. wor* finds words that begin with wor."`
	Session string   `placeholder:"ID" help:"Only messages of this session."`
	Limit   int      `default:"50" help:"The most messages."`
	JSON    bool     `name:"json" help:"Print one JSON object per message and line."`
}

func (f search) asJSON() bool { return f.JSON }

func (f search) limit() int { return f.Limit }

func (f search) ready() error { return positive(f.Limit) }

func (f search) request() proto.Message {
	r := &sessionv1.SearchMessagesRequest{Query: strings.Join(f.Words, " ")}
	if f.Session != "" {
		r.Session = sessionName(f.Session)
	}
	return r
}

func (search) row(m *sessionv1.FoundMessage) [][]string {
	session, _, _ := strings.Cut(strings.TrimPrefix(m.GetMessage(), "sessions/"), "/")
	return [][]string{
		{"SESSION", session}, {"TIME", stamp(m.GetCreateTime())}, {"WHO", strings.ToLower(strings.TrimPrefix(m.GetRole().String(), "ROLE_"))},
		{"TEXT", m.GetSnippet()},
	}
}
