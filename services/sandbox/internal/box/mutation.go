package box

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
)

// answer is what is remembered of a file change.
type answer struct {
	Digest []byte `json:"digest"` // of the request
	Intent []byte `json:"intent,omitempty"`
	Done   bool   `json:"done"`
	Answer []byte `json:"answer,omitempty"`
	// Failure is why the change was not made; it will not be made later either.
	Failure []byte `json:"failure,omitempty"`
}

// KeptMethod is the method whose changes are remembered as long as the workspace is:
// who repeats one a month later has not asked for another.
const KeptMethod = "clone"

// Change is one file change, done at most once per call and method.
type Change struct {
	Method  string
	Request []byte // whatever makes two requests the same
	// Do makes the change. Just before it takes effect it calls intend with what
	// Recover will need to know.
	Do func(w *Workspace, intend func([]byte) error) ([]byte, error)
	// Failure encodes an error of Do's that is the change's answer for good: a
	// caller that comes late must not make the change when it has become possible.
	// Nil says that the error is none.
	Failure func(error) []byte
	// Recover is asked after a crash between intend and the answer. It answers
	// when the change had taken effect, and false when it had not.
	Recover func(w *Workspace, intent []byte) ([]byte, bool)
}

// FailedBeforeError says that a change failed before, and with what.
type FailedBeforeError struct{ Failure []byte }

func (*FailedBeforeError) Error() string { return "the change failed before" }

// Mutate makes a change, or answers as it did the first time. Changes of a session
// come one after the other.
func (n *Node) Mutate(c Call, generation int64, ch Change) ([]byte, error) {
	s, leave, err := n.enter(c.Key)
	if err != nil {
		return nil, err
	}
	defer leave()
	if !callID.MatchString(c.ID) {
		return nil, fmt.Errorf("call id %q is not valid", c.ID)
	}
	s.changes.Lock()
	defer s.changes.Unlock()
	w, err := s.begin(c, generation)
	if err != nil {
		return nil, err
	}
	dir := s.path("mutations", ch.Method)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	return ch.once(w, s.path("mutations", ch.Method, c.ID))
}

func (s *session) begin(c Call, generation int64) (*Workspace, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.admitCall(c, generation); err != nil {
		return nil, err
	}
	if err := s.fence(c.Epoch); err != nil {
		return nil, err
	}
	if e := s.execs[c.ID]; e != nil && e.cancelled() {
		return nil, ErrCancelled
	}
	return s.workspace(), nil
}

func (ch Change) once(w *Workspace, file string) ([]byte, error) {
	digest := sha256.Sum256(ch.Request)
	known, found, err := ch.recall(file)
	switch {
	case err != nil:
		return nil, err
	case known.Done:
		return known.Answer, nil
	case found:
		if got, ok := ch.Recover(w, known.Intent); ok {
			return got, note(file, answer{Digest: digest[:], Done: true, Answer: got})
		}
	}
	got, err := ch.Do(w, func(intent []byte) error {
		return note(file, answer{Digest: digest[:], Intent: intent})
	})
	if err != nil {
		if failure := ch.failure(err); failure != nil {
			return nil, errors.Join(err, note(file, answer{Digest: digest[:], Done: true, Failure: failure}))
		}
		_ = os.Remove(file) // nothing took effect
		return nil, err
	}
	return got, note(file, answer{Digest: digest[:], Done: true, Answer: got})
}

// recall reads what is remembered of a change. That it failed is an error.
func (ch Change) recall(file string) (known answer, found bool, err error) {
	digest := sha256.Sum256(ch.Request)
	switch err := read(file, &known); {
	case errors.Is(err, os.ErrNotExist):
		return answer{}, false, nil
	case err != nil:
		return answer{}, false, err
	case !bytes.Equal(known.Digest, digest[:]):
		return answer{}, false, ErrCallIDReused
	case known.Done && known.Failure != nil:
		return answer{}, false, &FailedBeforeError{known.Failure}
	}
	return known, true, nil
}

// Answered is what a change answered, if it was made for this call before.
func (n *Node) Answered(c Call, generation int64, ch Change) (got []byte, done bool, err error) {
	s, leave, err := n.enter(c.Key)
	if err != nil {
		return nil, false, err
	}
	defer leave()
	if !callID.MatchString(c.ID) {
		return nil, false, fmt.Errorf("call id %q is not valid", c.ID)
	}
	s.changes.Lock()
	defer s.changes.Unlock()
	w, err := s.begin(c, generation)
	if err != nil {
		return nil, false, err
	}
	known, found, err := ch.recall(s.path("mutations", ch.Method, c.ID))
	if err != nil || !found || known.Done {
		return known.Answer, known.Done, err
	}
	got, done = ch.Recover(w, known.Intent)
	return got, done, nil
}

func (ch Change) failure(err error) []byte {
	if ch.Failure == nil {
		return nil
	}
	return ch.Failure(err)
}
