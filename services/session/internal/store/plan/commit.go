package plan

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/fairlead/fairlead/services/session/internal/store"
)

// ID is the key of an object within a session.
type ID struct {
	store.Key
	ID string
}

// CommandID is the key of a command.
type CommandID struct {
	store.Key
	ID int64
}

// Needs is what a commit must read from the database: the sessions to lock, in
// the order of their keys, and the turns and messages that the writes name.
type Needs struct {
	Sessions        []store.Key
	Turns, Messages []ID
	Budgets         BudgetNeeds
}

// Facts is the database's answer to Needs, under the sessions' locks.
type Facts struct {
	Now      time.Time
	Sessions map[store.Key]*Session // changed by ForCommit
	Turns    map[ID]struct{}        // the existing ones
	Messages map[ID]int64           // the depth of the existing ones
	Budgets  BudgetFacts
}

// Commit has the changes of a commit, over all its writes.
type Commit struct {
	Sessions []*Session // in the order of their keys
	Advanced []*Session // only their logs grow; none of Sessions; in the order of their keys
	Events   []Event
	Messages []Message
	Revised  []Message // replaces bodies; after Messages
	Turns    []Turn    // without duplicates
	Consume  []CommandID
	// Waited is deleted before Wait is inserted.
	Waited []ID
	Wait   []PendingCall
	// DropCheckpoints is deleted before Checkpoints is inserted.
	DropCheckpoints []ID
	Checkpoints     []Checkpoint
	Feedback        []Feedback
	Jobs            []store.Job
	Places          []Place
	Made            []Made
	Voids           []Void
	Wakes           []store.Wake
	// Budgets has the changes to the ledger.
	Budgets BudgetChange
}

// Empty reports whether the commit changes nothing.
func (c *Commit) Empty() bool { return len(c.Sessions)+len(c.Advanced) == 0 }

// PendingCall is the row of a waiting call.
type PendingCall struct {
	store.Key
	store.PendingCall
	Time time.Time // since when it waits
	Body []byte    // Shown, marshaled; nil without it
}

// CompareKeys orders keys in the order in which rows are locked.
func CompareKeys(a, b store.Key) int {
	return cmp.Or(cmp.Compare(a.Tenant, b.Tenant), cmp.Compare(a.Session, b.Session))
}

func compareIDs(a, b ID) int {
	return cmp.Or(CompareKeys(a.Key, b.Key), cmp.Compare(a.ID, b.ID))
}

// NeedsOf returns what must be read to plan these writes.
func NeedsOf(writes []store.Write) Needs {
	var n Needs
	for _, w := range writes {
		n.Sessions = append(n.Sessions, w.Key)
		for _, t := range w.Turns {
			n.Turns = append(n.Turns, ID{w.Key, t.ID})
		}
		if w.ActiveTurn != nil && *w.ActiveTurn != "" {
			n.Turns = append(n.Turns, ID{w.Key, *w.ActiveTurn})
		}
		if w.Head != nil && *w.Head != "" {
			n.Messages = append(n.Messages, ID{w.Key, *w.Head})
		}
		for _, m := range slices.Concat(w.Messages, w.Revised) {
			for _, name := range []string{m.GetName(), m.GetParent()} {
				if id, err := MessageID(w.Session, name); err == nil && id != "" {
					n.Messages = append(n.Messages, ID{w.Key, id})
				}
			}
		}
		n.Budgets.add(w)
	}
	slices.SortFunc(n.Sessions, CompareKeys)
	n.Sessions = slices.Compact(n.Sessions)
	// Several writes may settle the same reservation, such as those of a holder
	// that has lost its lease and of its successor. It is read once, so that it
	// counts once.
	slices.SortFunc(n.Budgets.Reservations, compareIDs)
	n.Budgets.Reservations = slices.Compact(n.Budgets.Reservations)
	return n
}

// planner collects the changes of the writes, in order.
type planner struct {
	facts   Facts
	out     Commit
	changed map[store.Key]bool // whether more than the log changes
	turns   map[ID]int         // index in out.Turns
	waiting map[ID]PendingCall
	waited  map[ID]struct{}
	awake   map[store.Key]struct{}
	ledger  *ledger
}

// ForCommit decides what the writes change. The error at an index belongs to
// that write, which then has no part in the plan.
func ForCommit(writes []store.Write, f Facts) (*Commit, []error) {
	p := &planner{
		facts: f, changed: map[store.Key]bool{}, turns: map[ID]int{},
		waiting: map[ID]PendingCall{}, waited: map[ID]struct{}{}, awake: map[store.Key]struct{}{},
		ledger: newLedger(f.Now, f.Budgets),
	}
	errs := make([]error, len(writes))
	for i, w := range writes {
		rows, err := p.check(w)
		if err != nil {
			errs[i] = fmt.Errorf("commit to session %s: %w", w.Session, err)
			continue
		}
		p.apply(w, rows)
	}
	p.finish()
	return &p.out, errs
}

// writeRows has the rows of a valid write.
type writeRows struct {
	events      []Event
	messages    []Message
	revised     []Message
	turns       []Turn
	waiting     []PendingCall
	checkpoints []Checkpoint
	feedback    []Feedback
}

func (p *planner) check(w store.Write) (*writeRows, error) {
	s := p.facts.Sessions[w.Key]
	if s == nil || !s.Lease.Held || s.Lease.Epoch != w.Epoch {
		return nil, store.ErrStaleEpoch
	}
	rows := &writeRows{}
	var err error
	if rows.events, err = p.checkEvents(w, s); err != nil {
		return nil, err
	}
	if rows.messages, err = p.checkMessages(w); err != nil {
		return nil, err
	}
	if rows.revised, err = p.checkRevised(w); err != nil {
		return nil, err
	}
	if rows.waiting, err = p.checkWaiting(w); err != nil {
		return nil, err
	}
	for _, c := range w.Checkpoints {
		stamp(&c.CreateTime, p.facts.Now)
		row, err := checkpointRow(w.Key, c)
		if err != nil {
			return nil, err
		}
		rows.checkpoints = append(rows.checkpoints, row)
	}
	if rows.feedback, err = feedbackRows(w); err != nil {
		return nil, err
	}
	for _, t := range w.Turns {
		row, err := turnRow(w.Key, t)
		if err != nil {
			return nil, err
		}
		rows.turns = append(rows.turns, row)
		if _, ok := p.facts.Turns[ID{w.Key, t.ID}]; !ok {
			return nil, fmt.Errorf("turn %q: %w", t.ID, store.ErrNotFound)
		}
	}
	if w.ActiveTurn != nil && *w.ActiveTurn != "" {
		if _, ok := p.facts.Turns[ID{w.Key, *w.ActiveTurn}]; !ok {
			return nil, fmt.Errorf("active turn %q: %w", *w.ActiveTurn, store.ErrNotFound)
		}
	}
	return rows, nil
}

func (p *planner) checkEvents(w store.Write, s *Session) ([]Event, error) {
	if len(w.Events) == 0 {
		return nil, nil
	}
	if w.LastSeq != s.LastSeq {
		return nil, fmt.Errorf("events follow number %d, but the log ends at %d", w.LastSeq, s.LastSeq)
	}
	last := s.LastSeq
	rows := make([]Event, 0, len(w.Events))
	for _, e := range w.Events {
		if e.GetFirstSeq() != last+1 || e.GetSeq() < e.GetFirstSeq() {
			return nil, fmt.Errorf("event %d..%d does not continue the log after %d", e.GetFirstSeq(), e.GetSeq(), last)
		}
		last = e.GetSeq()
		stamp(&e.Time, p.facts.Now)
		row, err := eventRow(w.Key, e)
		if err != nil {
			return nil, err
		}
		rows = append(rows, row)
	}
	return rows, nil
}

func (p *planner) checkMessages(w store.Write) ([]Message, error) {
	added := map[string]int64{}
	depth := func(id string) (int64, bool) {
		if d, ok := added[id]; ok {
			return d, true
		}
		d, ok := p.facts.Messages[ID{w.Key, id}]
		return d, ok
	}
	rows := make([]Message, 0, len(w.Messages))
	for _, m := range w.Messages {
		stamp(&m.CreateTime, p.facts.Now)
		row, err := messageRow(w.Key, m)
		if err != nil {
			return nil, err
		}
		if _, ok := depth(row.ID); ok {
			return nil, fmt.Errorf("message %q: %w", row.ID, store.ErrExists)
		}
		above, ok := depth(row.Parent)
		if !ok && row.Parent != "" {
			return nil, fmt.Errorf("parent %q of message %q: %w", row.Parent, row.ID, store.ErrNotFound)
		}
		row.Depth = above + 1
		added[row.ID] = row.Depth
		rows = append(rows, row)
	}
	if w.Head != nil && *w.Head != "" {
		if _, ok := depth(*w.Head); !ok {
			return nil, fmt.Errorf("head %q: %w", *w.Head, store.ErrNotFound)
		}
	}
	return rows, nil
}

// checkWaiting returns the rows of calls that begin to wait.
func (p *planner) checkWaiting(w store.Write) ([]PendingCall, error) {
	var rows []PendingCall
	for _, c := range w.Wait {
		if c.CallID == "" || !answers(c.Answer) {
			return nil, errors.New("a waiting call has no id, or no kind of answer that it waits for")
		}
		row := PendingCall{Key: w.Key, PendingCall: c, Time: p.facts.Now}
		if c.Shown != nil {
			var err error
			if row.Body, err = proto.Marshal(c.Shown); err != nil {
				return nil, fmt.Errorf("marshal what call %s waits for: %w", c.CallID, err)
			}
		}
		rows = append(rows, row)
	}
	return rows, nil
}

// checkRevised refuses a message that is not in the tree.
func (p *planner) checkRevised(w store.Write) ([]Message, error) {
	var rows []Message
	for _, m := range w.Revised {
		row, err := messageRow(w.Key, m)
		if err != nil {
			return nil, err
		}
		if _, ok := p.facts.Messages[ID{w.Key, row.ID}]; !ok {
			return nil, fmt.Errorf("message %q: %w", row.ID, store.ErrNotFound)
		}
		rows = append(rows, row)
	}
	return rows, nil
}

func (p *planner) apply(w store.Write, rows *writeRows) {
	s := p.facts.Sessions[w.Key]
	p.changed[w.Key] = p.changed[w.Key] || !w.OnlyEvents()
	s.UpdateTime = p.facts.Now
	if n := len(rows.events); n > 0 {
		s.LastSeq = rows.events[n-1].Seq
		p.out.Events = append(p.out.Events, rows.events...)
		p.awake[w.Key] = struct{}{}
	}
	for _, m := range rows.messages {
		p.facts.Messages[ID{w.Key, m.ID}] = m.Depth
	}
	p.out.Messages = append(p.out.Messages, rows.messages...)
	p.out.Revised = append(p.out.Revised, rows.revised...)
	for _, t := range rows.turns {
		id := ID{w.Key, t.ID}
		if i, ok := p.turns[id]; ok {
			p.out.Turns[i] = t
			continue
		}
		p.turns[id] = len(p.out.Turns)
		p.out.Turns = append(p.out.Turns, t)
	}
	for _, t := range w.Turns {
		if Ended(t.Turn.GetState()) {
			p.out.Jobs = append(p.out.Jobs, jobRow(w.Key, TendJob(w.Key, t.ID), p.facts.Now))
		}
	}
	p.checkpoints(w, rows)
	p.out.Feedback = append(p.out.Feedback, rows.feedback...)
	for _, j := range w.Jobs {
		p.out.Jobs = append(p.out.Jobs, jobRow(w.Key, j, p.facts.Now))
	}
	if w.Place != nil {
		p.place(Place{w.Key, *w.Place})
	}
	if w.Made > 0 {
		p.out.Made = append(p.out.Made, Made{w.Key, w.Made})
	}
	if w.VoidExports > 0 {
		p.out.Voids = append(p.out.Voids, Void{w.Key, w.VoidExports})
	}
	applyHeader(s, w)
	for _, id := range w.Consume {
		p.out.Consume = append(p.out.Consume, CommandID{w.Key, id})
	}
	for _, call := range w.Waited {
		delete(p.waiting, ID{w.Key, call})
		p.waited[ID{w.Key, call}] = struct{}{}
	}
	for _, c := range rows.waiting {
		p.waiting[ID{w.Key, c.CallID}] = c
	}
	p.ledger.apply(w)
}

// applyHeader changes the columns of the session itself.
func applyHeader(s *Session, w store.Write) {
	if w.Head != nil {
		s.Head = *w.Head
	}
	if w.ActiveTurn != nil && *w.ActiveTurn != s.ActiveTurn {
		s.ActiveTurn, s.Lease.Claims = *w.ActiveTurn, 0
	}
	if w.StepCommitted {
		s.Lease.Claims = 0
	}
	s.Usage.Add(w.AddUsage)
	s.FinishedTurns += int32(w.FinishedTurns)
}

func (p *planner) finish() {
	for k, more := range p.changed {
		s := p.facts.Sessions[k]
		if more {
			p.out.Sessions = append(p.out.Sessions, s)
		} else {
			p.out.Advanced = append(p.out.Advanced, s)
		}
	}
	byKey := func(a, b *Session) int { return CompareKeys(a.Key, b.Key) }
	slices.SortFunc(p.out.Sessions, byKey)
	slices.SortFunc(p.out.Advanced, byKey)
	for id := range p.waited {
		p.out.Waited = append(p.out.Waited, id)
	}
	p.out.Wait = slices.AppendSeq(p.out.Wait, maps.Values(p.waiting))
	for k := range p.awake {
		p.out.Wakes = append(p.out.Wakes, store.Wake{Key: k, Kind: store.WakeEvents})
	}
	p.out.Budgets = p.ledger.change()
}
