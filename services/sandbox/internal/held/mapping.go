package held

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// readLine reads a line of any length: a name in it may be as long as folders are deep. Of one that
// the reader cannot hold it answers the beginning and the end.
func readLine(r *bufio.Reader) (line []byte, length int, err error) {
	const ends = 1024
	line, err = r.ReadSlice('\n')
	if !errors.Is(err, bufio.ErrBufferFull) {
		return line, len(line), err
	}
	length = len(line)
	begin, end := bytes.Clone(line[:ends]), []byte(nil)
	for errors.Is(err, bufio.ErrBufferFull) {
		end = append(end, line...)
		end = end[max(len(end)-ends, 0):]
		line, err = r.ReadSlice('\n')
		length += len(line)
	}
	return slices.Concat(begin, end, line), length, err
}

// mapping is a deleted file that is mapped into memory.
type mapping struct {
	dir      string // of the process
	from, to uint64 // the part that is mapped
	inode    uint64
}

func (m mapping) length() int64 { return int64(m.to - m.from) }

// size is the file's on the disk, or else, when that is not to be had, that of the mapping.
func (m mapping) size() (bytes int64, exact bool) {
	var st unix.Stat_t
	// Only root may look there. The kernel names it without leading zeroes.
	path := fmt.Sprintf("%s/map_files/%x-%x", m.dir, m.from, m.to)
	switch {
	case unix.Stat(path, &st) != nil || st.Ino != m.inode:
		return m.length(), false
	case st.Nlink > 0 || readOnly(path): // the first: what its name says, and not the kernel
		return 0, true
	}
	return st.Blocks * 512, true
}

// parseMapping reads a line of a process's maps; ok when it is a deleted file of the
// device, as maps have its number.
func parseMapping(line []byte, device string) (m mapping, ok bool) {
	if !bytes.HasSuffix(bytes.TrimSuffix(line, []byte("\n")), []byte(" (deleted)")) {
		return m, false
	}
	var fields [5]string // addresses, rights, offset, device, inode
	for i := range fields {
		field, rest, _ := bytes.Cut(line, []byte(" "))
		fields[i], line = string(field), rest
	}
	if fields[3] != device {
		return m, false
	}
	from, to, _ := strings.Cut(fields[0], "-")
	var err1, err2, err3 error
	m.from, err1 = strconv.ParseUint(from, 16, 64)
	m.to, err2 = strconv.ParseUint(to, 16, 64)
	m.inode, err3 = strconv.ParseUint(fields[4], 10, 64)
	return m, errors.Join(err1, err2, err3) == nil
}
