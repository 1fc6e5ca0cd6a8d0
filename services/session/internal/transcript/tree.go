package transcript

import (
	"maps"
	"slices"
)

// finish checks what can be checked only at the end.
func (c *checker) finish(last end) error {
	switch {
	case c.session == nil:
		return wrong(0, "there is no session in the file")
	case last.Turns != int64(len(c.turns)) || last.Messages != int64(len(c.nodes)) || last.Events != c.events:
		return wrong(0, "the counts in the last line do not match the file")
	case c.lastSeq == 0 || c.lastSeq != c.session.LastSeq:
		return wrong(0, "the log ends at %d, and the session says %d", c.lastSeq, c.session.LastSeq)
	case int(c.session.FinishedTurns) > len(c.turns):
		return wrong(0, "the session says that %d turns have ended, and has %d", c.session.FinishedTurns, len(c.turns))
	}
	for _, p := range c.later {
		if err := c.exists(p.line, p.ref); err != nil {
			return err
		}
	}
	return c.tree()
}

// tree checks that the messages form trees, and that every call is answered in
// the next message, which answers nothing else. Summaries may come in between:
// the view may be shortened while a turn waits for a call.
func (c *checker) tree() error {
	for _, id := range slices.Sorted(maps.Keys(c.nodes)) {
		n := c.nodes[id]
		if err := c.climb(id); err != nil {
			return err
		}
		if asked := c.openCalls(n.parent); !same(asked, n.results) && (!n.summary || len(n.results) > 0) {
			return wrong(n.line, "the message does not answer exactly the calls of the previous message")
		}
	}
	if head, ok := (ref{&c.session.Head, messages}).id(c.session.Name); ok && len(c.openCalls(head)) > 0 {
		return wrong(c.nodes[head].line, "the conversation ends with unanswered calls")
	}
	return nil
}

// openCalls returns the open calls of a message whose path climb has checked.
func (c *checker) openCalls(id string) []string {
	if n := c.nodes[id]; n != nil {
		return n.open
	}
	return nil
}

// climb sets the depth and the open calls of a message, and of its ancestors.
func (c *checker) climb(id string) error {
	var path []*node
	seen := map[string]struct{}{}
	depth := int64(0)
	for id != "" {
		n := c.nodes[id] // exists: names were checked
		if n.depth > 0 {
			depth = n.depth
			break
		}
		if _, again := seen[id]; again {
			return wrong(n.line, "the message is its own ancestor")
		}
		seen[id] = struct{}{}
		path = append(path, n)
		id = n.parent
	}
	for _, n := range slices.Backward(path) {
		depth++
		n.depth, n.open = depth, n.uses
		if n.summary {
			n.open = c.openCalls(n.parent)
		}
	}
	return nil
}

func same(a, b []string) bool {
	if len(a) != len(b) {
		return false // without a look at the calls, which many summaries may share
	}
	a, b = slices.Sorted(slices.Values(a)), slices.Sorted(slices.Values(b))
	return slices.Equal(a, b)
}

// depths returns the depth of every message, by id.
func (c *checker) depths() map[string]int64 {
	all := make(map[string]int64, len(c.nodes))
	for id, n := range c.nodes {
		all[id] = n.depth
	}
	return all
}
