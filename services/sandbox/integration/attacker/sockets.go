package main

import (
	"context"
	"net"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

func init() {
	attacks["socket"] = socket
	attacks["connect"] = connect
	attacks["abstract"] = abstract
	attacks["new-link"] = newLink
	attacks["inject"] = inject
}

// socket opens a socket of a family, type and protocol.
func socket(args []string) string {
	var n [3]int
	for i := range n {
		v, err := strconv.Atoi(args[i])
		if err != nil {
			return err.Error()
		}
		n[i] = v
	}
	_, err := unix.Socket(n[0], n[1], n[2])
	return errnoName(err)
}

// connect opens a connection: network and address.
func connect(args []string) string {
	c, err := (&net.Dialer{Timeout: 2 * time.Second}).DialContext(context.Background(), args[0], args[1])
	if err != nil {
		return errnoName(err)
	}
	defer func() { _ = c.Close() }()
	if args[0][0] == 'u' && args[0][1] == 'd' { // a datagram is the attempt
		_, err = c.Write([]byte("x"))
	}
	return errnoName(err)
}

// abstract connects to an abstract socket by stream, sequenced packet and datagram.
func abstract(args []string) string {
	worst := "ECONNREFUSED"
	for _, kind := range []int{unix.SOCK_STREAM, unix.SOCK_SEQPACKET, unix.SOCK_DGRAM} {
		fd, err := unix.Socket(unix.AF_UNIX, kind, 0)
		if err != nil {
			return errnoName(err)
		}
		if err := unix.Connect(fd, &unix.SockaddrUnix{Name: "@" + args[0]}); errnoName(err) != "ECONNREFUSED" {
			worst = errnoName(err)
		}
	}
	return worst
}

// newLink asks the kernel, by route netlink, for a network device.
func newLink([]string) string {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW, unix.NETLINK_ROUTE)
	if err != nil {
		return "socket: " + errnoName(err)
	}
	if err := unix.Bind(fd, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		return "bind: " + errnoName(err)
	}
	// nlmsghdr{len 32, RTM_NEWLINK, request|ack|create}, ifinfomsg of zeroes but for
	// the device's flag "up" and number 1, which is the loopback device.
	m := make([]byte, 32)
	m[0], m[4], m[6], m[7] = 32, 16, 0x05, 0x04
	m[20], m[24], m[28] = 1, 0, 1
	if err := unix.Sendto(fd, m, 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		return "send: " + errnoName(err)
	}
	answer := make([]byte, 4096)
	n, _, err := unix.Recvfrom(fd, answer, 0)
	if err != nil || n < 20 {
		return "receive: " + errnoName(err)
	}
	code := int32(uint32(answer[16]) | uint32(answer[17])<<8 | uint32(answer[18])<<16 | uint32(answer[19])<<24)
	if code == 0 {
		return "ok"
	}
	return errnoName(unix.Errno(-code))
}

// inject puts input into a terminal: in the usual way, with bits above those that the
// kernel looks at, through the console's request, and by changing the line
// discipline.
func inject([]string) string {
	master, err := unix.Open("/dev/ptmx", unix.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		return "open: " + errnoName(err)
	}
	buffer[0] = 'x'
	worst := "EPERM"
	for _, request := range []uintptr{unix.TIOCSTI, unix.TIOCSTI | 1<<32, 0x541C, unix.TIOCSETD} {
		if got := raw(unix.SYS_IOCTL, uintptr(master), request, at(0)); got != "EPERM" {
			worst = got
		}
	}
	return worst
}
