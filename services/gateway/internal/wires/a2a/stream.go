package a2a

import (
	"encoding/json"
	"fmt"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
)

// encoder writes a task and then its updates, until it has ended or waits for its client. It must get every event of
// the turn. It implements wire.Encoder.
type encoder struct {
	*fold
	// from is the number of the event with which the stream begins: the task is said as it is then.
	from int64
	// history bounds the messages of the task; negative: all.
	history int
	// stays makes the stream go on although the task waits already when it begins.
	stays bool
	frame func(dst []byte, v any) ([]byte, error)
	fault func(dst []byte, why error) []byte
	begun bool
}

// Event implements wire.Encoder.
func (e *encoder) Event(dst []byte, ev *sessionv1.Event) (next []byte, complete bool, err error) {
	updates := e.add(ev)
	if ev.GetSeq() < e.from {
		return dst, false, nil
	}
	if !e.begun {
		e.begun = true
		t := e.task()
		t.History = newest(t.History, e.history)
		dst, err = e.frame(dst, update{Task: &t})
		return dst, terminal(t.Status.State) || interrupted(t.Status.State) && !e.stays, err
	}
	for _, u := range updates {
		if dst, err = e.frame(dst, u); err != nil {
			return dst, false, err
		}
		if u.Status != nil && (terminal(u.Status.Status.State) || interrupted(u.Status.Status.State)) {
			complete = true
		}
	}
	return dst, complete, nil
}

// Ended implements wire.Encoder.
func (e *encoder) Ended(dst []byte, why error) []byte { return e.fault(dst, why) }

// newest returns the last n messages; all of them if n is negative.
func newest(all []message, n int) []message {
	if n < 0 || len(all) <= n {
		return all
	}
	return all[len(all)-n:]
}

// sse writes one server-sent event.
func sse(dst []byte, v any) ([]byte, error) {
	b, err := json.Marshal(v)
	if err != nil {
		return dst, err
	}
	return fmt.Appendf(dst, "data: %s\n\n", b), nil
}
