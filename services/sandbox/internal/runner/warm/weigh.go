package warm

import (
	"sync"
	"time"

	"github.com/fairlead/fairlead/services/sandbox/internal/held"
	"github.com/fairlead/fairlead/services/sandbox/internal/initd/wire"
)

// weightPatience is how long init may take to report the size of segments; afterwards its previous answer
// counts.
const weightPatience = time.Second

// Weigh implements box.Process. It returns nil if a control group limits memory, so that no measurement is
// needed. It also does so if the processes are on another machine, where they cannot be measured.
func (p *process) Weigh() func() int64 {
	s := p.sb
	if s.init == 0 || s.group != nil {
		return nil
	}
	w := held.Weigher{As: s.as, Processes: func() held.Processes { return s.processes(s.init) }, Segments: s.segments, Limit: p.memory}
	return func() int64 {
		bytes, err := w.Weigh()
		if err != nil {
			s.r.log.Error("cannot look at what a command has in memory", "error", err)
		}
		return bytes
	}
}

// weight is the state of the questions to init about segments.
type weight struct {
	asking  sync.Mutex    // held while asking: one question at a time
	answers chan struct{} // holds the answer to the last question
	number  uint64        // of that question; guarded by the sandbox's mu, like the next field
	bytes   int64
}

// segments returns how many bytes System V segments and the like take in the sandbox now.
func (s *sandbox) segments() int64 {
	w := &s.weight
	w.asking.Lock()
	defer w.asking.Unlock()
	s.mu.Lock()
	w.number++
	w.answers = make(chan struct{})
	question, answered := wire.EncodeID(wire.Weigh, w.number), w.answers
	s.mu.Unlock()
	late := time.NewTimer(weightPatience)
	defer late.Stop()
	if s.send(question) == nil {
		select {
		case <-answered:
		case <-late.C:
		case <-s.gone:
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return w.bytes
}

// hearWeight records init's answer. It ignores late answers.
func (s *sandbox) hearWeight(reply wire.Reply) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	w := &s.weight
	switch {
	case reply.ID > w.number || w.answers == nil:
		return wire.ErrMalformed
	case reply.ID == w.number:
		w.bytes = int64(min(reply.Shared, held.TooMuch))
		close(w.answers)
		w.answers = nil
	}
	return nil
}
