package pool

import (
	"errors"
	"net"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"github.com/fairlead/fairlead/services/sandbox/internal/initd/wire"
)

// sendTimeout limits how long init may leave a request unread.
const sendTimeout = 10 * time.Second

// initConn is the connection to a sandbox's init. One goroutine may read while others send.
type initConn struct{ *net.UnixConn }

// connectInit makes a connection, and returns init's end of it, too.
func connectInit() (ours *initConn, theirs *os.File, err error) {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, err
	}
	f, theirs := os.NewFile(uintptr(pair[0]), "init"), os.NewFile(uintptr(pair[1]), "init")
	c, err := net.FileConn(f)
	if err := errors.Join(err, f.Close()); err != nil {
		return nil, nil, errors.Join(err, theirs.Close())
	}
	return &initConn{c.(*net.UnixConn)}, theirs, nil
}

// read reads one reply. The caller owns the files, also after an error.
func (c *initConn) read() (wire.Reply, []int, error) {
	packet, rights := make([]byte, 64), make([]byte, unix.CmsgSpace(2*4))
	n, nr, _, _, err := c.ReadMsgUnix(packet, rights)
	if err != nil {
		return wire.Reply{}, nil, err
	}
	var files []int
	if nr > 0 {
		messages, err := unix.ParseSocketControlMessage(rights[:nr])
		if err != nil {
			return wire.Reply{}, nil, err
		}
		for i := range messages {
			fds, err := unix.ParseUnixRights(&messages[i])
			if err != nil {
				return wire.Reply{}, files, err
			}
			files = append(files, fds...)
		}
	}
	if n == 0 {
		return wire.Reply{}, files, errGone
	}
	reply, err := wire.DecodeReply(packet[:n])
	return reply, files, err
}

func closeAll(files []int) {
	for _, f := range files {
		_ = unix.Close(f)
	}
}

// send sends a request to init. errGone means that init has ended without receiving it.
func (c *initConn) send(packet []byte, files ...int) error {
	var rights []byte
	if len(files) > 0 {
		rights = unix.UnixRights(files...)
	}
	if err := c.SetWriteDeadline(time.Now().Add(sendTimeout)); err != nil {
		return err
	}
	_, _, err := c.WriteMsgUnix(packet, rights, nil)
	if errors.Is(err, unix.EPIPE) || errors.Is(err, unix.ECONNRESET) {
		return errGone
	}
	return err
}

// sendCommand asks init to start a command. It sends a long one in a file.
func (c *initConn) sendCommand(w *wire.Command, streams []int) error {
	packet := w.Encode()
	if len(packet) <= wire.MaxPacket {
		return c.send(packet, streams...)
	}
	fd, err := unix.MemfdCreate("command", unix.MFD_CLOEXEC)
	if err != nil {
		return err
	}
	f := os.NewFile(uintptr(fd), "command")
	defer func() { _ = f.Close() }()
	if _, err := f.Write(packet); err != nil {
		return err
	}
	return c.send([]byte{byte(wire.Long)}, append([]int{fd}, streams...)...)
}
