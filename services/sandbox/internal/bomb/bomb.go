// Package bomb makes archives for tests: small ones that unpack to a lot.
package bomb

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/flate"
	"compress/gzip"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"testing"
)

// Name is the name of the file in an archive.
const Name = "zeros"

// Zip returns a zip whose only entry unpacks to the given MiB of zeros.
func Zip(t testing.TB, megabytes int) []byte {
	t.Helper()
	body, sum := zeros(t, megabytes)
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	h := &zip.FileHeader{Name: Name, Method: zip.Deflate, CRC32: sum, CompressedSize64: uint64(len(body)), UncompressedSize64: uint64(megabytes) << 20}
	h.SetMode(0o644)
	f, err := w.CreateRaw(h)
	if err == nil {
		_, err = f.Write(body)
	}
	if err := errors.Join(err, w.Close()); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// TarGzip returns a compressed tar whose only file unpacks to the given MiB of zeros: one gzip member each
// for its header, its content and its end.
func TarGzip(t testing.TB, megabytes int) []byte {
	t.Helper()
	var header, b bytes.Buffer
	err := tar.NewWriter(&header).WriteHeader(&tar.Header{Name: Name, Typeflag: tar.TypeReg, Mode: 0o644, Size: int64(megabytes) << 20})
	if err != nil {
		t.Fatal(err)
	}
	member(t, &b, header.Bytes())
	body, sum := zeros(t, megabytes)
	b.Write([]byte{0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 0xff})
	b.Write(body)
	b.Write(binary.LittleEndian.AppendUint32(binary.LittleEndian.AppendUint32(nil, sum), uint32(megabytes)<<20))
	member(t, &b, make([]byte, 1024))
	return b.Bytes()
}

func member(t testing.TB, to *bytes.Buffer, content []byte) {
	t.Helper()
	w := gzip.NewWriter(to)
	_, err := w.Write(content)
	if err := errors.Join(err, w.Close()); err != nil {
		t.Fatal(err)
	}
}

// zeros returns the given MiB of zeros, deflated, and their checksum. It deflates one MiB and repeats it:
// deflating all would be too slow.
func zeros(t testing.TB, megabytes int) (deflated []byte, sum uint32) {
	t.Helper()
	one := make([]byte, 1<<20)
	var b bytes.Buffer
	w, err := flate.NewWriter(&b, flate.DefaultCompression)
	if err == nil {
		_, err = w.Write(one)
	}
	if err == nil {
		err = w.Flush() // ends at a byte boundary
	}
	if err != nil {
		t.Fatal(err)
	}
	for range megabytes {
		sum = crc32.Update(sum, crc32.IEEETable, one)
	}
	last := []byte{1, 0, 0, 0xff, 0xff} // an empty last block
	return append(bytes.Repeat(b.Bytes(), megabytes), last...), sum
}
