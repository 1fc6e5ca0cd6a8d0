package transcript

import (
	"strings"

	"buf.build/go/protovalidate"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
)

// checker checks a file line by line.
type checker struct {
	session *sessionv1.Session
	stage   int // of the last line: lines come in the order of stages
	turns   map[string]struct{}
	nodes   map[string]*node
	later   []pending // names of messages and turns that may come later
	events  int64
	lastSeq int64
}

// Stages of a file.
const (
	atHeader = iota + 1
	atSession
	atTurns
	atMessages
	atEvents
)

// node is the kept part of a message.
type node struct {
	line          int
	parent        string
	depth         int64 // 0: not known yet
	summary       bool
	uses, results []string // call ids
	// open are the calls that the next message answers: those of the message or, behind summaries, of the one before them.
	// They are known with the depth.
	open []string
}

type pending struct {
	line int
	ref  ref
}

func newChecker() *checker {
	return &checker{turns: map[string]struct{}{}, nodes: map[string]*node{}}
}

// line checks the n-th line.
func (c *checker) line(n int, raw []byte) error {
	if n == 1 {
		return c.header(raw)
	}
	r, err := parse(n, raw)
	if err != nil {
		return err
	}
	if err := c.order(n, r); err != nil {
		return err
	}
	switch {
	case r.session != nil:
		err = c.checkSession(n, r.session)
	case r.turn != nil:
		err = c.checkTurn(n, r.turn)
	case r.message != nil:
		err = c.checkMessage(n, r.message)
	default:
		err = c.checkEvent(n, r.event)
	}
	if err != nil {
		return err
	}
	return c.names(n, r)
}

func (c *checker) header(raw []byte) error {
	var e envelope
	if err := strict(raw, &e); err != nil || e.Type != typeHeader {
		return wrong(1, "it is not the beginning of an export, which is {\"type\":%q,\"version\":%d}", typeHeader, version)
	}
	if e.Version != version {
		return wrong(1, "the export has version %d, and this server reads version %d; use a server as new as the one that made it", e.Version, version)
	}
	c.stage = atHeader
	return nil
}

// order refuses lines out of the format's order.
func (c *checker) order(n int, r record) error {
	stage := atEvents
	switch {
	case r.session != nil:
		stage = atSession
	case r.turn != nil:
		stage = atTurns
	case r.message != nil:
		stage = atMessages
	}
	if stage == atSession && c.stage != atHeader || stage != atSession && c.session == nil || stage < c.stage {
		return wrong(n, "it comes out of order: the session, turns, messages and then events")
	}
	c.stage = stage
	return nil
}

func (c *checker) checkSession(n int, s *sessionv1.Session) error {
	switch err := protovalidate.Validate(s); {
	case err != nil:
		return wrong(n, "the session is not valid: %s", excerpt(err.Error()))
	case !sessionName.MatchString(s.Name):
		return wrong(n, "%q is not the name of a session", excerpt(s.Name))
	case s.ActiveTurn != "":
		return wrong(n, "the session has an active turn")
	case negative(s.Usage) || s.FinishedTurns < 0:
		return wrong(n, "the session has negative usage")
	}
	c.session = s
	return nil
}

func negative(u *sessionv1.Usage) bool {
	return min(u.GetInputTokens(), u.GetOutputTokens(), u.GetCacheReadTokens(), u.GetCacheWriteTokens(), u.GetThinkingTokens(), u.GetCostNanoUsd()) < 0
}

func (c *checker) checkTurn(n int, t *sessionv1.Turn) error {
	switch t.State {
	case sessionv1.TurnState_TURN_STATE_COMPLETE, sessionv1.TurnState_TURN_STATE_PARTIAL,
		sessionv1.TurnState_TURN_STATE_FAILED, sessionv1.TurnState_TURN_STATE_INTERRUPTED:
	default:
		return wrong(n, "the turn has not ended")
	}
	switch err := protovalidate.Validate(t); {
	case err != nil:
		return wrong(n, "the turn is not valid: %s", excerpt(err.Error()))
	case t.CreateTime == nil || t.EndTime == nil:
		return wrong(n, "the turn has no start or end time")
	case negative(t.Usage) || t.Steps < 0:
		return wrong(n, "the turn has negative usage")
	case t.AfterSeq < 0 || t.AfterSeq > c.session.LastSeq:
		return wrong(n, "the turn came after event %d, which does not exist", t.AfterSeq)
	case len(c.turns) >= maxNames:
		return wrong(n, "there are more than %d turns", maxNames)
	}
	id, ok := ref{&t.Name, turns}.id(c.session.Name)
	if _, there := c.turns[id]; !ok || there {
		return wrong(n, "%q is not the name of a turn of %s, or is a duplicate", excerpt(t.Name), c.session.Name)
	}
	c.turns[id] = struct{}{}
	return nil
}

func (c *checker) checkMessage(n int, m *sessionv1.Message) error {
	switch {
	case m.Role != sessionv1.Role_ROLE_USER && m.Role != sessionv1.Role_ROLE_ASSISTANT:
		return wrong(n, "the message has no role")
	case m.CreateTime == nil:
		return wrong(n, "the message has no creation time")
	case m.Step < 0 || min(m.Compaction.GetTokensBefore(), m.Compaction.GetTokensAfter(), m.Compaction.GetMaxBlockBytes()) < 0:
		return wrong(n, "a number of the message is negative")
	case len(c.nodes) >= maxNames:
		return wrong(n, "there are more than %d messages", maxNames)
	}
	id, ok := ref{&m.Name, messages}.id(c.session.Name)
	if _, there := c.nodes[id]; !ok || there {
		return wrong(n, "%q is not the name of a message of %s, or is a duplicate", excerpt(m.Name), c.session.Name)
	}
	node := &node{line: n, summary: m.Compaction != nil}
	if m.Parent != "" {
		if node.parent, ok = (ref{&m.Parent, messages}).id(c.session.Name); !ok {
			return wrong(n, "%q is not the name of a message of %s", excerpt(m.Parent), c.session.Name)
		}
	}
	seen := map[string]bool{}
	for i, b := range m.Blocks {
		if err := node.block(m.Role, b, seen); err != "" {
			return wrong(n, "block %d of the message %s", i, err)
		}
	}
	c.nodes[id] = node
	return nil
}

// block records the calls of a block, and returns its fault. It notes the ids of the message's calls in seen.
func (d *node) block(role sessionv1.Role, b *sessionv1.Block, seen map[string]bool) string {
	const longest = 256 // of call ids and names of tools
	switch k := b.Kind.(type) {
	case *sessionv1.Block_Content:
		if k.Content.GetKind() == nil {
			return "is empty"
		}
	case *sessionv1.Block_Thinking:
	case *sessionv1.Block_ToolUse:
		id := k.ToolUse.GetCallId()
		if role != sessionv1.Role_ROLE_ASSISTANT || id == "" || max(len(id), len(k.ToolUse.Tool)) > longest || seen[id] {
			return "is not a call that a model can make"
		}
		seen[id] = true
		d.uses = append(d.uses, id)
	case *sessionv1.Block_ToolResult:
		id := k.ToolResult.GetCallId()
		if role != sessionv1.Role_ROLE_USER || id == "" || len(id) > longest || seen[id] {
			return "is not the result of a call"
		}
		seen[id] = true
		for _, content := range k.ToolResult.Content {
			if content.GetKind() == nil {
				return "is a result with empty content"
			}
		}
		d.results = append(d.results, id)
	default:
		return "has no content"
	}
	return ""
}

func (c *checker) checkEvent(n int, e *sessionv1.Event) error {
	switch {
	case e.Body == nil:
		return wrong(n, "the event has no payload")
	case e.Time == nil:
		return wrong(n, "the event has no time")
	case e.FirstSeq != c.lastSeq+1 || e.Seq < e.FirstSeq || e.Seq > maxSeq:
		return wrong(n, "the event covers %d to %d, and the previous event ends at %d", e.FirstSeq, e.Seq, c.lastSeq)
	case (e.GetSessionCreated() != nil) != (e.FirstSeq == 1):
		return wrong(n, "session.created must be the first event of the log, and only the first")
	}
	if s := e.GetStepRestarted(); s != nil && (s.VoidFirstSeq < 0 || s.VoidLastSeq >= e.Seq) {
		return wrong(n, "the event voids events that do not precede it")
	}
	if s := e.GetSessionRewound(); s != nil && (s.VoidFirstSeq < 0 || s.VoidLastSeq >= e.Seq) {
		return wrong(n, "the event voids events that do not precede it")
	}
	c.events, c.lastSeq = c.events+1, e.Seq
	return nil
}

// names checks the names in a line. Their targets have come before, or come
// later.
func (c *checker) names(n int, r record) error {
	for _, name := range r.refs() {
		if name.empty() {
			continue
		}
		if _, ok := name.id(c.session.Name); !ok {
			return wrong(n, "%q is not one of the %s of %s", excerpt(*name.name), name.collection, c.session.Name)
		}
		if r.event != nil || r.message != nil && name.collection == turns {
			if err := c.exists(n, name); err != nil {
				return err
			}
			continue
		}
		kept := strings.Clone(*name.name) // a pointer into the object would keep all of it
		c.later = append(c.later, pending{n, ref{&kept, name.collection}})
	}
	return nil
}

func (c *checker) exists(n int, name ref) error {
	id, _ := name.id(c.session.Name)
	ok := true
	switch name.collection {
	case turns:
		_, ok = c.turns[id]
	case messages:
		_, ok = c.nodes[id]
	}
	if !ok {
		return wrong(n, "%s is not in the file", *name.name)
	}
	return nil
}
