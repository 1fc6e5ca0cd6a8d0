package box

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// A change of files is journaled, on disk, before it is made. After a crash the journal tells which changes
// were in progress, and which files show whether each took effect. mutations.recover checks that before any
// other use of the workspace. Until then only processes that ran when the service died, or data lost with
// the machine, can have changed it. A change whose fate is unknown is answered as unknown and not repeated.

// Fate is what became of a change that a crash interrupted.
type Fate int

// Fates.
const (
	Unknown Fate = iota // may have taken effect
	Undone              // did not take effect and may be made
	Done
)

// Interrupted is a change that a crash interrupted.
type Interrupted struct {
	Call
	Method string
	Intent []byte
	// SameBoot means that the machine did not crash, so all completed writes are there.
	SameBoot bool
	// Last means that nothing was begun in the workspace after it.
	Last bool
}

// changeEntry is the journal's entry of a change of files.
type changeEntry struct {
	Method string `json:"method"`
	User   string `json:"user,omitempty"`
	Boot   string `json:"boot,omitempty"`
	Intent []byte `json:"intent,omitempty"`
	// Round is the round of its answer.
	Round int `json:"round,omitempty"`
	// Withdrawn means that nothing of it took effect.
	Withdrawn bool `json:"withdrawn,omitempty"`
	Last      bool `json:"last,omitempty"` // determined when it is recalled
}

// intent is a change that is in progress, or that has no answer on disk yet.
type intent struct {
	packet []byte
	answer *answer // nil while the change is in progress
}

// intend journals a change whose answer will be at a place. The entry is on disk when intend returns.
func (j *journal) intend(e startEntry, place string) error {
	packet, err := e.encode()
	if err != nil {
		return err
	}
	return j.begin(packet, func() { j.intents[place] = &intent{packet: packet} })()
}

// note is intend without a sync: the next entry that is synced takes it along.
func (j *journal) note(e startEntry, place string) error {
	packet, err := e.encode()
	if err != nil {
		return err
	}
	_, _, err = j.write(packet, func() { j.intents[place] = &intent{packet: packet} })
	return err
}

// withdraw records that nothing of a change took effect, nor will.
func (j *journal) withdraw(e startEntry, place string) error {
	e.Change = &changeEntry{Method: e.Change.Method, Withdrawn: true}
	packet, err := e.encode()
	if err != nil {
		return err
	}
	return j.begin(packet, func() { delete(j.intents, place) })() // no later start might bring it to the disk
}

// answered records that the answer of a change is in its place.
func (j *journal) answered(place string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	delete(j.intents, place)
}

// leave stores the answer of a change that does not fit on the disk.
func (j *journal) leave(place string, a answer) {
	j.mu.Lock()
	defer j.mu.Unlock()
	i := j.intents[place]
	if i == nil {
		i = &intent{}
		j.intents[place] = i
	}
	i.answer = &a
}

// storedAnswer returns the answer that leave stored; begun reports whether the change is still open.
func (j *journal) storedAnswer(place string) (a *answer, begun bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if i := j.intents[place]; i != nil {
		return i.answer, true
	}
	return nil, false
}

// unanswered returns the answers of a workspace's changes that did not fit on the disk, by their places.
func (j *journal) unanswered(dir string) map[string]answer {
	j.mu.Lock()
	defer j.mu.Unlock()
	all := map[string]answer{}
	for place, i := range j.intents {
		if i.answer != nil && strings.HasPrefix(place, dir+"/") {
			all[place] = *i.answer
		}
	}
	return all
}

// forget drops the stored changes of a workspace.
func (j *journal) forget(dir string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	maps.DeleteFunc(j.intents, func(place string, _ *intent) bool { return strings.HasPrefix(place, dir+"/") })
}

// carry copies the open changes into the new file. mu is held.
func (j *journal) carry() error {
	for _, i := range j.intents {
		if i.packet == nil {
			continue
		}
		if !j.fits(i.packet) {
			return errors.New("too many changes of files have no answer on the disk: it may be full")
		}
		if err := j.put(i.packet); err != nil {
			return err
		}
	}
	return nil
}

// attempt identifies one try of a change.
type attempt struct {
	key          Key
	method, call string
	started      int64
}

func (e startEntry) attempt() attempt {
	return attempt{e.Key, e.Change.Method, e.CallID, e.Started.UnixNano()}
}

// interruptedFile lists a session's changes that a crash interrupted, until they are checked.
const interruptedFile = "interrupted"

// recallChanges tells the sessions about their changes without an answer.
func (n *Node) recallChanges(all []startEntry) error {
	over := map[attempt]bool{} // or met before
	for _, e := range all {
		if e.Change != nil && e.Change.Withdrawn {
			over[e.attempt()] = true
		}
	}
	last := map[Key]time.Time{}
	for _, e := range all {
		if e.End == nil && (e.Change == nil || !over[e.attempt()]) && e.Started.After(last[e.Key]) {
			last[e.Key] = e.Started
		}
	}
	open := map[Key][]startEntry{}
	for _, e := range all {
		if e.Change == nil || over[e.attempt()] {
			continue
		}
		over[e.attempt()] = true
		if newSession(n, e.Key).mutations.lacksAnswer(e) {
			e.Change.Last = !e.Started.Before(last[e.Key])
			open[e.Key] = append(open[e.Key], e)
		}
	}
	for k, changes := range open {
		slices.SortFunc(changes, func(a, b startEntry) int { return a.Started.Compare(b.Started) })
		file := newSession(n, k).path(interruptedFile)
		var before []startEntry // the session has not been used since an earlier crash
		if err := read(file, &before); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
		if err := save(file, append(before, changes...)); err != nil {
			return err
		}
	}
	return nil
}

// lacksAnswer reports whether a change of this same workspace has no answer on disk.
func (m *mutations) lacksAnswer(e startEntry) bool {
	var workspace meta
	valid := e.Key.check() == nil && callID.MatchString(e.CallID)
	if !valid || read(m.path(metaFile), &workspace) != nil || !workspace.Created.Equal(e.Created) {
		return false
	}
	var known answer
	return read(m.place(e.Change.Method, e.CallID), &known) != nil || !known.ends(e.Change.Round)
}

func (m *mutations) place(method, call string) string { return m.path("mutations", method, call) }

// recover determines the fate of the changes that a crash interrupted, before any other change. After that
// the staging folder is no longer needed for it. w is the workspace.
func (m *mutations) recover(w *Workspace) error {
	var open []startEntry
	switch err := read(m.path(interruptedFile), &open); {
	case errors.Is(err, os.ErrNotExist):
		return nil
	case err != nil:
		return err
	}
	for _, e := range open {
		if err := m.recoverOne(e, w); err != nil {
			return fmt.Errorf("find the outcome of a change: %w", err)
		}
	}
	return os.Remove(m.path(interruptedFile))
}

func (m *mutations) recoverOne(e startEntry, w *Workspace) error {
	place := m.place(e.Change.Method, e.CallID)
	if !m.lacksAnswer(e) {
		return nil
	}
	i := Interrupted{
		Call: Call{Key: m.key, ID: e.CallID, User: e.Change.User}, Method: e.Change.Method, Intent: e.Change.Intent,
		SameBoot: e.Change.Boot != "" && e.Change.Boot == m.node.boot, Last: e.Change.Last,
	}
	a, fate := answer{Digest: e.Digest, Done: true, Round: e.Change.Round}, Unknown
	if m.node.o.Upkeep.Recover != nil {
		a.Answer, fate = m.node.o.Upkeep.Recover(w, i)
	}
	if fate == Undone && e.Change.Round > 0 {
		return nil // the earlier answer stays, void as it is
	}
	if fate == Undone {
		if err := os.Remove(place); err != nil && !errors.Is(err, os.ErrNotExist) { // torn by a crash of the machine
			return err
		}
		return nil
	}
	if fate == Unknown {
		a.Answer, a.Unknown = nil, true
		m.node.o.Log.Warn("a crash interrupted a change of files, and it is unknown whether it took effect",
			"session", m.key.Session, "call_id", e.CallID, "method", e.Change.Method)
	}
	if err := os.MkdirAll(filepath.Dir(place), 0o700); err != nil {
		return err
	}
	return save(place, a)
}
