// Package modelview makes the model's view of a conversation. The conversation
// itself is kept whole; a message with a compaction replaces what came before
// it. The package is pure: the same path gives the same view on every replica.
package modelview

import (
	"encoding/json"
	"fmt"
	"slices"
	"unicode/utf8"

	"google.golang.org/protobuf/proto"

	commonv1 "github.com/fairlead/fairlead/gen/go/fairlead/common/v1"
	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
)

// Of returns a model's view of a conversation, oldest message first: from its last
// compaction on the summary, the kept messages before it, and the messages after
// it, with notes in place of content that it has refused or no provider accepts. The
// model is `provider:model`. Unchanged messages are those of path.
func Of(path []*sessionv1.Message, model string) []*sessionv1.Message {
	return sendable(compacted(path), model)
}

func compacted(path []*sessionv1.Message) []*sessionv1.Message {
	for at := len(path) - 1; at >= 0; at-- {
		if c := path[at].Compaction; c != nil {
			return slices.Concat(path[at:at+1], apply(kept(path[:at], c), c), path[at+1:])
		}
	}
	return path
}

// kept returns the messages before a summary that are still in the view. Older
// summaries are not: the new one replaces them, too.
func kept(before []*sessionv1.Message, c *sessionv1.Compaction) []*sessionv1.Message {
	if c.KeptFrom == "" {
		return nil
	}
	var all []*sessionv1.Message
	found := false
	for _, m := range before {
		found = found || m.Name == c.KeptFrom
		if found && m.Compaction == nil {
			all = append(all, m)
		}
	}
	return all
}

// apply shortens kept messages according to a compaction.
func apply(ms []*sessionv1.Message, c *sessionv1.Compaction) []*sessionv1.Message {
	until := slices.IndexFunc(ms, func(m *sessionv1.Message) bool { return m.Name == c.ResultsUntil })
	if until < 0 && c.MaxBlockBytes == 0 {
		return ms
	}
	out := make([]*sessionv1.Message, len(ms))
	for i, m := range ms {
		out[i] = shorten(m, i <= until, int(c.MaxBlockBytes))
	}
	return out
}

// shorten returns m without its tool results, if stub is set, and with its
// blocks cut to most bytes (0: not cut). It does not change thinking, which is
// signed.
func shorten(m *sessionv1.Message, stub bool, most int) *sessionv1.Message {
	m = proto.CloneOf(m)
	for _, b := range m.Blocks {
		switch k := b.Kind.(type) {
		case *sessionv1.Block_Content:
			cutContent(k.Content, most)
		case *sessionv1.Block_ToolUse:
			if most > 0 && len(k.ToolUse.ArgumentsJson) > most {
				k.ToolUse.ArgumentsJson = cutArguments(k.ToolUse.ArgumentsJson, most)
			}
		case *sessionv1.Block_ToolResult:
			if n := resultBytes(k.ToolResult); stub && n > len(stubText(n)) {
				k.ToolResult.Content = []*commonv1.Content{text(stubText(n))}
			}
			for _, c := range k.ToolResult.Content {
				cutContent(c, most)
			}
		}
	}
	return m
}

func stubText(n int) string {
	return fmt.Sprintf("[This result of %d bytes was taken out to save space. Make the call again if you need it.]", n)
}

func resultBytes(r *sessionv1.ToolResult) (n int) {
	for _, c := range r.Content {
		n += len(c.GetText().GetText()) + len(c.GetImage().GetData()) + len(c.GetDocument().GetData()) +
			len(c.GetResource().GetText()) + len(c.GetResource().GetData())
	}
	return n
}

func cutContent(c *commonv1.Content, most int) {
	if most == 0 {
		return
	}
	switch k := c.Kind.(type) {
	case *commonv1.Content_Text:
		k.Text.Text = cutMiddle(k.Text.Text, most)
	case *commonv1.Content_Image:
		if len(k.Image.Data) > most {
			c.Kind = text("[An image was taken out to save space.]").Kind
		}
	case *commonv1.Content_Document:
		if len(k.Document.Data) > most {
			c.Kind = text("[A document was taken out to save space.]").Kind
		}
	case *commonv1.Content_Resource:
		k.Resource.Text = cutMiddle(k.Resource.Text, most)
		if len(k.Resource.Data) > most {
			c.Kind = text("[The resource " + k.Resource.Uri + " was taken out to save space.]").Kind
		}
	}
}

// cutMiddle keeps the beginning and the end of s, in about most bytes, and
// notes how much is missing between them and who has it.
func cutMiddle(s string, most int) string {
	if len(s) <= most {
		return s
	}
	mark := fmt.Sprintf("\n[… about %d of %d bytes left out here, because the model's context is full; the session's log has all of it …]\n", len(s)-most, len(s))
	if len(mark) > most/2 {
		mark = fmt.Sprintf("[… %d bytes left out …]", len(s)-most)
	}
	half := max(0, (most-len(mark))/2)
	head, tail := half, len(s)-half
	for head > 0 && !utf8.RuneStart(s[head]) {
		head--
	}
	for tail < len(s) && !utf8.RuneStart(s[tail]) {
		tail++
	}
	return s[:head] + mark + s[tail:]
}

// cutArguments cuts arguments so that they are still a JSON object.
func cutArguments(args string, most int) string {
	b, err := json.Marshal(map[string]string{"_shortened": cutMiddle(args, most/2)})
	if err != nil {
		panic(err) // strings always marshal
	}
	return string(b)
}

func text(s string) *commonv1.Content {
	return &commonv1.Content{Kind: &commonv1.Content_Text{Text: &commonv1.Text{Text: s}}}
}
