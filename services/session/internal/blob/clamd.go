package blob

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"time"
)

// clamd scans content by the ClamAV daemon, with its command INSTREAM: chunks with their length, a chunk of
// length zero at the end, and one line as the answer.
type clamd struct{ network, address string }

// scanPause is how long the daemon may take between two chunks, and for its answer.
const scanPause = 5 * time.Minute

// Scan implements Scanner.
func (c clamd) Scan(ctx context.Context, content io.Reader) error {
	answer, err := c.scan(ctx, content)
	switch {
	case err != nil:
		return fmt.Errorf("%w: %w", ErrScanner, err)
	case answer == "stream: OK":
		return nil
	case strings.HasSuffix(answer, " FOUND"):
		return fmt.Errorf("%w: %s", ErrRefused, strings.TrimSuffix(strings.TrimPrefix(answer, "stream: "), " FOUND"))
	}
	return fmt.Errorf("%w: it answers %.200q", ErrScanner, answer)
}

// scan sends the content and returns the answer.
func (c clamd) scan(ctx context.Context, content io.Reader) (string, error) {
	conn, err := (&net.Dialer{Timeout: 10 * time.Second}).DialContext(ctx, c.network, c.address)
	if err != nil {
		return "", err
	}
	defer func() { _ = conn.Close() }()
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	defer stop()
	sent := send(conn, content)
	_ = conn.SetDeadline(time.Now().Add(scanPause))
	// The daemon answers before the end if it refuses to read on.
	answer, err := bufio.NewReader(io.LimitReader(conn, 4<<10)).ReadString(0)
	if answer = strings.TrimRight(answer, "\x00\n"); answer != "" {
		if sent != nil && answer == "stream: OK" {
			return "", sent
		}
		return answer, nil
	}
	return "", errors.Join(sent, err)
}

// send sends the command and the content.
func send(conn net.Conn, content io.Reader) error {
	if _, err := io.WriteString(conn, "zINSTREAM\x00"); err != nil {
		return err
	}
	for buffer := make([]byte, 4+pieceBytes); ; {
		n, readErr := io.ReadFull(content, buffer[4:])
		if readErr != nil && !errors.Is(readErr, io.EOF) && !errors.Is(readErr, io.ErrUnexpectedEOF) {
			return readErr
		}
		_ = conn.SetDeadline(time.Now().Add(scanPause))
		if n > 0 {
			binary.BigEndian.PutUint32(buffer, uint32(n))
			if _, err := conn.Write(buffer[:4+n]); err != nil {
				return err
			}
		}
		if readErr != nil {
			_, err := conn.Write(make([]byte, 4))
			return err
		}
	}
}
