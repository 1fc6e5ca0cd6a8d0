// Package wire defines the messages between the service and a sandbox's init: one message per packet of a
// sequenced socket, with files beside it.
//
// The service trusts nothing that it reads here: a command may have taken its init over. Decoding is
// bounded and never panics.
package wire

import (
	"encoding/binary"
	"errors"
	"time"
	"unsafe"
)

// FD is the socket's descriptor in init.
const FD = 3

// Port is the port of the sandbox's way out, at 127.0.0.1.
const Port = 3128

// MaxPacket limits a message. A larger Start is sent in a file.
const MaxPacket = 64 << 10

// MaxReply limits a reply of init.
const MaxReply = 4096

// ErrMalformed reports an undecodable message.
var ErrMalformed = errors.New("malformed message")

// Kind is the type of a message.
type Kind byte

// From the service to init.
const (
	// Start starts a command. Its files are its standard input, output and error, or none for a command
	// with a terminal, and then its gate if it has one.
	Start Kind = iota + 1
	// Long is a Start in a file, which is the first file.
	Long
	// Listen asks for the listener of the sandbox's way out, with id zero.
	Listen
	// Signal sends a signal to a command's process group, and Resize sets its terminal's size. A service
	// uses them if init cannot pass files to it.
	Signal
	Resize
	// Unlisten, with id zero, closes the listener of a way out that init serves itself. Open connections
	// continue.
	Unlisten
	// Look, with id zero, asks how many terminals are open in the sandbox.
	Look
)

// From init to the service.
const (
	// Ready reports that init runs: the sandbox is complete.
	Ready Kind = iota + 16
	// Started reports that a command has a process, which executes it once it passes its gate. Its files
	// are the pidfd and then the terminal's master. It is omitted for a short command, unless requested.
	Started
	// Failed reports that a command could not be executed. It replaces Exited.
	Failed
	// Exited reports how a command ended.
	Exited
	// Listening answers Listen. Its file is the listener, which init does not keep. If init cannot pass
	// files, it serves the listener itself.
	Listening
	// Connected reports a connection to the listener that init serves. The id is the connection's, larger
	// than any earlier one.
	Connected
	// Terminals answers Look. The id field holds their number.
	Terminals
)

// Command is a Start.
type Command struct {
	ID uint64
	// Gate makes the process wait for a byte before it executes the command. At the end of the file the
	// process ends instead.
	Gate          bool
	ReportStart   bool // report Started at once
	Terminal      bool
	Rows, Columns uint16
	AddressSpace  uint64 // bytes that each process may map; zero for no limit
	Processes     uint64 // of the sandbox's user; zero for no limit
	FileSize      uint64 // bytes of a file that it writes; zero for the sandbox's limit
	OpenFiles     uint64 // of each process; zero for as many as init may have
	Dir           string
	Argv, Env     []string
}

// Reply is a message of init about a command.
type Reply struct {
	Kind Kind
	ID   uint64
	// Of Failed: the reason, and whether entering the folder failed.
	Errno uint32
	Dir   bool
	// Of Exited.
	Status uint32        // as of wait(2)
	CPU    time.Duration // of the command, and of its remains if it ran alone
	MaxRSS int64         // the largest of its processes, in bytes
	// Swept means that no process of the command is left. It is not set while another command runs.
	Swept bool
}

const (
	flagGate        = 1
	flagTerminal    = 2
	flagReportStart = 4
)

// Encode returns the packet of a Start.
func (c *Command) Encode() []byte {
	b := []byte{byte(Start), 0}
	if c.Gate {
		b[1] |= flagGate
	}
	if c.ReportStart {
		b[1] |= flagReportStart
	}
	if c.Terminal {
		b[1] |= flagTerminal
	}
	b = binary.LittleEndian.AppendUint64(b, c.ID)
	b = binary.LittleEndian.AppendUint16(b, c.Rows)
	b = binary.LittleEndian.AppendUint16(b, c.Columns)
	b = binary.LittleEndian.AppendUint64(b, c.AddressSpace)
	for _, limit := range []uint64{c.Processes, c.FileSize, c.OpenFiles} {
		b = binary.LittleEndian.AppendUint64(b, limit)
	}
	b = appendText(b, c.Dir)
	for _, list := range [][]string{c.Argv, c.Env} {
		b = binary.LittleEndian.AppendUint32(b, uint32(len(list)))
		for _, s := range list {
			b = appendText(b, s)
		}
	}
	return b
}

// DecodeCommand reads a Start's packet. The command's strings stay in the packet, each followed by a zero
// byte, as the kernel reads strings. They are valid as long as the packet.
func DecodeCommand(b []byte) (*Command, error) {
	r := reader{b: b}
	if Kind(r.byte()) != Start {
		return nil, ErrMalformed
	}
	flags := r.byte()
	c := &Command{
		Gate: flags&flagGate != 0, ReportStart: flags&flagReportStart != 0, Terminal: flags&flagTerminal != 0,
		ID: r.uint64(), Rows: r.uint16(), Columns: r.uint16(), AddressSpace: r.uint64(), Processes: r.uint64(),
		FileSize: r.uint64(), OpenFiles: r.uint64(), Dir: r.text(),
	}
	for _, list := range []*[]string{&c.Argv, &c.Env} {
		n := r.count()
		*list = make([]string, 0, n)
		for range n {
			*list = append(*list, r.text())
		}
	}
	if r.bad || len(r.b) > 0 || len(c.Argv) == 0 {
		return nil, ErrMalformed
	}
	return c, nil
}

// EncodeSignal returns the packet of a Signal.
func EncodeSignal(id uint64, number uint32) []byte {
	return binary.LittleEndian.AppendUint32(EncodeID(Signal, id), number)
}

// DecodeSignal decodes a Signal.
func DecodeSignal(b []byte) (id uint64, number uint32, err error) {
	r := reader{b: b}
	r.byte()
	id, number = r.uint64(), r.uint32()
	return id, number, r.whole()
}

// EncodeResize returns the packet of a Resize.
func EncodeResize(id uint64, rows, columns uint16) []byte {
	return binary.LittleEndian.AppendUint16(binary.LittleEndian.AppendUint16(EncodeID(Resize, id), rows), columns)
}

// DecodeResize decodes a Resize.
func DecodeResize(b []byte) (id uint64, rows, columns uint16, err error) {
	r := reader{b: b}
	r.byte()
	id, rows, columns = r.uint64(), r.uint16(), r.uint16()
	return id, rows, columns, r.whole()
}

// EncodeID returns a packet with only a kind and an id.
func EncodeID(k Kind, id uint64) []byte {
	return binary.LittleEndian.AppendUint64([]byte{byte(k)}, id)
}

// DecodeID decodes a packet of EncodeID.
func DecodeID(b []byte) (uint64, error) {
	if len(b) != 9 {
		return 0, ErrMalformed
	}
	return binary.LittleEndian.Uint64(b[1:]), nil
}

// Encode returns the packet of a reply.
func (p *Reply) Encode() []byte {
	b := EncodeID(p.Kind, p.ID)
	switch p.Kind {
	case Failed:
		b = binary.LittleEndian.AppendUint32(b, p.Errno)
		return append(b, bit(p.Dir))
	case Exited:
		b = binary.LittleEndian.AppendUint32(b, p.Status)
		b = binary.LittleEndian.AppendUint64(b, uint64(p.CPU))
		b = binary.LittleEndian.AppendUint64(b, uint64(p.MaxRSS))
		return append(b, bit(p.Swept))
	}
	return b
}

// DecodeReply reads a reply's packet.
func DecodeReply(b []byte) (Reply, error) {
	r := reader{b: b}
	p := Reply{Kind: Kind(r.byte()), ID: r.uint64()}
	switch p.Kind {
	case Ready, Started, Listening, Connected, Terminals:
	case Failed:
		p.Errno, p.Dir = r.uint32(), r.byte() == 1
	case Exited:
		p.Status, p.CPU, p.MaxRSS, p.Swept = r.uint32(), time.Duration(r.uint64()), int64(r.uint64()), r.byte() == 1
	default:
		return Reply{}, ErrMalformed
	}
	if err := r.whole(); err != nil {
		return Reply{}, err
	}
	return p, nil
}

func bit(b bool) byte {
	if b {
		return 1
	}
	return 0
}

func appendText(b []byte, s string) []byte {
	return append(append(binary.LittleEndian.AppendUint32(b, uint32(len(s))), s...), 0)
}

// reader takes values off the front of a packet. Once it is bad, it returns zeros.
type reader struct {
	b   []byte
	bad bool
}

func (r *reader) take(n int) []byte {
	if r.bad || n > len(r.b) {
		r.bad, r.b = true, nil
		return make([]byte, min(n, 8))
	}
	b := r.b[:n]
	r.b = r.b[n:]
	return b
}

// whole returns an error unless the packet was read to its end.
func (r *reader) whole() error {
	if r.bad || len(r.b) > 0 {
		return ErrMalformed
	}
	return nil
}

func (r *reader) byte() byte     { return r.take(1)[0] }
func (r *reader) uint16() uint16 { return binary.LittleEndian.Uint16(r.take(2)) }
func (r *reader) uint32() uint32 { return binary.LittleEndian.Uint32(r.take(4)) }
func (r *reader) uint64() uint64 { return binary.LittleEndian.Uint64(r.take(8)) }

// count returns how many strings follow, each of at least five bytes.
func (r *reader) count() int {
	n := int(r.uint32())
	if n > len(r.b)/5 {
		r.bad, r.b = true, nil
		return 0
	}
	return n
}

// text returns a string of appendText, in place.
func (r *reader) text() string {
	n := int(r.uint32())
	if r.bad || n >= len(r.b) || r.b[n] != 0 {
		r.bad, r.b = true, nil
		return ""
	}
	return unsafe.String(&r.take(n + 1)[0], n) //nolint:gosec // the packet is not written to
}
