// Package stream carries the messages between the service and an init that is elsewhere, and the standard
// streams of commands, over one pair of byte streams.
//
// A frame is a kind, a channel, a length and that many bytes. Packets are the messages of package wire. All
// other frames belong to channels: bytes in one direction until their end. A channel's sender may be at
// most Window bytes ahead of its receiver. So a slow reader delays only its own writer, and the number of
// channels bounds the memory in use.
//
// Neither side trusts the other: an invalid frame, or more bytes than granted, ends the stream.
package stream

import (
	"encoding/binary"
	"errors"
	"io"
)

const (
	// Window is how many bytes of a channel may be in transit.
	Window = 256 << 10
	// ConnectionWindow is the Window of a connection; there may be many connections.
	ConnectionWindow = 64 << 10
	// MaxConnections is how many connections init carries at once. Others wait to be accepted.
	MaxConnections = 256
	// MaxData limits the bytes of a channel in a frame.
	MaxData = 32 << 10
	// MaxRequest limits a packet from the service to init: a command's arguments and environment, of which
	// the kernel takes about 6 MiB at most.
	MaxRequest = 8 << 20
)

// ErrMalformed means that the stream violates the protocol.
var ErrMalformed = errors.New("malformed stream")

type kind byte

const (
	packet kind = iota + 1
	data        // bytes of a channel
	end         // the sender has no more data
	grant       // the receiver takes so many more bytes
	stop        // the receiver takes no more data
	ping        // the peer is alive
)

// Channels of a command. A terminal has the first and second. A connection has one number for both
// directions.
const (
	Input = iota
	Output
	Errors
	Connection
)

// Channel returns the number of one of a command's channels, or of a connection's.
func Channel(id uint64, which int) uint64 { return id<<2 | uint64(which) }

// window returns how many bytes of a channel may be in transit.
func window(channel uint64) int {
	if channel&3 == Connection {
		return ConnectionWindow
	}
	return Window
}

const headerSize = 13

type frame struct {
	kind    kind
	channel uint64
	body    []byte
}

func writeFrame(w io.Writer, f frame) error {
	b := make([]byte, 0, headerSize+len(f.body))
	b = append(b, byte(f.kind))
	b = binary.LittleEndian.AppendUint64(b, f.channel)
	b = binary.LittleEndian.AppendUint32(b, uint32(len(f.body)))
	_, err := w.Write(append(b, f.body...))
	return err
}

// readFrame reads a frame; its packet has at most maxPacket bytes.
func readFrame(r io.Reader, maxPacket int) (frame, error) {
	var header [headerSize]byte
	if _, err := io.ReadFull(r, header[:]); err != nil {
		return frame{}, err
	}
	f := frame{kind: kind(header[0]), channel: binary.LittleEndian.Uint64(header[1:])}
	length := int(binary.LittleEndian.Uint32(header[9:]))
	most := 0
	switch f.kind {
	case packet:
		most = maxPacket
	case data:
		most = MaxData
	case grant:
		most = 4
	case end, stop, ping:
	default:
		return frame{}, ErrMalformed
	}
	if length > most || f.kind == grant && length != 4 {
		return frame{}, ErrMalformed
	}
	f.body = make([]byte, length)
	_, err := io.ReadFull(r, f.body)
	return f, err
}
