package portable

import (
	"archive/tar"
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/fairlead/fairlead/services/internal/kit/apierr"
	"github.com/fairlead/fairlead/services/session/internal/refusal"
	"github.com/fairlead/fairlead/services/session/internal/remote"
	"github.com/fairlead/fairlead/services/session/internal/request"
	"github.com/fairlead/fairlead/services/session/internal/store"
	"github.com/fairlead/fairlead/services/session/internal/store/plan"
	"github.com/fairlead/fairlead/services/session/internal/transcript"
)

// exportTries is how often a transcript is started again because the log was
// folded during the read.
const exportTries = 3

// Names of the entries of an archive.
const (
	archiveTranscript = "session.jsonl"
	archiveFiles      = "workspace/"
)

var errFolded = errors.New("the log was folded while it was read")

// Export writes a session without active or queued turns, as a transcript or as an archive with its files. It writes
// the transcript to a temporary file first, in short reads of the store, and opens the export once that is known to be
// consistent.
func (s *Sessions) Export(ctx context.Context, session string, archive bool, open func() (io.Writer, error)) error {
	file, err := spool()
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }()
	if err := s.spoolTranscript(ctx, request.Key(ctx, session), file); err != nil {
		return refusal.Store(err, refusal.Subject{Session: session})
	}
	var files io.Reader
	if archive {
		var cancel context.CancelFunc
		ctx, cancel = context.WithCancel(ctx) // ends the stream of the files in every case
		defer cancel()
		if files, err = s.openFiles(ctx, session); err != nil { // before anything is sent
			return err
		}
	}
	to, err := open()
	if err != nil {
		return err
	}
	from, err := rewind(file)
	if err != nil {
		return err
	}
	if !archive {
		_, err = io.CopyBuffer(to, struct{ io.Reader }{from}, make([]byte, bufferBytes))
		return err
	}
	return sendArchive(file, files, to)
}

// spoolTranscript writes a session's transcript into an empty file.
func (s *Sessions) spoolTranscript(ctx context.Context, k store.Key, file *os.File) error {
	for try := 1; ; try++ {
		err := s.writeTranscript(ctx, k, file)
		switch {
		case !errors.Is(err, errFolded):
			return err
		case try == exportTries:
			return refusal.LogFolded()
		}
		if _, err := file.Seek(0, io.SeekStart); err != nil {
			return fmt.Errorf("write a temporary file: %w", err)
		}
		if err := file.Truncate(0); err != nil {
			return fmt.Errorf("write a temporary file: %w", err)
		}
	}
}

// writeTranscript reads a session page by page. The pages are consistent because
// the session is the same before and after.
func (s *Sessions) writeTranscript(ctx context.Context, k store.Key, to io.Writer) error {
	before, err := s.Store.GetSession(ctx, k)
	if err != nil {
		return err
	}
	switch {
	case before.ActiveTurn != "":
		return refusal.SessionActive(before.Name)
	case before.Rewinding:
		return refusal.SessionRewinding(before.Name)
	}
	w, err := transcript.NewWriter(to, before)
	if err != nil {
		return err
	}
	if err := s.writeTurns(ctx, k, w); err != nil {
		return err
	}
	if err := s.writeMessages(ctx, k, w); err != nil {
		return err
	}
	if err := s.writeEvents(ctx, k, before.LastSeq, w); err != nil {
		return err
	}
	after, err := s.Store.GetSession(ctx, k)
	if err != nil {
		return err
	}
	if after.ActiveTurn != "" || after.Rewinding || after.LastSeq != before.LastSeq || !after.UpdateTime.AsTime().Equal(before.UpdateTime.AsTime()) {
		return refusal.SessionActive(before.Name)
	}
	return w.Close()
}

func (s *Sessions) writeTurns(ctx context.Context, k store.Key, w *transcript.Writer) error {
	for after := ""; ; {
		some, err := s.Store.ListTurns(ctx, k, after, storeRows)
		if err != nil {
			return err
		}
		for _, t := range some {
			if !plan.Ended(t.State) {
				return refusal.SessionActive("sessions/" + k.Session)
			}
			if err := w.Turn(t); err != nil {
				return err
			}
			after = request.LastSegment(t.Name)
		}
		if len(some) < storeRows {
			return nil
		}
	}
}

func (s *Sessions) writeMessages(ctx context.Context, k store.Key, w *transcript.Writer) error {
	for after := ""; ; {
		some, err := s.Store.ListTree(ctx, k, after, storeRows, storeBytes)
		if err != nil || len(some) == 0 {
			return err
		}
		for _, m := range some {
			if err := w.Message(m); err != nil {
				return err
			}
			after = request.LastSegment(m.Name)
		}
	}
}

func (s *Sessions) writeEvents(ctx context.Context, k store.Key, last int64, w *transcript.Writer) error {
	for seq := int64(0); seq < last; {
		some, err := s.Store.ListEvents(ctx, k, seq, storeRows, storeBytes)
		if err != nil {
			return err
		}
		for _, e := range some {
			if e.FirstSeq != seq+1 {
				return errFolded
			}
			if err := w.Event(e); err != nil {
				return err
			}
			seq = e.Seq
		}
		if len(some) == 0 {
			return errFolded
		}
	}
	return nil
}

// sendArchive packs the transcript and the workspace's files while it receives
// them.
func sendArchive(file *os.File, files io.Reader, to io.Writer) error {
	size, err := file.Seek(0, io.SeekEnd)
	if err != nil {
		return fmt.Errorf("read a temporary file: %w", err)
	}
	from, err := rewind(file)
	if err != nil {
		return err
	}
	sent := bufio.NewWriterSize(to, bufferBytes)
	zip := gzip.NewWriter(sent)
	out := tar.NewWriter(zip)
	if err := out.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: archiveTranscript, Mode: 0o600, Size: size, Format: tar.FormatPAX}); err != nil {
		return err
	}
	if _, err := io.Copy(out, from); err != nil {
		return err
	}
	if err := packFiles(files, out); err != nil {
		return err
	}
	// Only a complete archive gets its end.
	if err := errors.Join(out.Close(), zip.Close()); err != nil {
		return err
	}
	return sent.Flush()
}

// openFiles starts to read a workspace's files as an archive; it returns nil for a session
// without a workspace. A refusal is returned here.
func (s *Sessions) openFiles(ctx context.Context, session string) (io.Reader, error) {
	files, err := s.Workspaces.ExportWorkspace(ctx, session)
	if errors.Is(err, remote.ErrNoWorkspace) {
		return bytes.NewReader(nil), nil
	}
	if err != nil {
		return nil, apierr.Forward(err)
	}
	return remote.Forwarding{Reader: files}, nil
}

// packFiles copies a workspace's files from the sandbox's archive into a folder
// of another one.
func packFiles(files io.Reader, out *tar.Writer) error {
	in := tar.NewReader(files)
	for {
		h, err := in.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		h.Name = archiveFiles + strings.TrimPrefix(h.Name, "./")
		if err := out.WriteHeader(h); err != nil {
			return fmt.Errorf("pack %s: %w", h.Name, err)
		}
		if _, err := io.Copy(out, in); err != nil { //nolint:gosec // nothing is unpacked: what comes in goes out
			return err
		}
	}
}
