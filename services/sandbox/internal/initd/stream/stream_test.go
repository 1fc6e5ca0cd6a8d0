package stream

import (
	"bytes"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"io"
	"os"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// newPair makes both ends of a stream. Packets of each are thrown away but for those
// that the second one gets.
func newPair(t *testing.T) (a, b *Mux, packets chan []byte) {
	t.Helper()
	fromA, toB := io.Pipe()
	fromB, toA := io.Pipe()
	packets = make(chan []byte, 1)
	a = New(Options{Read: fromB, Write: toB, MaxPacket: 100, Packet: func([]byte) error { return nil }})
	b = New(Options{Read: fromA, Write: toA, MaxPacket: 100, Packet: func(p []byte) error {
		packets <- p
		return nil
	}})
	ended := make(chan error, 2)
	for _, m := range []*Mux{a, b} {
		go func() { ended <- m.Run() }()
	}
	t.Cleanup(func() {
		for _, w := range []*io.PipeWriter{toA, toB} {
			_ = w.Close()
		}
		for range 2 {
			if err := <-ended; !errors.Is(err, io.EOF) {
				t.Errorf("it ended with %v", err)
			}
		}
		for _, r := range []*io.PipeReader{fromA, fromB} {
			_ = r.Close() // the last output is not read
		}
		a.Wait()
		b.Wait()
	})
	return a, b, packets
}

func pipe(t *testing.T) (r, w *os.File) {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	return r, w
}

func TestASlowReaderHoldsUpNobodyElse(t *testing.T) {
	a, b, packets := newPair(t)
	slowFrom, slowTo := io.Pipe() // this pipe is not read
	endless := &counted{}
	b.Drain(1, slowTo)
	a.Pump(1, endless)

	text := make([]byte, 3*Window)
	_, _ = rand.Read(text)
	got, to := pipe(t)
	b.Drain(2, to)
	a.Pump(2, io.NopCloser(bytes.NewReader(text)))
	if all, err := io.ReadAll(got); err != nil || !bytes.Equal(all, text) {
		t.Errorf("%d of %d bytes, %v", len(all), len(text), err)
	}
	_ = got.Close()
	if err := a.Send([]byte("still here")); err != nil || string(<-packets) != "still here" {
		t.Error(err)
	}
	// All that is ever taken from who writes to the slow one is a window.
	if n := endless.total(); n > Window {
		t.Errorf("%d bytes are under way", n)
	}
	_ = slowFrom.Close() // and who is not read any more stops writing
	<-endless.closed()
}

func TestAConnectionHasASmallerWindow(t *testing.T) {
	a, b, _ := newPair(t)
	slowFrom, slowTo := io.Pipe()
	endless := &counted{}
	slow, quick := Channel(1, Connection), Channel(2, Connection)
	b.Drain(slow, slowTo)
	a.Pump(slow, endless)
	text := make([]byte, 5*ConnectionWindow)
	got, to := pipe(t)
	b.Drain(quick, to)
	a.Pump(quick, io.NopCloser(bytes.NewReader(text)))
	if all, err := io.ReadAll(got); err != nil || len(all) != len(text) {
		t.Errorf("%d of %d bytes, %v", len(all), len(text), err)
	}
	_ = got.Close()
	if n := endless.total(); n > ConnectionWindow {
		t.Errorf("%d bytes are under way", n)
	}
	b.Stop(slow) // who wants no more says so without being sent anything
	<-endless.closed()
	_ = slowFrom.Close()
}

func TestTheEndOfAChannelIsTold(t *testing.T) {
	a, b, _ := newPair(t)
	got, to := pipe(t)
	b.Drain(7, to)
	<-a.Pump(7, io.NopCloser(bytes.NewReader(nil)))
	if all, err := io.ReadAll(got); err != nil || len(all) > 0 {
		t.Errorf("%q, %v", all, err)
	}
	_ = got.Close()
}

func TestWhatIsNoStreamEndsIt(t *testing.T) {
	make1 := func(f frame) []byte {
		var b bytes.Buffer
		if err := writeFrame(&b, f); err != nil {
			t.Fatal(err)
		}
		return b.Bytes()
	}
	long := make1(frame{kind: data, channel: 1})
	binary.LittleEndian.PutUint32(long[9:], MaxData+1)
	tooMuch := bytes.Repeat(make1(frame{data, 1, make([]byte, MaxData)}), Window/MaxData+1)
	for name, raw := range map[string][]byte{
		"an unknown kind":                 make1(frame{kind: 99}),
		"a packet that is too long":       make1(frame{kind: packet, body: make([]byte, 101)}),
		"data that are too long":          long,
		"data of no channel":              make1(frame{data, 9, []byte("x")}),
		"the end of no channel":           make1(frame{kind: end, channel: 9}),
		"more than was granted":           tooMuch,
		"a grant of what was never sent":  make1(frame{grant, 2, []byte{1, 0, 0, 0}}),
		"a grant of another length":       make1(frame{grant, 2, []byte{1}}),
		"a ping with something in it":     make1(frame{ping, 0, []byte("x")}),
		"data after a channel's own end":  append(make1(frame{kind: end, channel: 1}), make1(frame{data, 1, []byte("x")})...),
		"a negative number as a long one": make1(frame{grant, 2, []byte{255, 255, 255, 255}}),
	} {
		t.Run(name, func(t *testing.T) {
			m := New(Options{Read: bytes.NewReader(raw), Write: io.Discard, MaxPacket: 100, Packet: func([]byte) error { return nil }})
			unread, to := io.Pipe()
			m.Drain(1, to)
			r, w := pipe(t)
			m.Pump(2, r)
			if err := m.Run(); !errors.Is(err, ErrMalformed) {
				t.Errorf("it ends with %v", err)
			}
			_ = errors.Join(unread.Close(), w.Close())
			m.Wait()
		})
	}
}

func FuzzStream(f *testing.F) {
	for _, x := range []frame{{packet, 0, []byte("x")}, {data, 1, []byte("x")}, {end, 1, nil}, {grant, 2, []byte{0, 0, 0, 0}}, {stop, 2, nil}, {ping, 0, nil}} {
		var b bytes.Buffer
		if err := writeFrame(&b, x); err != nil {
			f.Fatal(err)
		}
		f.Add(b.Bytes())
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		m := New(Options{Read: bytes.NewReader(raw), Write: io.Discard, MaxPacket: 100, Packet: func(p []byte) error {
			if len(p) > 100 {
				t.Errorf("a packet of %d bytes", len(p))
			}
			return nil
		}})
		m.Drain(1, discarded{})
		m.Pump(2, io.NopCloser(bytes.NewReader([]byte("x"))))
		if m.Run() == nil {
			t.Error("it has no end")
		}
		m.Wait()
	})
}

type discarded struct{}

func (discarded) Write(b []byte) (int, error) { return len(b), nil }
func (discarded) Close() error                { return nil }
