package portable

import (
	"archive/tar"
	"bufio"
	"bytes"
	"compress/flate"
	"compress/gzip"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	commonv1 "github.com/fairlead/fairlead/gen/go/fairlead/common/v1"
	"github.com/fairlead/fairlead/services/internal/kit/apierr"
	"github.com/fairlead/fairlead/services/session/internal/refusal"
	"github.com/fairlead/fairlead/services/session/internal/remote"
	"github.com/fairlead/fairlead/services/session/internal/store"
)

// unpackFactor bounds the unpacked size of an archive as a multiple of
// import-max-bytes.
const unpackFactor = 16

// unpackedUpload is a transcript, and whether a workspace came with it.
type unpackedUpload struct {
	transcript *os.File
	files      bool // it has a workspace
	own        bool // transcript is a file of its own
}

func (p *unpackedUpload) close() {
	if p.own {
		_ = p.transcript.Close()
	}
}

// unpackUpload recognizes a transcript or an archive, and extracts the
// transcript of an archive. It reads the whole archive, so that damage is found
// before anything is made.
func (s *Sessions) unpackUpload(ctx context.Context, upload *os.File) (*unpackedUpload, error) {
	from, err := rewind(upload)
	if err != nil {
		return nil, err
	}
	magic, err := from.(*bufio.Reader).Peek(2)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("read a temporary file: %w", err)
	}
	if !bytes.Equal(magic, []byte{0x1f, 0x8b}) {
		return &unpackedUpload{transcript: upload}, nil
	}
	p := &unpackedUpload{own: true}
	if p.transcript, err = spool(); err != nil {
		return nil, err
	}
	err = s.eachEntry(ctx, from, func(h *tar.Header, content io.Reader) error {
		p.files = p.files || h.Name != archiveTranscript
		if h.Name != archiveTranscript {
			return nil
		}
		if h.Size > s.MaxBytes {
			return refusal.BadImport("its transcript is larger than %d bytes, the most that the operator allows (session.import-max-bytes)", s.MaxBytes)
		}
		_, err := io.Copy(p.transcript, content)
		return err
	})
	if err != nil {
		p.close()
		return nil, err
	}
	return p, nil
}

// eachEntry reads an archive to its end: the transcript first and once, then
// only files of the workspace.
func (s *Sessions) eachEntry(ctx context.Context, from io.Reader, f func(h *tar.Header, content io.Reader) error) error {
	zip, err := gzip.NewReader(from)
	if err != nil {
		return damaged(err)
	}
	zip.Multistream(false)
	most := &io.LimitedReader{R: zip, N: unpackFactor * s.MaxBytes}
	in := tar.NewReader(most)
	for n := 0; ; n++ {
		if err := ctx.Err(); err != nil {
			return err
		}
		h, err := in.Next()
		if errors.Is(err, io.EOF) && n > 0 {
			break
		}
		if errors.Is(err, io.EOF) {
			return refusal.BadImport("the archive is empty")
		}
		if err != nil {
			return tooMuch(most, err)
		}
		if (n == 0) != (h.Name == archiveTranscript && h.Typeflag == tar.TypeReg) || n > 0 && !strings.HasPrefix(h.Name, archiveFiles) {
			return refusal.BadImport("an archive has %s first and then %s…, and entry %d is %.100q", archiveTranscript, archiveFiles, n+1, h.Name)
		}
		if err := f(h, in); err != nil {
			return tooMuch(most, err)
		}
	}
	if _, err := io.Copy(io.Discard, most); err != nil { // up to the checksum of the packed data
		return tooMuch(most, err)
	}
	if most.N == 0 {
		return tooMuch(most, io.ErrUnexpectedEOF)
	}
	if n, err := io.Copy(io.Discard, from); n > 0 || err != nil {
		return refusal.BadImport("something follows the end of the archive")
	}
	return nil
}

func damaged(err error) error {
	return refusal.BadImport("the archive is damaged or was cut off (%v)", err)
}

// tooMuch says why an archive cannot be read. It passes on errors of this or
// another service.
func tooMuch(most *io.LimitedReader, err error) error {
	var corrupt flate.CorruptInputError
	switch {
	case most.N == 0:
		return refusal.BadImport("the archive unpacks to more than %d times session.import-max-bytes", unpackFactor)
	case errors.Is(err, tar.ErrHeader), errors.Is(err, gzip.ErrChecksum), errors.Is(err, gzip.ErrHeader), errors.Is(err, io.ErrUnexpectedEOF), errors.As(err, &corrupt):
		return damaged(err)
	}
	return err
}

// unpackFiles makes the workspace from the archive's files, and reports whether
// it was made now. The call's id depends on the file, so that a repeated import
// with another file does not get this one's answer.
func (s *Sessions) unpackFiles(ctx context.Context, upload *os.File, to store.Key, sum []byte) (made bool, err error) {
	from, err := rewind(upload)
	if err != nil {
		return false, err
	}
	call := &commonv1.CallRef{Session: "sessions/" + to.Session, Epoch: 1, CallId: "import." + to.Session + "." + hex.EncodeToString(sum[:8])}
	if err := s.hold(ctx, call.Session); err != nil {
		return false, err
	}
	if err := s.Workspaces.Nodes.Place(ctx, s.Store, call); err != nil {
		return false, err
	}
	var bad error
	made, err = s.Workspaces.Sandbox.ImportWorkspace(ctx, call, func(w io.Writer) error {
		bad = s.sendFiles(ctx, from, w)
		return bad
	})
	switch {
	case errors.Is(err, remote.ErrBadArchive):
		return false, refusal.BadImport("%s", strings.TrimSuffix(apierr.Message(err), "."))
	case err != nil && errors.Is(err, bad):
		return false, err
	case err != nil:
		return false, apierr.Forward(err)
	}
	return made, s.Workspaces.Nodes.Made(ctx, s.Store, call)
}

// sendFiles writes the archive's files in the sandbox's format.
func (s *Sessions) sendFiles(ctx context.Context, from io.Reader, to io.Writer) error {
	sent := bufio.NewWriterSize(to, bufferBytes)
	out := tar.NewWriter(sent)
	err := s.eachEntry(ctx, from, func(h *tar.Header, content io.Reader) error {
		if h.Name == archiveTranscript {
			return nil
		}
		h.Name = strings.TrimPrefix(h.Name, archiveFiles)
		if h.Name == "" {
			return nil // the folder itself
		}
		if err := out.WriteHeader(h); err != nil {
			if errors.Is(err, io.EOF) {
				return err // an error of the stream
			}
			return refusal.BadImport("the archive's entry %.100q cannot be packed for the workspace (%v)", h.Name, err)
		}
		_, err := io.Copy(out, content)
		return err
	})
	if err != nil {
		return err
	}
	if err := out.Close(); err != nil {
		return err
	}
	return sent.Flush()
}
