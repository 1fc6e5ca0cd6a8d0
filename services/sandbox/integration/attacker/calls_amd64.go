package main

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

func init() {
	for name, f := range map[string]func() string{
		"iopl":           func() string { return raw(unix.SYS_IOPL, 3) },
		"ioperm":         func() string { return raw(unix.SYS_IOPERM, 0x80, 1, 1) },
		"modify-ldt":     func() string { return raw(unix.SYS_MODIFY_LDT, 0, at(4096), 16) },
		"uselib":         func() string { return raw(unix.SYS_USELIB, text(0, "/usr/lib/x")) },
		"x32-getpid":     func() string { return raw(0x40000000 + unix.SYS_GETPID) },
		"x32-io-uring":   func() string { return raw(0x40000000+unix.SYS_IO_URING_SETUP, 8, at(4096)) },
		"32-bit-call":    compat,
		"negative-call":  func() string { return raw(^uintptr(0)) },
		"inject-via-x32": func() string { return raw(0x40000000+514, 0, unix.TIOCSTI, at(0)) },
	} {
		attacks[name] = func([]string) string { return f() }
	}
}

// compat makes a call by the gate of 32-bit programs, whose numbers mean other calls:
// 288 is keyctl there, and another call here.
func compat() string {
	code, err := unix.Mmap(-1, 0, 4096, unix.PROT_READ|unix.PROT_WRITE|unix.PROT_EXEC, unix.MAP_ANON|unix.MAP_PRIVATE)
	if err != nil {
		return "mmap: " + errnoName(err)
	}
	copy(code, []byte{0xb8, 0x20, 0x01, 0x00, 0x00, 0xcd, 0x80, 0xc3}) // mov eax, 288; int 0x80; ret
	entry := uintptr(unsafe.Pointer(&code[0]))                         //nolint:gosec // code that was made above
	function := &entry
	(*(*func())(unsafe.Pointer(&function)))() //nolint:gosec // as above
	return "ok"
}
