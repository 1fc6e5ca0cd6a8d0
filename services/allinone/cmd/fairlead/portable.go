package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

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
	for {
		piece, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return terminal.Explained(err)
		}
		if _, err := w.Write(piece.GetData()); err != nil {
			return fmt.Errorf("write the export: %w", err)
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
		x, err := b.upload(ctx, &sessionv1.ImportOpen{SessionId: c.ID, Agent: c.Agent, RequestId: id.New()}, from)
		if err != nil {
			return err
		}
		return printMade(s.out, x, c.JSON)
	})
}

// upload sends a file. If it cannot be read to its end, nothing is made.
func (b *backend) upload(ctx context.Context, open *sessionv1.ImportOpen, from io.Reader) (*sessionv1.Session, error) {
	ctx, cancel := context.WithCancel(ctx) // an upload that was not closed is not taken for whole
	defer cancel()
	stream, err := b.sessions.ImportSession(ctx)
	if err != nil {
		return nil, terminal.Explained(err)
	}
	err = stream.Send(&sessionv1.ImportSessionRequest{Kind: &sessionv1.ImportSessionRequest_Open{Open: open}})
	if err == nil {
		err = eachPiece(from, func(b []byte) error {
			return stream.Send(&sessionv1.ImportSessionRequest{Kind: &sessionv1.ImportSessionRequest_Data{Data: b}})
		})
	}
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	resp, err := stream.CloseAndRecv() // also returns the cause of a failed Send
	return resp.GetSession(), terminal.Explained(err)
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

// forkCommand makes a session that goes on from another one.
type forkCommand struct {
	ID           string `arg:"" help:"The session."`
	Turn         string `placeholder:"ID" help:"Continue from the end of this turn. The default is the end of the conversation."`
	To           string `name:"id" placeholder:"ID" help:"The new session's id. The server makes one by default."`
	Title        string `help:"The new session's title. The default is the title of the session."`
	WithoutFiles bool   `help:"Do not copy the files."`
	JSON         bool   `name:"json" help:"Print the new session as JSON."`
	target
}

// Run forks.
func (c forkCommand) Run(ctx context.Context, s stdio) error {
	r := &sessionv1.ForkSessionRequest{
		Name: sessionName(c.ID), SessionId: c.To, Title: c.Title, WithoutFiles: c.WithoutFiles, RequestId: id.New(),
	}
	if c.Turn != "" {
		r.Turn = r.Name + "/turns/" + bare(c.Turn)
	}
	return c.with(ctx, s, func(ctx context.Context, b *backend) error {
		resp, err := b.sessions.ForkSession(ctx, r)
		if err != nil {
			return terminal.Explained(err)
		}
		return printMade(s.out, resp.GetSession(), c.JSON)
	})
}

// compactCommand shortens what the model sees.
type compactCommand struct {
	ID           string `arg:"" help:"The session."`
	Instructions string `help:"What the summary should keep above all."`
	target
}

// Run asks for a compaction.
func (c compactCommand) Run(ctx context.Context, s stdio) error {
	return c.with(ctx, s, func(ctx context.Context, b *backend) error {
		_, err := b.sessions.CompactSession(ctx, &sessionv1.CompactSessionRequest{
			Name: sessionName(c.ID), Instructions: c.Instructions, RequestId: id.New(),
		})
		if err != nil {
			return terminal.Explained(err)
		}
		_, err = fmt.Fprintln(s.out, "It will be shortened; the event session.compacted says when it was.")
		return err
	})
}

// searchCommand finds messages.
type searchCommand struct {
	Words   []string `arg:"" help:"Words that a message must have, all of them. wor* finds words that begin with wor."`
	Session string   `placeholder:"ID" help:"Only messages of this session."`
	Limit   int      `default:"50" help:"The most messages."`
	JSON    bool     `name:"json" help:"Print one JSON object per message and line."`
	target
}

// Run searches.
func (c searchCommand) Run(ctx context.Context, s stdio) error {
	if c.Limit < 1 {
		return usage("--limit must be at least 1")
	}
	r := &sessionv1.SearchMessagesRequest{Query: strings.Join(c.Words, " ")}
	if c.Session != "" {
		r.Session = sessionName(c.Session)
	}
	return c.with(ctx, s, func(ctx context.Context, b *backend) error {
		var all []*sessionv1.FoundMessage
		err := pages(ctx, c.Limit, func(size int32, token string) (int, string, error) {
			r.PageSize, r.PageToken = size, token
			resp, err := b.sessions.SearchMessages(ctx, r)
			all = append(all, resp.GetMessages()...)
			return len(resp.GetMessages()), resp.GetNextPageToken(), err
		})
		if err != nil {
			return terminal.Explained(err)
		}
		if c.JSON {
			return printJSON(s.out, all)
		}
		return listFound(s.out, all)
	})
}

func listFound(w io.Writer, all []*sessionv1.FoundMessage) error {
	rows := [][]string{{"SESSION", "TIME", "WHO", "TEXT"}}
	for _, m := range all {
		session, _, _ := strings.Cut(strings.TrimPrefix(m.GetMessage(), "sessions/"), "/")
		rows = append(rows, []string{
			session, stamp(m.GetCreateTime()), strings.ToLower(strings.TrimPrefix(m.GetRole().String(), "ROLE_")), m.GetSnippet(),
		})
	}
	return columns(w, rows)
}
