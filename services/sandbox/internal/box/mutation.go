package box

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// answer is the stored result of a file change.
type answer struct {
	Digest []byte `json:"digest"` // of the request
	Done   bool   `json:"done"`   // if false, an older version was interrupted, and the result is unknown
	Answer []byte `json:"answer,omitempty"`
	// Failure is why the change was not made; it will not be made later either.
	Failure []byte `json:"failure,omitempty"`
	// Unknown means that the change may have been made; it will not be made again.
	Unknown bool `json:"unknown,omitempty"`
	// Void means that the change was undone: a repeat makes it again. The journal may still have the change
	// and finds it answered.
	Void bool `json:"void,omitempty"`
	// Round is how often the change had been undone when it was made.
	Round int `json:"round,omitempty"`
}

// ends reports whether the answer belongs to an attempt in a round. A void answer covers all rounds up to
// its own; the next round has no answer yet.
func (a answer) ends(round int) bool { return a.Done && (!a.Void || round <= a.Round) }

// mutations are the changes of a session's files, and their answers.
type mutations struct {
	location

	mu mutex // held while a change is made, because changes happen one after the other
}

// KeptMethod is the method whose changes are remembered as long as the workspace exists: a repeat a month
// later is still the same call. Only VoidKept ends that.
const KeptMethod = "clone"

// Kept returns the calls of KeptMethod whose changes are made and not void. It must be called within a
// Change, so that no other change of that kind runs.
func (w *Workspace) Kept() ([]string, error) {
	all, err := w.s.mutations.kept()
	calls := make([]string, 0, len(all))
	for call := range all {
		calls = append(calls, call)
	}
	slices.Sort(calls)
	return calls, err
}

// VoidKept voids the remembered changes of KeptMethod whose work is gone, by call and answer. It must be
// called within a Change that restores earlier files.
func (w *Workspace) VoidKept(gone func(call string, answer []byte) bool) error {
	all, err := w.s.mutations.kept()
	if err != nil {
		return err
	}
	for call, known := range all {
		if !gone(call, known.Answer) {
			continue
		}
		known.Void = true
		place := w.s.mutations.place(KeptMethod, call)
		if err := save(place, known); err != nil {
			return fmt.Errorf("void the answer of a clone: %w", err)
		}
		w.s.node.journal.answered(place) // a full disk may have left it only in the journal
	}
	return nil
}

// kept returns the answers of KeptMethod's changes that are made and not void, by call.
func (m *mutations) kept() (map[string]answer, error) {
	dir := m.path("mutations", KeptMethod)
	files, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	all := map[string]answer{}
	for _, f := range files {
		var known answer
		if readAnswer(m.place(KeptMethod, f.Name()), &known) == nil {
			all[f.Name()] = known
		}
	}
	for place, known := range m.node.journal.unanswered(dir) {
		all[filepath.Base(place)] = known
	}
	maps.DeleteFunc(all, func(_ string, a answer) bool { return !a.Done || a.Failure != nil || a.Unknown || a.Void })
	return all, nil
}

// Change is one file change, done at most once per call and method.
type Change struct {
	Method  string
	Request []byte // identifies equal requests
	// Do makes the change. Just before the change takes effect, Do calls intend with the data that
	// Upkeep.Recover needs. If Do fails, the change has not taken effect, or is safe to repeat.
	Do func(w *Workspace, intend func([]byte) error) ([]byte, error)
	// Failure encodes an error of Do that is the final answer of the change: a late repeat must not make a
	// change that has become possible. It returns nil for other errors.
	Failure func(error) []byte
	// Durable makes the answer be on disk before the caller gets it.
	Durable bool
	// SnapshotsOnly means that the change affects only snapshots: a seal does not refuse it.
	SnapshotsOnly bool
	// Adds means that the change only adds a snapshot.
	Adds bool
}

// FailedBeforeError means that a change failed before; Failure is that failure.
type FailedBeforeError struct{ Failure []byte }

func (*FailedBeforeError) Error() string { return "the change failed before" }

// Mutate makes a change, or returns its first answer. Changes of a session run one after the other.
func (n *Node) Mutate(c Call, ch Change) ([]byte, error) {
	s, leave, err := n.sessions.enter(c.Key)
	if err != nil {
		return nil, err
	}
	defer leave()
	if !callID.MatchString(c.ID) {
		return nil, fmt.Errorf("call id %q is not valid", c.ID)
	}
	s.mutations.mu.Lock()
	defer s.mutations.mu.Unlock()
	w, err := s.begin(c)
	if err != nil {
		return nil, err
	}
	return s.mutations.once(c, ch, w)
}

func (s *session) begin(c Call) (*Workspace, error) {
	s.workspace.mu.Lock()
	defer s.workspace.mu.Unlock()
	if err := s.workspace.admitCall(c); err != nil {
		return nil, err
	}
	if err := s.workspace.fence(c); err != nil {
		return nil, err
	}
	if e, _ := s.execs.find(c.ID); e != nil && e.cancelled() {
		return nil, ErrCancelled
	}
	return s.view(), nil
}

// once makes a change unless it was made before. mu is held.
func (m *mutations) once(c Call, ch Change, w *Workspace) ([]byte, error) {
	place, digest, j := m.place(ch.Method, c.ID), ch.digest(), m.node.journal
	known, err := m.recall(ch, place)
	if err != nil || known.Done {
		return known.Answer, err
	}
	if err := w.s.workspace.unsealed(); err != nil && !ch.SnapshotsOnly {
		return nil, err
	}
	if err := os.MkdirAll(filepath.Dir(place), 0o700); err != nil {
		return nil, err
	}
	e := startEntry{
		Key: m.key, CallID: c.ID, Digest: digest, Created: w.created,
		Change: &changeEntry{Method: ch.Method, User: c.User, Boot: m.node.boot, Round: known.Round},
	}
	durable := ch.Durable || known.Round > 0 // the answer that this one replaces ends earlier attempts
	intended := false
	intend := func(intent []byte, write func(startEntry, string) error) error {
		if !intended { // Do may have waited for commands to start
			e.Started = m.node.o.Now().UTC()
		}
		e.Change.Intent, intended = intent, true
		if err := write(e, place); err != nil {
			return err
		}
		m.node.at(c, ch.Method, "intended")
		return nil
	}
	if !ch.Adds {
		w.s.workspace.edited()
	}
	w.refer = func(intent []byte) error { return intend(intent, j.note) }
	got, err := ch.Do(w, func(intent []byte) error { return intend(intent, j.intend) })
	if err != nil {
		if intended {
			err = errors.Join(err, j.withdraw(e, place))
		}
		if failure := ch.failure(err); failure != nil {
			err = errors.Join(err, writer(durable)(place, answer{Digest: digest, Done: true, Failure: failure, Round: known.Round}))
		}
		return nil, err
	}
	m.node.at(c, ch.Method, "made")
	m.keep(place, answer{Digest: digest, Done: true, Answer: got, Round: known.Round}, durable)
	return got, nil
}

// Refer is the intend of a change that a crash of the machine may lose, unless something was begun on the node since.
// It must be called within a Change.
func (w *Workspace) Refer(intent []byte) error { return w.refer(intent) }

// keep stores a change's answer: in memory, if the disk is full.
func (m *mutations) keep(place string, a answer, durable bool) {
	if err := writer(durable)(place, a); err != nil {
		m.node.o.Log.Error("cannot record the answer of a change", "error", err)
		m.node.journal.leave(place, a)
		return
	}
	m.node.journal.answered(place)
}

// writer returns the function that writes an answer.
func writer(durable bool) func(string, any) error {
	if durable {
		return save
	}
	return note
}

// answerLate writes the answers that did not fit on the disk; until then the journal must hold each of
// them. A change that must be durable is handled like the others.
func (m *mutations) answerLate() error {
	if !m.mu.TryLock() { // a change is in progress: retry the next time
		return nil
	}
	defer m.mu.Unlock()
	for place, a := range m.node.journal.unanswered(m.dir) {
		if err := save(place, a); err != nil {
			return fmt.Errorf("record the answer of a change: %w", err) // the others do not fit either
		}
		m.node.journal.answered(place)
	}
	return nil
}

// recall returns the stored answer of a change, or for a change that is not made, its next round. It
// returns an error if the change failed or may have been made.
func (m *mutations) recall(ch Change, place string) (known answer, err error) {
	left, begun := m.node.journal.storedAnswer(place)
	switch {
	case left != nil:
		known = *left
		m.keep(place, known, ch.Durable || known.Round > 0)
	case begun: // it panicked
		return answer{}, ErrOutcomeUnknown
	default:
		err = readAnswer(place, &known)
	}
	switch {
	case errors.Is(err, os.ErrNotExist):
		return answer{}, nil
	case err != nil:
		return answer{}, err
	case !bytes.Equal(known.Digest, ch.digest()):
		return answer{}, ErrCallIDReused
	case known.Unknown, !known.Done:
		return answer{}, ErrOutcomeUnknown
	case known.Failure != nil:
		return answer{}, &FailedBeforeError{known.Failure}
	case known.Void:
		return answer{Round: known.Round + 1}, nil
	}
	return known, nil
}

// readAnswer reads an answer. A crash of the machine can leave the file empty if the answer says that
// nothing took effect. The journal had all other answers, which were written again. Any other content is
// damaged.
func readAnswer(place string, known *answer) error {
	err := read(place, known)
	damage := (*json.SyntaxError)(nil)
	if !errors.As(err, &damage) {
		return err
	}
	if st, bad := os.Stat(place); bad == nil && st.Size() == 0 {
		return os.ErrNotExist
	}
	return fmt.Errorf("%w: its record is damaged", ErrOutcomeUnknown)
}

// Answered returns the answer of a change if it was made for this call before.
func (n *Node) Answered(c Call, ch Change) (got []byte, done bool, err error) {
	s, leave, err := n.sessions.enter(c.Key)
	if err != nil {
		return nil, false, err
	}
	defer leave()
	if !callID.MatchString(c.ID) {
		return nil, false, fmt.Errorf("call id %q is not valid", c.ID)
	}
	s.mutations.mu.Lock()
	defer s.mutations.mu.Unlock()
	if _, err := s.begin(c); err != nil {
		return nil, false, err
	}
	known, err := s.mutations.recall(ch, s.mutations.place(ch.Method, c.ID))
	return known.Answer, known.Done, err
}

func (ch Change) digest() []byte {
	sum := sha256.Sum256(ch.Request)
	return sum[:]
}

func (ch Change) failure(err error) []byte {
	if ch.Failure == nil {
		return nil
	}
	return ch.Failure(err)
}

// prune drops expired answers.
func (m *mutations) prune(now time.Time) {
	methods, err := os.ReadDir(m.path("mutations"))
	if err != nil {
		return // the workspace does not exist or was never made
	}
	for _, method := range methods {
		answers, err := os.ReadDir(m.path("mutations", method.Name()))
		if err != nil || method.Name() == KeptMethod {
			continue
		}
		for _, a := range answers {
			if st, err := a.Info(); err == nil && now.Sub(st.ModTime()) > m.node.o.Keep.For {
				_ = os.Remove(m.path("mutations", method.Name(), a.Name()))
			}
		}
	}
}
