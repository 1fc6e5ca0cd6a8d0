package files

import (
	"archive/tar"
	"compress/flate"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
)

// The largest ratio of unpacked to packed size, and the unpacked size that is always allowed. Source and
// text compress to a tenth; a higher ratio is deliberate.
const (
	maxRatio  = 200
	freeBytes = 64 << 20
)

// inflated refuses a disproportionate archive.
func inflated(packed, unpacked int64) error {
	if unpacked > freeBytes && unpacked/maxRatio > packed {
		return fmt.Errorf("%w: %d bytes of it unpack to %d and more, over %d times as many", ErrArchive, packed, unpacked, maxRatio)
	}
	return nil
}

// tarGzip is a compressed tar.
type tarGzip struct {
	*tar.Writer
	packed *gzip.Writer
}

func newTarGzip(to io.Writer) *tarGzip {
	packed := gzip.NewWriter(to)
	return &tarGzip{Writer: tar.NewWriter(packed), packed: packed}
}

func (w *tarGzip) Close() error { return errors.Join(w.Writer.Close(), w.packed.Close()) }

// UnpackGzip is Unpack for a compressed tar.
func (t *Tree) UnpackGzip(ctx context.Context, from io.Reader, reserve func(bytes int64) error) error {
	packed := &counted{from: from}
	in, err := gzip.NewReader(packed)
	if errors.Is(err, io.EOF) {
		return fmt.Errorf("%w: it has no bytes", ErrArchive)
	}
	if err != nil {
		return broken(err)
	}
	return t.unpack(ctx, &proportionate{in: in, packed: packed}, packed, reserve)
}

// counted counts the bytes read.
type counted struct {
	from  io.Reader
	bytes int64
}

func (c *counted) Read(b []byte) (int, error) {
	n, err := c.from.Read(b)
	c.bytes += int64(n)
	return n, err
}

// proportionate reads unpacked data as long as it is in proportion.
type proportionate struct {
	in     io.Reader
	packed *counted
	bytes  int64
}

func (p *proportionate) Read(b []byte) (int, error) {
	n, err := p.in.Read(b)
	p.bytes += int64(n)
	if out := inflated(p.packed.bytes, p.bytes); out != nil {
		return 0, out
	}
	return n, err
}

func isBadGzip(err error) bool {
	var corrupt flate.CorruptInputError
	return errors.Is(err, gzip.ErrHeader) || errors.Is(err, gzip.ErrChecksum) || errors.As(err, &corrupt)
}
