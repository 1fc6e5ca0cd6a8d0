package warm

import (
	"log/slog"
	"net"
	"testing"
	"time"

	"github.com/fairlead/fairlead/services/sandbox/internal/box"
	"github.com/fairlead/fairlead/services/sandbox/internal/held"
	"github.com/fairlead/fairlead/services/sandbox/internal/initd/wire"
)

// far is the body of a sandbox that is elsewhere.
type far struct {
	Body

	killed bool
}

func (f *far) Kill() { f.killed = true }

// elsewhere is a sandbox whose init is the test, with a command.
func elsewhere(t *testing.T) (s *sandbox, p *process, init *net.UnixConn, body *far) {
	t.Helper()
	body = &far{}
	s = newSandbox(&Runner{log: slog.New(slog.DiscardHandler)}, box.Sandbox{})
	s.body, s.held = body, held.New(0)
	theirs, err := s.connect()
	if err != nil {
		t.Fatal(err)
	}
	c, err := net.FileConn(theirs)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = theirs.Close(); _ = c.Close(); _ = s.socket.Close() })
	p = &process{sb: s, id: 1}
	s.commands[1] = p
	return s, p, c.(*net.UnixConn), body
}

// question is the number of the next one that init is asked.
func question(t *testing.T, init *net.UnixConn) uint64 {
	t.Helper()
	packet := make([]byte, 64)
	if err := init.SetReadDeadline(time.Now().Add(5 * time.Second)); err != nil {
		t.Fatal(err)
	}
	n, err := init.Read(packet)
	if err != nil || wire.Kind(packet[0]) != wire.Look {
		t.Fatalf("%v, %v", packet[:n], err)
	}
	id, err := wire.DecodeID(packet[:n])
	if err != nil {
		t.Fatal(err)
	}
	return id
}

func TestInitIsAskedWhatCommandsHoldElsewhere(t *testing.T) {
	s, p, init, body := elsewhere(t)
	say := func(id, deleted uint64) error {
		return s.take(wire.Reply{Kind: wire.Held, ID: id, Deleted: deleted, Terminals: 3, Unsure: 2, Written: deleted}, &[]int{})
	}
	for range 3 { // it is asked once
		if sum := p.Held(); sum != (held.Sum{}) {
			t.Errorf("before it has answered: %+v", sum)
		}
	}
	first := question(t, init)
	if err := say(first+1, 7); err == nil {
		t.Error("it answers what it was not asked, and is believed")
	}
	if err := say(first, 7); err != nil {
		t.Fatal(err)
	}
	if err := say(first, 7); err == nil {
		t.Error("it answers twice, and is believed")
	}
	if sum := p.Held(); sum != (held.Sum{Deleted: 7, Terminals: 3, Unsure: 2, Written: 7}) {
		t.Errorf("%+v", sum)
	}
	if err := say(question(t, init), 1<<63+7); err != nil {
		t.Fatal(err)
	}
	if sum := p.Held(); sum.Deleted != held.TooMuch || sum.Written != held.TooMuch {
		t.Errorf("%+v", sum)
	}
	late := question(t, init)
	s.forgetHeld()
	if err := say(late, 9); err != nil {
		t.Fatal(err)
	}
	if sum := p.Held(); sum != (held.Sum{}) {
		t.Errorf("what a command held that has ended: %+v", sum)
	}
	if body.killed {
		t.Error("it was ended")
	}
}

// Commands may keep init from answering, as by having it stand still.
func TestASandboxWhoseInitDoesNotSayWhatIsHeldIsEnded(t *testing.T) {
	s, p, _, body := elsewhere(t)
	p.Held()
	for range 2 * lookTries {
		if p.Held(); body.killed {
			t.Fatal("it was given no time")
		}
	}
	s.asked.since = time.Now().Add(-2 * lookPatience)
	s.asked.tries = 0 // the service was not there itself
	for range lookTries {
		if p.Held(); body.killed {
			t.Fatal("it was asked too seldom")
		}
	}
	if p.Held(); !body.killed {
		t.Error("it goes on")
	}
}

// What one command held is nothing to the next.
func TestWhatIsHeldIsForgottenWithTheLastCommand(t *testing.T) {
	s, first, _, _ := elsewhere(t)
	second := &process{sb: s, id: 2}
	s.commands[2] = second
	s.asked.sum.Deleted = 7
	s.forget(first)
	if n := s.askHeld().Deleted; n != 7 {
		t.Errorf("%d bytes while another one runs", n)
	}
	s.forget(second)
	if n := s.askHeld().Deleted; n != 0 {
		t.Errorf("%d bytes afterwards", n)
	}
}
