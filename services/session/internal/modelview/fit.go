package modelview

import (
	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
)

const (
	firstBlockBytes = 64 << 10 // the first limit of blocks
	leastBlockBytes = 64       // the last limit
)

// Split divides a conversation's view for a summary. older is the part that the
// summary replaces, as the model sees it. keep is the part that stays beside it,
// unchanged: as many of the last messages as fit into the given tokens, and at
// least the last unit. A unit is a message, or an assistant's message with calls
// together with their results.
func Split(path []*sessionv1.Message, model string, tokens int64) (older, keep []*sessionv1.Message) {
	view := Of(path, model)
	at, size := len(view), int64(0)
	for i := len(view) - 1; i >= 0 && view[i].Compaction == nil; i-- {
		size += Tokens(view[i : i+1])
		if !begins(view, i) {
			continue
		}
		if at < len(view) && size > tokens {
			break
		}
		at = i
	}
	whole := map[string]*sessionv1.Message{}
	for _, m := range path {
		whole[m.Name] = m
	}
	for _, m := range view[at:] {
		keep = append(keep, whole[m.Name])
	}
	return view[:at], keep
}

// begins reports whether a unit begins at i: results belong to the calls before
// them.
func begins(ms []*sessionv1.Message, i int) bool {
	for _, b := range ms[i].Blocks {
		if b.GetToolResult() != nil {
			return i == 0
		}
	}
	return true
}

// Fit decides how to shorten messages to about target tokens without a summary:
// it removes the results of old calls, then drops the oldest units, then cuts
// long blocks in the middle. If even that is too much, it returns the strongest
// compaction: the last unit, with its blocks cut short.
func Fit(ms []*sessionv1.Message, target int64) *sessionv1.Compaction {
	c := &sessionv1.Compaction{}
	if len(ms) == 0 {
		return c
	}
	last := len(ms) - 1
	for !begins(ms, last) {
		last--
	}
	sizes, total := make([]int64, len(ms)), int64(0)
	for i := range ms {
		sizes[i] = Tokens(ms[i : i+1])
		total += sizes[i]
	}
	stubs := 0 // messages without their results
	for ; stubs < last && total > target; stubs++ {
		less := Tokens([]*sessionv1.Message{shorten(ms[stubs], true, 0)})
		total -= sizes[stubs] - less
		sizes[stubs] = less
	}
	from := 0
	for from < last && total > target {
		for total, from = total-sizes[from], from+1; !begins(ms, from); from++ {
			total -= sizes[from]
		}
	}
	c.KeptFrom = ms[from].Name
	if stubs > from {
		c.ResultsUntil = ms[stubs-1].Name
	}
	for most := int64(firstBlockBytes); most >= leastBlockBytes && Tokens(apply(ms[from:], c)) > target; most /= 2 {
		c.MaxBlockBytes = most
	}
	return c
}
