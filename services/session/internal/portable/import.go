package portable

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"

	"google.golang.org/protobuf/proto"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/session/internal/refusal"
	"github.com/fairlead/fairlead/services/session/internal/request"
	"github.com/fairlead/fairlead/services/session/internal/store"
	"github.com/fairlead/fairlead/services/session/internal/transcript"
)

// Import makes a session from an export, whose data next returns until io.EOF. The upload goes to a temporary file and is
// checked completely before anything is made. Then it makes the files, and the session last, in one write: an import that
// fails leaves at most a workspace without a session.
func (s *Sessions) Import(ctx context.Context, open *sessionv1.ImportOpen, next func() ([]byte, error)) (*sessionv1.Session, error) {
	upload, err := spool()
	if err != nil {
		return nil, err
	}
	defer func() { _ = upload.Close() }()
	sum := sha256.New()
	if err := s.receive(next, io.MultiWriter(upload, sum)); err != nil {
		return nil, err
	}
	return s.importFile(ctx, open, upload, sum.Sum(nil))
}

// receive writes an upload.
func (s *Sessions) receive(next func() ([]byte, error), to io.Writer) error {
	for size := int64(0); ; {
		data, err := next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if size += int64(len(data)); size > s.MaxBytes {
			return refusal.BadImport("it is larger than %d bytes, the most that the operator allows (session.import-max-bytes)", s.MaxBytes)
		}
		if _, err := to.Write(data); err != nil {
			return fmt.Errorf("write a temporary file: %w", err)
		}
	}
}

// importFile makes the session, or finds the one that the same request has made.
func (s *Sessions) importFile(ctx context.Context, open *sessionv1.ImportOpen, upload *os.File, sum []byte) (*sessionv1.Session, error) {
	to := request.Key(ctx, open.SessionId)
	if to.Session == "" {
		to.Session = derivedID(store.Key{Tenant: to.Tenant, Session: "\x00import" + request.OwnScope(ctx)}, open.RequestId)
	}
	about := refusal.Subject{Session: "sessions/" + to.Session, RequestID: open.RequestId}
	in := store.Import{
		Key: to, User: request.User(ctx), Caps: s.Use.Sessions(to.Tenant, request.User(ctx)),
		Request: request.KeepForADay(importRequest(ctx, open, sum)), Batches: deleted,
	}
	_, err := s.Store.GetSession(ctx, to)
	switch {
	case err == nil:
		// The same import was made before, or the id is taken: the store
		// decides.
		_, err = s.Store.ImportSession(ctx, in)
	case errors.Is(err, store.ErrNotFound):
		err = s.makeImported(ctx, open, in, upload, sum)
	}
	if err != nil {
		return nil, refusal.Store(err, about)
	}
	session, err := s.Store.GetSession(ctx, to)
	return session, refusal.Store(err, about)
}

// deleted stands for the batches of an import whose session exists and needs
// none. If the session was deleted just now, the caller gets an error and may
// try again.
func deleted(yield func(store.ImportBatch, error) bool) {
	yield(store.ImportBatch{}, store.ErrNotFound)
}

// importRequest returns the idempotency key of an import: the file is part of
// it.
func importRequest(ctx context.Context, open *sessionv1.ImportOpen, sum []byte) store.Request {
	r := store.RequestOf("ImportSession", request.OwnScope(ctx), open.RequestId, open)
	both := sha256.Sum256(append(r.Digest, sum...))
	r.Digest = both[:]
	return r
}

// makeImported checks the file, copies the files and writes the session.
func (s *Sessions) makeImported(ctx context.Context, open *sessionv1.ImportOpen, in store.Import, upload *os.File, sum []byte) error {
	unpacked, err := s.unpackUpload(ctx, upload)
	if err != nil {
		return err
	}
	defer unpacked.close()
	file, err := checkTranscript(ctx, unpacked.transcript)
	if err != nil {
		return err
	}
	if err := s.describe(ctx, &in, open, file); err != nil {
		return err
	}
	made := false
	if unpacked.files {
		if made, err = s.unpackFiles(ctx, upload, in.Key, sum); err != nil {
			return err
		}
	}
	answer, err := s.Store.ImportSession(ctx, in)
	if made {
		s.dropUnused(ctx, in.Key, answer, err)
	}
	return importError(err)
}

// checkTranscript reads the whole transcript, as long as the caller waits.
func checkTranscript(ctx context.Context, file *os.File) (*transcript.File, error) {
	size, err := file.Seek(0, io.SeekEnd)
	if err != nil {
		return nil, fmt.Errorf("read a temporary file: %w", err)
	}
	f, err := transcript.Check(ctx, file, size)
	return f, importError(err)
}

// importError tells the sender what is wrong with the file, if the file is the
// cause.
func importError(err error) error {
	var bad *transcript.Error
	if errors.As(err, &bad) {
		return refusal.BadImport("%s", bad.Error())
	}
	return err
}

// describe completes the description of the session for the store.
func (s *Sessions) describe(ctx context.Context, in *store.Import, open *sessionv1.ImportOpen, file *transcript.File) error {
	was := file.Session
	name := cmp.Or(open.Agent, was.Agent)
	if name == "" {
		return refusal.AgentNotFound(name, "open.agent")
	}
	a, err := s.Directory.AgentForSession(ctx, in.Tenant, name, "open.agent")
	if err != nil {
		return err
	}
	if a, err = s.Directory.InEnvironment(ctx, in.Tenant, "", a); err != nil {
		return err
	}
	in.Environment, in.EnvironmentVersion = a.Spec.Environment, a.Spec.EnvironmentVersion()
	if err := s.Submit.CheckSessionBudget(in.Tenant, was.Budget); err != nil {
		return err
	}
	if err := s.Directory.CheckPermissions(ctx, "session.permissions", was.Permissions); err != nil {
		return err
	}
	in.Agent, in.AgentRevision, in.AgentVersion, in.Title, in.Labels, in.Budget = a.Name(), a.Revision, a.Version, was.Title, was.Labels, was.Budget
	in.Mounts, in.MetadataJSON, in.Permissions = was.Mounts, was.MetadataJson, was.Permissions
	if s.Submit.CheckOptions(ctx, a.Spec, was.TurnOptions, "", false) == nil { // another agent, or this server, may allow other ones
		in.TurnOptions = was.TurnOptions
	}
	in.Usage, in.FinishedTurns, in.Head = was.Usage, was.FinishedTurns, file.Head()
	in.Batches = importBatches(file, "sessions/"+in.Session)
	return nil
}

// importBatches returns the content of the file, under the new session's name.
func importBatches(file *transcript.File, session string) iter.Seq2[store.ImportBatch, error] {
	return func(yield func(store.ImportBatch, error) bool) {
		var b store.ImportBatch
		rows, size := 0, 0
		for r, err := range file.Records(session) {
			if err != nil {
				yield(store.ImportBatch{}, err)
				return
			}
			size += addRecord(&b, r)
			if rows++; rows < storeRows && size < storeBytes {
				continue
			}
			if !yield(b, nil) {
				return
			}
			b, rows, size = store.ImportBatch{}, 0, 0
		}
		if rows > 0 {
			yield(b, nil)
		}
	}
}

// addRecord adds a record to a batch and returns its size.
func addRecord(b *store.ImportBatch, r transcript.Record) int {
	switch {
	case r.Turn != nil:
		b.Turns = append(b.Turns, r.Turn)
		return proto.Size(r.Turn)
	case r.Message != nil:
		b.Messages = append(b.Messages, store.ImportMessage{Message: r.Message, Depth: r.Depth})
		return proto.Size(r.Message)
	}
	if c := r.Event.GetSessionCreated(); c != nil {
		c.Imported = true
	}
	b.Events = append(b.Events, r.Event)
	return proto.Size(r.Event)
}
