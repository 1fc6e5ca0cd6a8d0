package modelproxy

import (
	"bytes"
	"net/http"
	"sync"
	"time"
)

// pulse writes an answer to a client, and pings the client while the target is silent: proxies cut silent streams.
type pulse struct {
	w    http.ResponseWriter
	ping []byte // nil: the answer is not streamed

	mu    sync.Mutex
	timer *time.Timer
	begin func() // writes the head; nil after it was written
	mid   bool   // an event has begun
	ended bool
	err   error
}

// newPulse returns a pulse. begin writes the head and what comes before the first event; it is called before the
// first write or ping.
func newPulse(w http.ResponseWriter, ping []byte, begin func()) *pulse {
	p := &pulse{w: w, ping: ping, begin: begin}
	if ping != nil {
		p.timer = time.AfterFunc(pingEvery, p.beat)
	}
	return p
}

// beat sends a ping unless an event is half written.
func (p *pulse) beat() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ended {
		return
	}
	if !p.mid {
		_ = p.put(p.ping) // the next write tells of an error
	}
	p.timer.Reset(pingEvery)
}

// write sends a part of the answer at once.
func (p *pulse) write(b []byte) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.timer != nil {
		p.timer.Reset(pingEvery)
	}
	return p.put(b)
}

// say sends the events that tell returns. They are written after the head, so that they are numbered after it.
func (p *pulse) say(tell func() []byte) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.timer != nil {
		p.timer.Reset(pingEvery)
	}
	p.start()
	return p.put(tell())
}

// start writes the head, if it is not written, and reports whether it did.
func (p *pulse) start() bool {
	begin := p.begin
	if p.begin = nil; begin != nil {
		begin()
	}
	return begin != nil
}

func (p *pulse) put(b []byte) error {
	if p.start() {
		if len(b) == 0 && p.ping != nil {
			p.err = http.NewResponseController(p.w).Flush()
		}
	}
	if p.err != nil || len(b) == 0 {
		return p.err
	}
	if _, p.err = p.w.Write(b); p.err == nil && p.ping != nil {
		p.mid = !bytes.HasSuffix(b, []byte("\n\n"))
		p.err = http.NewResponseController(p.w).Flush()
	}
	return p.err
}

// began reports whether the client has the head.
func (p *pulse) began() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.begin == nil
}

// halfway reports whether an event has begun.
func (p *pulse) halfway() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.mid
}

// end stops the pings. Nothing is written afterwards.
func (p *pulse) end() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ended = true
	if p.timer != nil {
		p.timer.Stop()
	}
}

// last writes the last event, after the end of the pings.
func (p *pulse) last(b []byte) {
	p.mu.Lock()
	defer p.mu.Unlock()
	_ = p.put(b) // an error here means that the client has gone
}
