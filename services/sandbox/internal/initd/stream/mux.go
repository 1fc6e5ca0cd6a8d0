package stream

import (
	"bufio"
	"encoding/binary"
	"io"
	"sync"
	"time"
)

// drainTimeout is how long received data may wait to be written once the stream has ended.
const drainTimeout = 10 * time.Second

// Options of a Mux.
type Options struct {
	Read  io.Reader
	Write io.Writer
	// MaxPacket limits the packets of the other side.
	MaxPacket int
	// Packet handles a packet and may keep it. An error ends the stream.
	Packet func([]byte) error
	// OnFrame is called at each frame; may be nil.
	OnFrame func()
}

// Mux is one end of a stream. Several goroutines may call its methods, but only one may call Run.
type Mux struct {
	o    Options
	work sync.WaitGroup

	write sync.Mutex // one frame at a time

	mu        sync.Mutex // guards what follows
	ended     bool
	senders   map[uint64]*sender
	receivers map[uint64]*receiver
}

// New makes one end. The caller must call Run.
func New(o Options) *Mux {
	return &Mux{o: o, senders: map[uint64]*sender{}, receivers: map[uint64]*receiver{}}
}

// Run reads the stream to its end and returns why it ended. Then the mux reads no more from files, but
// writes received data for a while.
func (m *Mux) Run() error {
	r := bufio.NewReaderSize(m.o.Read, MaxData+headerSize)
	var err error
	for err == nil {
		var f frame
		if f, err = readFrame(r, m.o.MaxPacket); err == nil {
			if m.o.OnFrame != nil {
				m.o.OnFrame()
			}
			err = m.take(f)
		}
	}
	m.finish()
	return err
}

// Wait waits until all goroutines of the mux have ended, after Run has returned.
func (m *Mux) Wait() { m.work.Wait() }

// Send sends a packet.
func (m *Mux) Send(p []byte) error { return m.send(frame{kind: packet, body: p}) }

// Ping tells the other side that this one is alive.
func (m *Mux) Ping() error { return m.send(frame{kind: ping}) }

func (m *Mux) send(f frame) error {
	m.write.Lock()
	defer m.write.Unlock()
	return writeFrame(m.o.Write, f)
}

func (m *Mux) take(f frame) error {
	m.mu.Lock()
	s, r := m.senders[f.channel], m.receivers[f.channel]
	m.mu.Unlock()
	switch f.kind {
	case packet:
		return m.o.Packet(f.body)
	case data:
		if r == nil {
			return ErrMalformed
		}
		return r.add(f.body)
	case end:
		if r == nil {
			return ErrMalformed
		}
		r.end()
	case grant:
		if s != nil { // it may have ended meanwhile
			return s.grant(int(binary.LittleEndian.Uint32(f.body)))
		}
	case stop:
		if s != nil {
			s.stop()
		}
	}
	return nil
}

// finish stops senders and lets receivers reach their end.
func (m *Mux) finish() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.ended = true
	for _, s := range m.senders {
		s.stop()
	}
	for _, r := range m.receivers {
		if f, ok := r.to.(interface{ SetWriteDeadline(time.Time) error }); ok {
			_ = f.SetWriteDeadline(time.Now().Add(drainTimeout))
		}
		r.end()
	}
}

// Pump sends a file's data to its end and then closes the file. The returned channel is closed when all is
// sent.
func (m *Mux) Pump(channel uint64, from io.ReadCloser) <-chan struct{} {
	s := &sender{m: m, channel: channel, from: from, credit: window(channel)}
	sent := make(chan struct{})
	s.changed = sync.NewCond(&s.mu)
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.ended {
		_ = from.Close()
		close(sent)
		return sent
	}
	m.senders[channel] = s
	m.work.Add(1)
	go func() {
		defer m.work.Done()
		s.run()
		close(sent)
	}()
	return sent
}

// Drain writes a channel's data to a file, to its end, and then closes the file.
func (m *Mux) Drain(channel uint64, to io.WriteCloser) {
	r := &receiver{m: m, channel: channel, to: to}
	r.changed = sync.NewCond(&r.mu)
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.ended {
		_ = to.Close()
		return
	}
	m.receivers[channel] = r
	m.work.Add(1)
	go func() {
		defer m.work.Done()
		r.run()
	}()
}

// Stop tells the other side to send nothing more on a channel; the receiver discards bytes that still
// arrive. Without a receiver it does nothing. It does not wait for the other side, which may not be
// reading: the receiver's file stays open until the message is sent.
func (m *Mux) Stop(channel uint64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	r := m.receivers[channel]
	if r == nil || r.stopSent != nil || m.ended {
		return
	}
	told := make(chan struct{})
	r.stopSent = told
	m.work.Go(func() {
		_ = m.send(frame{kind: stop, channel: channel}) // on failure the other side is gone or has not begun to send
		close(told)
	})
}

// sender is the sending end of a channel.
type sender struct {
	m       *Mux
	channel uint64
	from    io.ReadCloser
	changed *sync.Cond

	mu      sync.Mutex // guards what follows
	credit  int
	stopped bool
}

func (s *sender) run() {
	buffer := make([]byte, MaxData)
	for {
		most := s.await()
		if most == 0 {
			break
		}
		n, err := s.from.Read(buffer[:most])
		if n > 0 {
			s.mu.Lock()
			s.credit -= n
			s.mu.Unlock()
			if s.m.send(frame{data, s.channel, buffer[:n]}) != nil {
				break
			}
		}
		if err != nil {
			break
		}
	}
	s.m.mu.Lock()
	delete(s.m.senders, s.channel)
	s.m.mu.Unlock()
	_ = s.m.send(frame{kind: end, channel: s.channel}) // on failure the other side is gone
	_ = s.from.Close()
}

// await waits until data may be sent and returns how many bytes; zero means no more.
func (s *sender) await() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	for s.credit == 0 && !s.stopped {
		s.changed.Wait()
	}
	if s.stopped {
		return 0
	}
	return min(s.credit, MaxData)
}

func (s *sender) grant(n int) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if n > window(s.channel)-s.credit { // more than was ever sent
		return ErrMalformed
	}
	s.credit += n
	s.changed.Signal()
	return nil
}

// stop also ends a waiting read.
func (s *sender) stop() {
	s.mu.Lock()
	s.stopped = true
	s.changed.Signal()
	s.mu.Unlock()
	_ = s.from.Close()
}

// receiver is the receiving end of a channel.
type receiver struct {
	m       *Mux
	channel uint64
	to      io.WriteCloser
	changed *sync.Cond

	stopSent chan struct{} // closed when Stop was sent; nil if Stop was not called. The mux's mu guards it

	mu    sync.Mutex // guards what follows
	kept  []byte     // received and not yet written
	busy  int        // bytes that are being written
	ended bool
}

func (r *receiver) add(b []byte) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ended || len(r.kept)+r.busy+len(b) > window(r.channel) {
		return ErrMalformed
	}
	r.kept = append(r.kept, b...)
	r.changed.Signal()
	return nil
}

func (r *receiver) end() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ended = true
	r.changed.Signal()
}

func (r *receiver) run() {
	var spare []byte
	broken := false
	for {
		b, ok := r.next(spare)
		if !ok {
			break
		}
		if !broken {
			if _, err := r.to.Write(b); err != nil {
				broken = true
				_ = r.m.send(frame{kind: stop, channel: r.channel})
			}
		}
		r.mu.Lock()
		r.busy = 0
		r.mu.Unlock()
		_ = r.m.send(frame{grant, r.channel, binary.LittleEndian.AppendUint32(nil, uint32(len(b)))})
		spare = b[:0]
	}
	r.m.mu.Lock()
	delete(r.m.receivers, r.channel)
	told := r.stopSent
	r.m.mu.Unlock()
	if told != nil {
		<-told
	}
	_ = r.to.Close()
}

// next returns the received data and leaves a buffer in its place; false at the end.
func (r *receiver) next(spare []byte) ([]byte, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for len(r.kept) == 0 && !r.ended {
		r.changed.Wait()
	}
	if len(r.kept) == 0 {
		return nil, false
	}
	b := r.kept
	r.kept, r.busy = spare, len(b)
	return b, true
}
