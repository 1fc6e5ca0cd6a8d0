package pg

import (
	"net"
	"runtime"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// silence is how long sent data may stay unacknowledged, or a quiet connection unanswered, before the
// connection counts as lost. Without it, callers would wait a quarter of an hour for a machine that has
// vanished.
const silence = 15 * time.Second

// tcpUserTimeout is Linux's TCP_USER_TIMEOUT, in milliseconds.
const tcpUserTimeout = 0x12

// dialer makes connections that are lost after a time of silence of the network, not of the database: a
// statement may take as long as it needs.
func dialer(silence time.Duration) *net.Dialer {
	const probes = 3
	d := &net.Dialer{KeepAliveConfig: net.KeepAliveConfig{Enable: true, Idle: silence / 2, Interval: silence / (2 * probes), Count: probes}}
	if runtime.GOOS != "linux" {
		return d
	}
	d.Control = func(network, _ string, c syscall.RawConn) (err error) {
		if network == "unix" {
			return nil
		}
		if e := c.Control(func(fd uintptr) {
			err = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, tcpUserTimeout, int(silence.Milliseconds()))
		}); e != nil {
			return e
		}
		return err
	}
	return d
}
