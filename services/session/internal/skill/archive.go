package skill

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// ArchiveBytes returns how large an archive of a skill may be: its files may not be compressible.
func (l Limits) ArchiveBytes() int64 { return l.Bytes + int64(l.Files+1)*(2<<10) + 1<<20 }

// Marks at the beginning of archives, and of each entry of a zip's directory.
const (
	zipMark   = "PK\x03\x04"
	entryMark = "PK\x01\x02"
	gzipMark  = "\x1f\x8b"
)

// Read reads a skill from a zip, a tar or a tar.gz. Its errors are an *Error.
func Read(archive []byte, l Limits) (*Folder, error) {
	if int64(len(archive)) > l.ArchiveBytes() {
		return nil, broken("", "the archive has %d bytes, and the archive of a skill may have %d", len(archive), l.ArchiveBytes())
	}
	b := newBuilder(l)
	var err error
	switch {
	case bytes.HasPrefix(archive, []byte(zipMark)):
		err = b.unzip(archive)
	case bytes.HasPrefix(archive, []byte(gzipMark)):
		var in *gzip.Reader
		if in, err = gzip.NewReader(bytes.NewReader(archive)); err == nil {
			err = b.untar(in)
		}
	case len(archive) > 262 && string(archive[257:262]) == "ustar":
		err = b.untar(bytes.NewReader(archive))
	default:
		err = broken("", "the file is neither a zip nor a tar.gz nor a tar")
	}
	if err != nil {
		return nil, asFault(err)
	}
	return b.finish()
}

// asFault returns an error of a package for archives as one of the archive.
func asFault(err error) error {
	var is *Error
	if errors.As(err, &is) {
		return is
	}
	return broken("", "the archive is damaged: %v", err)
}

// mayHave is how many entries of an archive are read for each file that a skill may have: folders and junk
// count as well.
const mayHave = 4

func (b *builder) unzip(archive []byte) error {
	most := b.limits.Files*mayHave + 1000
	if bytes.Count(archive, []byte(entryMark)) > most {
		return broken("", "the archive has more than %d entries", most)
	}
	in, err := zip.NewReader(bytes.NewReader(archive), int64(len(archive)))
	if err != nil {
		return err
	}
	for _, f := range in.File {
		const encrypted = 1
		name, mode := strings.TrimSuffix(f.Name, "/"), f.Mode()
		switch {
		case f.Flags&encrypted != 0:
			return broken(clip(f.Name), "it is encrypted")
		case mode.IsDir() || name != f.Name:
			if err := checkName(name); err != nil {
				return err
			}
			continue
		case !mode.IsRegular():
			return notPlain(f.Name)
		}
		content, err := f.Open()
		if err != nil {
			return broken(clip(f.Name), "it cannot be unpacked: %v", err)
		}
		err = b.add(f.Name, mode&0o111 != 0, content)
		if err := errors.Join(err, content.Close()); err != nil {
			return err
		}
	}
	return nil
}

func notPlain(name string) error {
	return broken(clip(name), "it is a link or a device: a skill has files and folders alone")
}

// untar reads a tar. What it unpacks to is bounded, holes and headers included.
func (b *builder) untar(from io.Reader) error {
	whole := &bounded{from: from, left: b.limits.ArchiveBytes() * 2}
	in := tar.NewReader(whole)
	for n := 0; ; n++ {
		h, err := in.Next()
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		case n > b.limits.Files*mayHave+1000:
			return broken("", "the archive has too many entries")
		}
		name := strings.TrimPrefix(h.Name, "./")
		switch h.Typeflag {
		case tar.TypeReg:
			if err := b.add(name, h.Mode&0o111 != 0, in); err != nil {
				return err
			}
		case tar.TypeDir:
			if name = strings.TrimSuffix(name, "/"); name == "" || name == "." {
				continue
			}
			if err := checkName(name); err != nil {
				return err
			}
		case tar.TypeXGlobalHeader:
		default:
			return notPlain(h.Name)
		}
	}
}

// bounded fails for a reader that has too much.
type bounded struct {
	from io.Reader
	left int64
}

func (r *bounded) Read(p []byte) (int, error) {
	if r.left <= 0 {
		return 0, broken("", "it unpacks to more than a skill may have")
	}
	n, err := r.from.Read(p[:min(int64(len(p)), r.left)])
	r.left -= int64(n)
	return n, err
}

// ReadDir reads a skill from a folder of the operator's. A link in it is refused.
func ReadDir(dir string, l Limits) (*Folder, error) {
	b := newBuilder(l)
	err := filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		if err != nil || name == dir {
			return err
		}
		rel, err := filepath.Rel(dir, name)
		if err != nil {
			return err
		}
		st, err := d.Info()
		switch {
		case err != nil:
			return err
		case st.IsDir():
			return checkName(filepath.ToSlash(rel))
		case !st.Mode().IsRegular():
			return notPlain(filepath.ToSlash(rel))
		}
		f, err := os.Open(name) //nolint:gosec // of the operator's folder
		if err != nil {
			return err
		}
		return errors.Join(b.add(filepath.ToSlash(rel), st.Mode()&0o111 != 0, f), f.Close())
	})
	if err != nil {
		return nil, err
	}
	return b.finish()
}
