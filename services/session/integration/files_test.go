package integration

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"io"
	"net"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/internal/kit/apierr"
	"github.com/fairlead/fairlead/services/internal/kit/config"
	"github.com/fairlead/fairlead/services/internal/kit/principal"
	"github.com/fairlead/fairlead/services/session"
)

// uploader is a user with files.
type uploader struct {
	sessionv1.FileServiceClient
	ctx context.Context // has the user's principal
}

func (f *fixture) uploads(t *testing.T, user string, role principal.Role) uploader {
	return uploader{sessionv1.NewFileServiceClient(f.conn), principal.With(t.Context(), principal.Principal{Tenant: "acme", User: user, Role: role})}
}

func (u uploader) create(t *testing.T, file *sessionv1.File) *sessionv1.File {
	t.Helper()
	r, err := u.CreateFile(u.ctx, &sessionv1.CreateFileRequest{File: file})
	if err != nil {
		t.Fatal(err)
	}
	return r.File
}

// add appends data in pieces.
func (u uploader) add(t *testing.T, start *sessionv1.AppendFileStart, data []byte) (*sessionv1.File, error) {
	t.Helper()
	stream, err := u.AppendFile(u.ctx)
	if err != nil {
		t.Fatal(err)
	}
	_ = stream.Send(&sessionv1.AppendFileRequest{Kind: &sessionv1.AppendFileRequest_Start{Start: start}})
	for len(data) > 0 {
		n := min(len(data), 300_000)
		_ = stream.Send(&sessionv1.AppendFileRequest{Kind: &sessionv1.AppendFileRequest_Data{Data: data[:n]}}) // CloseAndRecv has the cause
		data = data[n:]
	}
	r, err := stream.CloseAndRecv()
	return r.GetFile(), err
}

func (u uploader) read(t *testing.T, name string, offset, limit int64) ([]byte, error) {
	t.Helper()
	stream, err := u.ReadFile(u.ctx, &sessionv1.ReadFileRequest{Name: name, Offset: offset, Limit: limit})
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	for {
		m, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return b.Bytes(), nil
		}
		if err != nil {
			return nil, err
		}
		b.Write(m.GetData())
	}
}

func wantsReason(t *testing.T, err error, reason sessionv1.ErrorReason) {
	t.Helper()
	if got := apierr.As[sessionv1.ErrorReason](err); got != reason {
		t.Errorf("error %v, want %v", err, reason)
	}
}

// numbers is content of a size, without repetition.
func numbers(size int) []byte {
	b := make([]byte, 0, size+8)
	for n := uint64(0); len(b) < size; n++ {
		b = binary.BigEndian.AppendUint64(b, n*0x9e3779b97f4a7c15)
	}
	return b[:size]
}

func TestAFileArrivesInPiecesAndIsReadInParts(t *testing.T) {
	t.Parallel()
	f := start(t, "fallback: {steps: [{text: [hi]}]}\n")
	ann := f.uploads(t, "ann", principal.RoleUser)
	content := numbers(20_000_000) // three parts
	sum := sha256.Sum256(content)
	file := ann.create(t, &sessionv1.File{Filename: "data.bin", Size: proto.Int64(int64(len(content))), Sha256: hex.EncodeToString(sum[:])})
	if file.State != sessionv1.FileState_FILE_STATE_UPLOADING || file.User != "users/ann" || file.MediaType != "application/octet-stream" {
		t.Errorf("begun is %v", file)
	}
	at := &sessionv1.AppendFileStart{Name: file.Name}
	got, err := ann.add(t, at, content[:11_000_000])
	if err != nil || got.Received != 11_000_000 || got.State != sessionv1.FileState_FILE_STATE_UPLOADING {
		t.Fatalf("%v, %v", got, err)
	}
	_, err = ann.add(t, at, content)
	wantsReason(t, err, sessionv1.ErrorReason_ERROR_REASON_WRONG_OFFSET)
	_, err = ann.read(t, file.Name, 0, 0)
	wantsReason(t, err, sessionv1.ErrorReason_ERROR_REASON_FILE_STATE)

	f.restart(t) // another replica goes on
	ann = f.uploads(t, "ann", principal.RoleUser)
	at.Offset = 11_000_000
	got, err = ann.add(t, at, content[11_000_000:])
	if err != nil || got.State != sessionv1.FileState_FILE_STATE_READY || got.Sha256 != hex.EncodeToString(sum[:]) || got.ExpireTime != nil {
		t.Fatalf("%v, %v", got, err)
	}
	for _, part := range [][2]int64{{0, 0}, {5, 10}, {8<<20 - 3, 6}, {11_000_000, 1}, {19_999_999, 100}, {20_000_000, 0}} {
		want := content[part[0]:]
		if part[1] > 0 {
			want = want[:min(int(part[1]), len(want))]
		}
		if got, err := ann.read(t, file.Name, part[0], part[1]); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%v: %d bytes, %v", part, len(got), err)
		}
	}
	_, err = ann.add(t, at, nil)
	wantsReason(t, err, sessionv1.ErrorReason_ERROR_REASON_FILE_STATE)
}

func TestFilesBelongToTheirUser(t *testing.T) {
	t.Parallel()
	f := start(t, "fallback: {steps: [{text: [hi]}]}\n")
	ann, bob, op := f.uploads(t, "ann", principal.RoleUser), f.uploads(t, "bob", principal.RoleUser), f.uploads(t, "op", principal.RoleOperator)
	mine := ann.create(t, &sessionv1.File{Size: proto.Int64(0)})
	if mine.State != sessionv1.FileState_FILE_STATE_READY {
		t.Errorf("an empty file is %v", mine)
	}
	bob.create(t, &sessionv1.File{})
	for name, do := range map[string]func() error{
		"get":    func() error { _, err := bob.GetFile(bob.ctx, &sessionv1.GetFileRequest{Name: mine.Name}); return err },
		"read":   func() error { _, err := bob.read(t, mine.Name, 0, 0); return err },
		"append": func() error { _, err := bob.add(t, &sessionv1.AppendFileStart{Name: mine.Name}, nil); return err },
		"delete": func() error {
			_, err := bob.DeleteFile(bob.ctx, &sessionv1.DeleteFileRequest{Name: mine.Name})
			return err
		},
		"of another tenant": func() error {
			ctx := principal.With(t.Context(), principal.Principal{Tenant: "other", User: "ann", Role: principal.RoleAdmin})
			_, err := ann.GetFile(ctx, &sessionv1.GetFileRequest{Name: mine.Name})
			return err
		},
	} {
		if err := do(); apierr.As[sessionv1.ErrorReason](err) != sessionv1.ErrorReason_ERROR_REASON_FILE_NOT_FOUND {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, c := range []struct {
		who  uploader
		want int
	}{{ann, 1}, {bob, 1}, {op, 2}} {
		if l, err := c.who.ListFiles(c.who.ctx, &sessionv1.ListFilesRequest{}); err != nil || len(l.Files) != c.want {
			t.Errorf("%v, %v", l, err)
		}
	}
	del := &sessionv1.DeleteFileRequest{Name: mine.Name, RequestId: "d"}
	for range 2 { // a repeated request succeeds
		if _, err := op.DeleteFile(op.ctx, del); err != nil {
			t.Error(err)
		}
	}
	_, err := ann.GetFile(ann.ctx, &sessionv1.GetFileRequest{Name: mine.Name})
	wantsReason(t, err, sessionv1.ErrorReason_ERROR_REASON_FILE_NOT_FOUND)
}

func TestWhatAFileMayBe(t *testing.T) {
	t.Parallel()
	f := start(t, "fallback: {steps: [{text: [hi]}]}\n", func(c *session.Config) {
		c.Files.MaxBytes, c.Files.UserBytes, c.Files.TenantBytes = 1000, 1500, config.Size(2000)
	})
	ann := f.uploads(t, "ann", principal.RoleUser)
	_, err := ann.CreateFile(ann.ctx, &sessionv1.CreateFileRequest{File: &sessionv1.File{Size: proto.Int64(1001)}})
	wantsReason(t, err, sessionv1.ErrorReason_ERROR_REASON_FILES_FULL)
	open := ann.create(t, &sessionv1.File{})
	_, err = ann.add(t, &sessionv1.AppendFileStart{Name: open.Name, Last: true}, numbers(1001))
	wantsReason(t, err, sessionv1.ErrorReason_ERROR_REASON_FILES_FULL)
	short := ann.create(t, &sessionv1.File{Size: proto.Int64(10)})
	_, err = ann.add(t, &sessionv1.AppendFileStart{Name: short.Name}, numbers(11))
	wantsReason(t, err, sessionv1.ErrorReason_ERROR_REASON_FILES_FULL)
	wrong := ann.create(t, &sessionv1.File{Size: proto.Int64(1), Sha256: strings.Repeat("0", 64)})
	_, err = ann.add(t, &sessionv1.AppendFileStart{Name: wrong.Name}, []byte("x"))
	wantsReason(t, err, sessionv1.ErrorReason_ERROR_REASON_WRONG_CHECKSUM)
	_, err = ann.GetFile(ann.ctx, &sessionv1.GetFileRequest{Name: wrong.Name})
	wantsReason(t, err, sessionv1.ErrorReason_ERROR_REASON_FILE_NOT_FOUND)
	full := ann.create(t, &sessionv1.File{Size: proto.Int64(1000)})
	_, err = ann.CreateFile(ann.ctx, &sessionv1.CreateFileRequest{File: &sessionv1.File{Size: proto.Int64(500)}})
	wantsReason(t, err, sessionv1.ErrorReason_ERROR_REASON_FILES_FULL)
	if _, err := ann.DeleteFile(ann.ctx, &sessionv1.DeleteFileRequest{Name: full.Name}); err != nil {
		t.Error(err)
	}
	ann.create(t, &sessionv1.File{Size: proto.Int64(500)})
}

func TestTheContentOfADeletedFileGoes(t *testing.T) {
	t.Parallel()
	f := start(t, "fallback: {steps: [{text: [hi]}]}\n")
	ann := f.uploads(t, "ann", principal.RoleUser)
	file := ann.create(t, &sessionv1.File{})
	if _, err := ann.add(t, &sessionv1.AppendFileStart{Name: file.Name, Last: true}, []byte("x")); err != nil {
		t.Fatal(err)
	}
	stored := func() int {
		found, err := filepath.Glob(filepath.Join(f.config.Data, "files", "acme", "*", "*"))
		if err != nil {
			t.Fatal(err)
		}
		return len(found)
	}
	if n := stored(); n != 1 {
		t.Fatalf("%d objects are stored", n)
	}
	if _, err := ann.DeleteFile(ann.ctx, &sessionv1.DeleteFileRequest{Name: file.Name}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the content is deleted", func() bool { return stored() == 0 })
}

// clamd speaks the protocol of ClamAV's daemon: it finds a virus in content with the word EICAR.
type clamd struct {
	mu      sync.Mutex
	scanned [][]byte
}

func (c *clamd) serve(conn net.Conn) {
	defer func() { _ = conn.Close() }()
	command := make([]byte, 10)
	if _, err := io.ReadFull(conn, command); err != nil || string(command) != "zINSTREAM\x00" {
		return
	}
	var content []byte
	for {
		var size uint32
		if err := binary.Read(conn, binary.BigEndian, &size); err != nil {
			return
		}
		if size == 0 {
			break
		}
		chunk := make([]byte, size)
		if _, err := io.ReadFull(conn, chunk); err != nil {
			return
		}
		content = append(content, chunk...)
	}
	c.mu.Lock()
	c.scanned = append(c.scanned, content)
	c.mu.Unlock()
	answer := "stream: OK\x00"
	if bytes.Contains(content, []byte("EICAR")) {
		answer = "stream: Eicar-Signature FOUND\x00"
	}
	_, _ = io.WriteString(conn, answer)
}

func TestNoFileIsAcceptedWithoutItsScan(t *testing.T) {
	t.Parallel()
	socket := filepath.Join(t.TempDir(), "clamd.ctl")
	f := start(t, "fallback: {steps: [{text: [hi]}]}\n", func(c *session.Config) { c.Files.Scan = "unix://" + socket })
	ann := f.uploads(t, "ann", principal.RoleUser)
	content := numbers(9_000_000)
	file := ann.create(t, &sessionv1.File{Size: proto.Int64(int64(len(content)))})
	_, err := ann.add(t, &sessionv1.AppendFileStart{Name: file.Name}, content) // nothing listens
	wantsReason(t, err, sessionv1.ErrorReason_ERROR_REASON_FILES_UNAVAILABLE)
	if r, err := ann.GetFile(ann.ctx, &sessionv1.GetFileRequest{Name: file.Name}); err != nil || r.File.State != sessionv1.FileState_FILE_STATE_UPLOADING || r.File.Received != r.File.GetSize() {
		t.Fatalf("without a scanner: %v, %v", r, err)
	}
	daemon := &clamd{}
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			wg.Go(func() { daemon.serve(conn) })
		}
	})
	t.Cleanup(func() { _ = listener.Close(); wg.Wait() })
	got, err := ann.add(t, &sessionv1.AppendFileStart{Name: file.Name, Offset: int64(len(content))}, nil) // only the end is missing
	if err != nil || got.State != sessionv1.FileState_FILE_STATE_READY {
		t.Fatalf("%v, %v", got, err)
	}
	daemon.mu.Lock()
	if len(daemon.scanned) != 1 || !bytes.Equal(daemon.scanned[0], content) {
		t.Errorf("%d scans", len(daemon.scanned))
	}
	daemon.mu.Unlock()
	bad := ann.create(t, &sessionv1.File{})
	_, err = ann.add(t, &sessionv1.AppendFileStart{Name: bad.Name, Last: true}, []byte("it has EICAR in it"))
	wantsReason(t, err, sessionv1.ErrorReason_ERROR_REASON_FILE_REFUSED)
	_, err = ann.GetFile(ann.ctx, &sessionv1.GetFileRequest{Name: bad.Name})
	wantsReason(t, err, sessionv1.ErrorReason_ERROR_REASON_FILE_NOT_FOUND)
}

// gib is a gibibyte.
const gib = 1 << 30

// TestAnnouncedUploadsReserveOnePart fills a tenant's quota with announcements alone: six users, four empty uploads each.
func TestAnnouncedUploadsReserveOnePart(t *testing.T) {
	t.Parallel()
	f := start(t, "fallback: {steps: [{text: [hi]}]}\n")
	for _, user := range []string{"a", "b", "c", "d", "e", "f"} {
		u := f.uploads(t, user, principal.RoleUser)
		for range 4 {
			u.create(t, &sessionv1.File{Size: proto.Int64(5 * gib)})
		}
	}
	ann := f.uploads(t, "ann", principal.RoleUser)
	ann.create(t, &sessionv1.File{Size: proto.Int64(5 * gib)})
	if got, err := ann.add(t, &sessionv1.AppendFileStart{Name: ann.create(t, &sessionv1.File{}).Name, Last: true}, []byte("x")); err != nil || got.State != sessionv1.FileState_FILE_STATE_READY {
		t.Errorf("a small file: %v, %v", got, err)
	}
}

// TestOpenUploadsOfAUserAreBounded counts the uploads that have not ended; an ended or deleted one makes room.
func TestOpenUploadsOfAUserAreBounded(t *testing.T) {
	t.Parallel()
	f := start(t, "fallback: {steps: [{text: [hi]}]}\n", func(c *session.Config) { c.Files.UserUploads = 2 })
	ann, bob := f.uploads(t, "ann", principal.RoleUser), f.uploads(t, "bob", principal.RoleUser)
	first := ann.create(t, &sessionv1.File{Size: proto.Int64(1)})
	ann.create(t, &sessionv1.File{Size: proto.Int64(0)}) // it ends at once
	second := ann.create(t, &sessionv1.File{})
	bob.create(t, &sessionv1.File{Size: proto.Int64(1)})
	refused := func() {
		t.Helper()
		_, err := ann.CreateFile(ann.ctx, &sessionv1.CreateFileRequest{File: &sessionv1.File{Size: proto.Int64(1)}})
		wantsReason(t, err, sessionv1.ErrorReason_ERROR_REASON_FILES_FULL)
		if s := status.Convert(err); s.Code() != codes.ResourceExhausted || !strings.Contains(s.Message(), "session.files.user-uploads") || !strings.Contains(s.Message(), "users/ann") {
			t.Errorf("the error is %v", s)
		}
	}
	refused()
	if _, err := ann.add(t, &sessionv1.AppendFileStart{Name: first.Name}, []byte("x")); err != nil {
		t.Fatal(err)
	}
	ann.create(t, &sessionv1.File{Size: proto.Int64(1)})
	refused()
	if _, err := ann.DeleteFile(ann.ctx, &sessionv1.DeleteFileRequest{Name: second.Name}); err != nil {
		t.Fatal(err)
	}
	ann.create(t, &sessionv1.File{})
	refused()
}

// TestAnUploadThatEndsEarlyCountsWithItsBytes ends an upload before its announced size.
func TestAnUploadThatEndsEarlyCountsWithItsBytes(t *testing.T) {
	t.Parallel()
	f := start(t, "fallback: {steps: [{text: [hi]}]}\n", func(c *session.Config) { c.Files.UserBytes = 1000 })
	ann := f.uploads(t, "ann", principal.RoleUser)
	for range 3 { // each leaves room for the next one
		early := ann.create(t, &sessionv1.File{Size: proto.Int64(900)})
		if _, err := ann.add(t, &sessionv1.AppendFileStart{Name: early.Name, Last: true}, []byte("x")); err != nil {
			t.Fatal(err)
		}
	}
}
