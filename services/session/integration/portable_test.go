package integration

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/internal/kit/apierr"
	"github.com/fairlead/fairlead/services/internal/kit/config"
	"github.com/fairlead/fairlead/services/internal/kit/pg/pgtest"
	"github.com/fairlead/fairlead/services/session"
	"github.com/fairlead/fairlead/services/session/internal/store/faulty"
	"github.com/fairlead/fairlead/services/session/internal/transcript"
)

const (
	jsonl   = sessionv1.ExportFormat_EXPORT_FORMAT_JSONL
	archive = sessionv1.ExportFormat_EXPORT_FORMAT_ARCHIVE
)

func (f *fixture) tryExport(ctx context.Context, name string, format sessionv1.ExportFormat) ([]byte, error) {
	stream, err := f.ExportSession(ctx, &sessionv1.ExportSessionRequest{Name: name, Format: format})
	if err != nil {
		return nil, err
	}
	var file []byte
	for {
		piece, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return file, nil
		}
		if err != nil {
			return file, err
		}
		file = append(file, piece.Data...)
	}
}

func (f *fixture) export(ctx context.Context, t *testing.T, name string, format sessionv1.ExportFormat) []byte {
	t.Helper()
	file, err := f.tryExport(ctx, name, format)
	if err != nil {
		t.Fatal(err)
	}
	return file
}

// upload imports a file, in pieces of an odd size.
func (f *fixture) upload(ctx context.Context, open *sessionv1.ImportOpen, file []byte) (*sessionv1.Session, error) {
	stream, err := f.ImportSession(ctx)
	if err != nil {
		return nil, err
	}
	err = stream.Send(&sessionv1.ImportSessionRequest{Kind: &sessionv1.ImportSessionRequest_Open{Open: open}})
	for len(file) > 0 && err == nil {
		n := min(777, len(file))
		err = stream.Send(&sessionv1.ImportSessionRequest{Kind: &sessionv1.ImportSessionRequest_Data{Data: file[:n]}})
		file = file[n:]
	}
	resp, err := stream.CloseAndRecv()
	return resp.GetSession(), err
}

// eventfulTurns is what the model plays in eventful.
var eventfulTurns = strings.Replace(arrivals, "\nturns:", "\nturns:"+summarizes+`
  - when: look
    steps: [{text: [let me see], tools: [{name: Bash, input: {}}, {name: Read, input: {}}]}, {text: [seen]}]`, 1)

// eventful makes a session in which much has happened: calls, a turn that was
// undone, one that was interrupted, and a summary.
func (f *fixture) eventful(ctx context.Context, t *testing.T) string {
	t.Helper()
	resp, err := f.CreateSession(ctx, &sessionv1.CreateSessionRequest{Session: &sessionv1.Session{Title: "the title", Labels: map[string]string{"a": "b"}}})
	if err != nil {
		t.Fatal(err)
	}
	s := resp.Session.Name
	f.create(ctx, t, s, "write")
	f.waitForAsk(ctx, t, s)
	f.waitForEnd(ctx, t, f.arrive(ctx, t, s, "why the zebra?", sessionv1.OnActive_ON_ACTIVE_ROLLBACK).Name)
	turn := f.create(ctx, t, s, "write")
	f.waitForAsk(ctx, t, s)
	f.interrupt(ctx, t, &sessionv1.InterruptSessionRequest{Name: s})
	f.waitForEnd(ctx, t, turn.Name)
	if _, err := f.CompactSession(ctx, &sessionv1.CompactSessionRequest{Name: s}); err != nil {
		t.Fatal(err)
	}
	f.followUntil(ctx, t, s, func(e *sessionv1.Event) bool { return e.GetSessionCompacted() != nil })
	f.turn(ctx, t, s, "look")
	return s
}

var (
	times    = regexp.MustCompile(`"(createTime|updateTime|create_time)":"[^"]*",?`)
	lastLine = regexp.MustCompile(`(?m)^\{"type":"end".*$`)
)

// lasting leaves away what may differ after an import: the name, the times of
// the session itself, and the mark that it was imported.
func lasting(file []byte, name string) string {
	header, rest, _ := strings.Cut(strings.ReplaceAll(string(file), name+`/`, "sessions/x/"), "\n")
	session, rest, _ := strings.Cut(rest, "\n")
	session = strings.ReplaceAll(times.ReplaceAllString(session, ""), name+`"`, `sessions/x"`)
	rest = lastLine.ReplaceAllString(strings.Replace(rest, `,"imported":true`, "", 1), "")
	return header + "\n" + session + "\n" + rest
}

func TestWhatWasImportedIsExportedAsItWas(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(t *testing.T, c *session.Config){
		"on SQLite":   func(*testing.T, *session.Config) {},
		"on Postgres": func(t *testing.T, c *session.Config) { c.DatabaseURL = config.Secret(pgtest.New(t)) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := start(t, eventfulTurns, func(c *session.Config) { change(t, c) })
			ctx := t.Context()
			from := f.eventful(ctx, t)
			file := f.export(ctx, t, from, jsonl)
			made, err := f.upload(ctx, &sessionv1.ImportOpen{}, file)
			if err != nil {
				t.Fatal(err)
			}
			again := f.export(ctx, t, made.Name, jsonl)
			if d := cmp.Diff(lasting(file, from), lasting(again, made.Name)); d != "" {
				t.Errorf("(-first +second) %s", d)
			}
			if log := f.log(ctx, t, made.Name); !log[0].GetSessionCreated().GetImported() {
				t.Error("the log does not say that the session was imported")
			}
			f.goesOn(ctx, t, from, made.Name)
		})
	}
}

// goesOn tells whether an imported session can be talked to, and is found.
func (f *fixture) goesOn(ctx context.Context, t *testing.T, from, made string) {
	t.Helper()
	eventually(t, "the imported messages are found", func() bool {
		resp, err := f.SearchMessages(ctx, &sessionv1.SearchMessagesRequest{Query: "zebra", Session: made})
		return err == nil && len(resp.Messages) == 1
	})
	want := shape(f.messages(ctx, t, from)) + "\nuser: \"why?\"\nassistant: \"because\""
	if end := finished(t, f.turn(ctx, t, made, "why?")); end.State != sessionv1.TurnState_TURN_STATE_COMPLETE {
		t.Errorf("the next turn ended %v", end)
	}
	if got := shape(f.messages(ctx, t, made)); got != want {
		t.Errorf("the conversation is\n%s\nwant\n%s", got, want)
	}
	turns, err := f.ListTurns(ctx, &sessionv1.ListTurnsRequest{Parent: made})
	if err != nil || len(turns.Turns) != 5 {
		t.Errorf("the turns are %v, %v", turns, err)
	}
	if _, err := f.DeleteSession(ctx, &sessionv1.DeleteSessionRequest{Name: made}); err != nil {
		t.Error(err)
	}
}

// tarOf packs files, by name; a name with a slash at its end is a folder.
func tarOf(t *testing.T, files ...[2]string) []byte {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, f := range files {
		h := &tar.Header{Name: f[0], Mode: 0o640, Size: int64(len(f[1])), Typeflag: tar.TypeReg, Format: tar.FormatPAX}
		if strings.HasSuffix(f[0], "/") {
			h.Typeflag = tar.TypeDir
		}
		if to, ok := strings.CutPrefix(f[1], "-> "); ok {
			h.Typeflag, h.Linkname, h.Size = tar.TypeSymlink, to, 0
		}
		if err := w.WriteHeader(h); err != nil {
			t.Fatal(err)
		}
		if h.Size > 0 {
			if _, err := io.WriteString(w, f[1]); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func zipped(t *testing.T, data []byte) []byte {
	t.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, err := w.Write(data)
	if err := errors.Join(err, w.Close()); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestAnArchiveBringsTheFilesToo(t *testing.T) {
	t.Parallel()
	f := start(t, hello)
	ctx := t.Context()
	s := f.session(ctx, t)
	f.turn(ctx, t, s, "hi")
	files := tarOf(t, [2]string{"empty/", ""}, [2]string{"a.txt", strings.Repeat("text", 100_000)}, [2]string{"link", "-> a.txt"}, [2]string{"session.jsonl", "not the transcript"})
	f.peers.mu.Lock()
	f.peers.archives[s] = files
	f.peers.mu.Unlock()
	file := f.export(ctx, t, s, archive)
	made, err := f.upload(ctx, &sessionv1.ImportOpen{SessionId: "copy", RequestId: "once"}, file)
	if err != nil {
		t.Fatal(err)
	}
	if got := f.peers.files(made.Name); got != string(files) {
		t.Errorf("the imported workspace has %d bytes that differ from the %d exported", len(got), len(files))
	}
	if d := cmp.Diff(shape(f.messages(ctx, t, s)), shape(f.messages(ctx, t, made.Name))); d != "" {
		t.Error(d)
	}
	bare := f.session(ctx, t) // without a workspace
	made, err = f.upload(ctx, &sessionv1.ImportOpen{}, f.export(ctx, t, bare, archive))
	if err != nil || f.peers.files(made.GetName()) != "" {
		t.Errorf("without a workspace: %v, %v", made, err)
	}
}

func TestAnImportIsMadeOnce(t *testing.T) {
	t.Parallel()
	var db *faulty.Store
	f := startFaulty(t, hello, func(s *faulty.Store) { db = s })
	ctx := t.Context()
	s := f.session(ctx, t)
	f.turn(ctx, t, s, "hi")
	f.peers.mu.Lock()
	f.peers.archives[s] = tarOf(t, [2]string{"a", "b"})
	f.peers.mu.Unlock()
	file, other := f.export(ctx, t, s, archive), f.export(ctx, t, s, jsonl)
	open := func() *sessionv1.ImportOpen { return &sessionv1.ImportOpen{RequestId: "once"} }
	db.Fail(faulty.ImportSession, 1, faulty.After, nil)
	if _, err := f.upload(ctx, open(), file); status.Code(err) != codes.Unavailable {
		t.Errorf("with the answer lost: %v", err)
	}
	made, err := f.upload(ctx, open(), file)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := f.ListSessions(ctx, &sessionv1.ListSessionsRequest{})
	if err != nil || len(resp.Sessions) != 2 {
		t.Errorf("the sessions are %v, %v", resp, err)
	}
	if _, err := f.upload(ctx, open(), other); !apierr.Is(err, sessionv1.ErrorReason_ERROR_REASON_REQUEST_ID_REUSED) {
		t.Errorf("another file: %v", err)
	}
	if _, err := f.upload(ctx, &sessionv1.ImportOpen{SessionId: strings.TrimPrefix(made.Name, "sessions/")}, file); !apierr.Is(err, sessionv1.ErrorReason_ERROR_REASON_SESSION_EXISTS) {
		t.Errorf("an id that is taken: %v", err)
	}
	db.Fail(faulty.ImportSession, 1, faulty.Before, errors.New("the disk is full"))
	if _, err := f.upload(ctx, &sessionv1.ImportOpen{SessionId: "third"}, file); err == nil {
		t.Error("the import was made")
	}
	f.peers.mu.Lock()
	defer f.peers.mu.Unlock()
	if len(f.peers.deleted) != 1 || f.peers.deleted[0] != "sandbox sessions/third" {
		t.Errorf("deleted were %q", f.peers.deleted)
	}
}

func TestASessionIsExportedOnlyWhenNothingGoesOnInIt(t *testing.T) {
	t.Parallel()
	f := start(t, arrivals)
	ctx := t.Context()
	s := f.session(ctx, t)
	turn := f.create(ctx, t, s, "write")
	f.waitForAsk(ctx, t, s)
	for _, format := range []sessionv1.ExportFormat{0, jsonl, archive} {
		if file, err := f.tryExport(ctx, s, format); !apierr.Is(err, sessionv1.ErrorReason_ERROR_REASON_SESSION_ACTIVE) || len(file) > 0 {
			t.Errorf("%v of an active session: %d bytes, %v", format, len(file), err)
		}
	}
	f.interrupt(ctx, t, &sessionv1.InterruptSessionRequest{Name: s})
	f.waitForEnd(ctx, t, turn.Name)
	f.export(ctx, t, s, 0)
	if _, err := f.tryExport(ctx, "sessions/none", jsonl); !apierr.Is(err, sessionv1.ErrorReason_ERROR_REASON_SESSION_NOT_FOUND) {
		t.Errorf("no session: %v", err)
	}
}

func TestASessionThatChangesWhileItIsExportedIsRefused(t *testing.T) {
	t.Parallel()
	var db *faulty.Store
	f := startFaulty(t, hello, func(s *faulty.Store) { db = s })
	ctx := t.Context()
	s := f.session(ctx, t)
	f.turn(ctx, t, s, "hi")
	held := db.Hold(faulty.ListTree, 1, faulty.Before)
	ended := make(chan error, 1)
	go func() {
		_, err := f.tryExport(ctx, s, jsonl)
		ended <- err
	}()
	<-held.Reached
	f.turn(ctx, t, s, "more")
	held.Resume()
	if err := <-ended; !apierr.Is(err, sessionv1.ErrorReason_ERROR_REASON_SESSION_ACTIVE) {
		t.Errorf("got %v", err)
	}
}

func TestAFileThatIsNoExportMakesNothing(t *testing.T) {
	t.Parallel()
	f := start(t, hello, func(c *session.Config) { c.ImportMaxBytes = 64 << 10 })
	ctx := t.Context()
	s := f.session(ctx, t)
	f.turn(ctx, t, s, "hi")
	good := f.export(ctx, t, s, jsonl)
	entry := func(name, content string) [2]string { return [2]string{name, content} }
	packed := func(files ...[2]string) []byte {
		return zipped(t, tarOf(t, append([][2]string{entry("session.jsonl", string(good))}, files...)...))
	}
	whole := packed(entry("workspace/a", "b"))
	for name, c := range map[string]struct {
		file []byte
		open *sessionv1.ImportOpen
		want string
	}{
		"nothing":                             {nil, nil, "BAD_IMPORT"},
		"another file":                        {[]byte("PNG\n"), nil, "BAD_IMPORT"},
		"a transcript that was cut off":       {good[:len(good)/2], nil, "BAD_IMPORT"},
		"a transcript that was changed":       {bytes.Replace(good, []byte(`"hi"`), []byte(`"ho"`), 1), nil, "BAD_IMPORT"},
		"more than is allowed":                {bytes.Repeat(good, 64<<10/len(good)+1), nil, "BAD_IMPORT"},
		"an archive that was cut off":         {whole[:len(whole)-9], nil, "BAD_IMPORT"},
		"an archive that goes on":             {append(bytes.Clone(whole), 0), nil, "BAD_IMPORT"},
		"an archive that is damaged":          {append(bytes.Clone(whole[:40]), append([]byte{255, 255, 255}, whole[43:]...)...), nil, "BAD_IMPORT"},
		"an empty archive":                    {zipped(t, nil), nil, "BAD_IMPORT"},
		"an archive without a transcript":     {zipped(t, tarOf(t, entry("workspace/a", "b"))), nil, "BAD_IMPORT"},
		"an archive with two transcripts":     {packed(entry("session.jsonl", "x")), nil, "BAD_IMPORT"},
		"an archive with something else":      {packed(entry("etc/passwd", "x")), nil, "BAD_IMPORT"},
		"an archive that unpacks to too much": {packed(entry("workspace/a", strings.Repeat("\x00", 17*64<<10))), nil, "BAD_IMPORT"},
		"a transcript that unpacks to too much": {
			zipped(t, tarOf(t, entry("session.jsonl", strings.Repeat("\n", 65<<10)))), nil, "BAD_IMPORT",
		},
		"an agent that is not there": {good, &sessionv1.ImportOpen{Agent: "nobody"}, "AGENT_NOT_FOUND"},
	} {
		t.Run(name, func(t *testing.T) {
			open := c.open
			if open == nil {
				open = &sessionv1.ImportOpen{}
			}
			if _, err := f.upload(ctx, open, c.file); apierr.Reason(err) != c.want {
				t.Errorf("got %v", err)
			}
		})
	}
	resp, err := f.ListSessions(ctx, &sessionv1.ListSessionsRequest{})
	if err != nil || len(resp.Sessions) != 1 || len(f.peers.files("sessions/copy")) > 0 {
		t.Errorf("the sessions are %v, %v", resp, err)
	}
	if made, err := f.upload(ctx, &sessionv1.ImportOpen{Agent: "coder"}, whole); err != nil || made.Agent != "agents/coder" {
		t.Errorf("the good one, with another agent: %v, %v", made, err)
	}
}

// TestTheCorpusIsWhatAnExportIs keeps the parser's corpus like what is written
// today: after a change of the format, write it anew with UPDATE_CORPUS=1.
func TestTheCorpusIsWhatAnExportIs(t *testing.T) {
	t.Parallel()
	const corpus = "../internal/transcript/testdata/session.jsonl"
	if os.Getenv("UPDATE_CORPUS") != "" {
		f := start(t, eventfulTurns)
		ctx := t.Context()
		if err := os.WriteFile(corpus, f.export(ctx, t, f.eventful(ctx, t), jsonl), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	file, err := os.ReadFile(corpus)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := transcript.Check(t.Context(), bytes.NewReader(file), int64(len(file))); err != nil {
		t.Error(err)
	}
}
