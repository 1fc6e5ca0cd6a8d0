package held

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/sys/unix"
)

// readLine reads a line of any length: a name in it may be as long as folders are deep. If the reader
// cannot hold the line, it returns the beginning and the end.
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
	from, to uint64 // the mapped part
	inode    uint64
}

func (m mapping) length() int64 { return int64(m.to - m.from) }

// errMoved means that something else is mapped by now.
var errMoved = errors.New("another file is mapped there")

// size returns the file's size on disk. If that is unavailable, it returns the mapping's size and the
// reason.
func (m mapping) size() (bytes int64, err error) {
	var st unix.Stat_t
	// Only root may look there. The kernel omits leading zeroes, and checks existence first.
	path := fmt.Sprintf("%s/map_files/%x-%x", m.dir, m.from, m.to)
	if err := unix.Stat(path, &st); err != nil {
		return m.length(), err
	}
	switch {
	case st.Ino != m.inode:
		return m.length(), errMoved
	case st.Nlink > 0 || readOnly(path): // in the first case the name itself ends in that text
		return 0, nil
	}
	return st.Blocks * 512, nil
}

// SeesMapped reports whether this process may inspect files that are mapped but not open, tested on its
// own.
var SeesMapped = sync.OnceValue(func() bool {
	const own = "/proc/self/map_files"
	entries, err := os.ReadDir(own)
	if err != nil {
		return false
	}
	for _, d := range entries {
		if unix.Stat(own+"/"+d.Name(), &unix.Stat_t{}) == nil {
			return true
		}
	}
	return false
})

// parseMapping parses a line of a process's maps; ok reports whether it is a deleted file of the device,
// given by its number in maps.
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
