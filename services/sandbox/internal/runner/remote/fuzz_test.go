package remote

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"os"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/fairlead/fairlead/services/sandbox/internal/initd/wire"
)

// frames makes frames of what a fuzzer says: a kind, the low bits of a channel, a length
// and that many bytes for each. What is left at the end is said as it is.
func frames(raw []byte) []byte {
	var all []byte
	for len(raw) > 3 && int(raw[2]) <= len(raw)-3 {
		all = binary.LittleEndian.AppendUint64(append(all, raw[0]%8), uint64(raw[1]))
		all = binary.LittleEndian.AppendUint32(all, uint32(raw[2]))
		all = append(all, raw[3:3+int(raw[2])]...)
		raw = raw[3+int(raw[2]):]
	}
	return append(all, raw...)
}

// FuzzWhatInitSays has an init say anything, to a service that has a command, a terminal and a
// way out. Whatever it is, the link ends, and what the service has of it.
func FuzzWhatInitSays(f *testing.F) {
	frame := func(kind, channel byte, body []byte) []byte {
		return append([]byte{kind, channel, byte(len(body))}, body...)
	}
	reply := func(k wire.Kind, id uint64) []byte {
		p := wire.Reply{Kind: k, ID: id}
		return frame(1, 0, p.Encode())
	}
	for _, seed := range [][][]byte{
		{reply(wire.Ready, 0), reply(wire.Started, 1), reply(wire.Exited, 1)},
		{reply(wire.Started, 2), frame(2, 9, []byte("x")), frame(4, 8, []byte{1, 0, 0, 0}), reply(wire.Exited, 2)},
		{reply(wire.Started, 2), reply(wire.Started, 2), frame(3, 9, nil), frame(2, 9, []byte("x"))},
		{reply(wire.Failed, 2), frame(5, 4, nil), frame(3, 5, nil), frame(3, 6, nil)},
		{reply(wire.Connected, 1), frame(2, 7, []byte("GET")), frame(3, 7, nil), frame(5, 7, nil), reply(wire.Connected, 1)},
		{frame(6, 0, nil), reply(wire.Listening, 0), frame(1, 0, nil), {0}},
	} {
		f.Add(bytes.Join(seed, nil))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			t.Fatal(err)
		}
		mine, theirs := os.NewFile(uintptr(fds[0]), "service"), os.NewFile(uintptr(fds[1]), "init")
		c, err := net.FileConn(mine)
		if err != nil {
			t.Fatal(err)
		}
		service := c.(*net.UnixConn)
		said, toSay := io.Pipe()
		asked := &requests{all: make(chan struct{})}
		link, err := Join(theirs, said, asked)
		if err := errors.Join(err, theirs.Close(), mine.Close()); err != nil {
			t.Fatal(err)
		}
		ended := make(chan struct{})
		go func() {
			_ = link.Run(func() { _ = toSay.Close() })
			close(ended)
		}()
		ours := ask(t, service)
		go func() {
			<-asked.all
			_, _ = toSay.Write(frames(raw)) // the link may end before
			_ = toSay.Close()
		}()
		heard(t, service)
		l := link.Listener()
		for c, err := l.Accept(); err == nil; c, err = l.Accept() {
			_ = c.Close()
		}
		for _, r := range ours {
			_, _ = io.Copy(io.Discard, r)
			_ = r.Close()
		}
		_ = said.Close()
		<-ended
		link.Wait()
		_ = service.Close()
	})
}

// requests is what init is sent: all is closed when that is all three requests.
type requests struct {
	packets int // frames are written one by one
	all     chan struct{}
}

func (r *requests) Write(b []byte) (int, error) {
	if b[0] == 1 {
		if r.packets++; r.packets == 3 {
			close(r.all)
		}
	}
	return len(b), nil
}

// ask asks for a command, a terminal and a way out, and returns what is the service's of the former's
// output.
func ask(t *testing.T, service *net.UnixConn) []*os.File {
	t.Helper()
	in, inWrite, err1 := os.Pipe()
	out, outWrite, err2 := os.Pipe()
	errOut, errWrite, err3 := os.Pipe()
	if err := errors.Join(err1, err2, err3); err != nil {
		t.Fatal(err)
	}
	command := wire.Command{ID: 1, Argv: []string{"x"}}
	terminal := wire.Command{ID: 2, Argv: []string{"x"}, Terminal: true}
	_, _, err1 = service.WriteMsgUnix(command.Encode(), unix.UnixRights(int(in.Fd()), int(outWrite.Fd()), int(errWrite.Fd())), nil)
	_, _, err2 = service.WriteMsgUnix(terminal.Encode(), nil, nil)
	_, _, err3 = service.WriteMsgUnix(wire.EncodeID(wire.Listen, 0), nil, nil)
	if err := errors.Join(err1, err2, err3, in.Close(), outWrite.Close(), errWrite.Close(), inWrite.Close()); err != nil {
		t.Fatal(err)
	}
	return []*os.File{out, errOut}
}

// heard reads all that the service is told, and closes the files beside it.
func heard(t *testing.T, service *net.UnixConn) {
	t.Helper()
	packet, rights := make([]byte, wire.MaxReply), make([]byte, unix.CmsgSpace(4*4))
	for {
		n, nr, _, _, err := service.ReadMsgUnix(packet, rights)
		if err != nil || n == 0 {
			return
		}
		if _, err := wire.DecodeReply(packet[:n]); err != nil {
			t.Errorf("the service is told %x", packet[:n])
		}
		files, err := open(rights[:nr])
		if err != nil || len(files) > 1 {
			t.Errorf("%d files, %v", len(files), err)
		}
		closeAll(files)
	}
}
