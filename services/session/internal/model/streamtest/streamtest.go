// Package streamtest checks the promises of every model about its streams.
package streamtest

import (
	"context"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	commonv1 "github.com/fairlead/fairlead/gen/go/fairlead/common/v1"
	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"

	"github.com/fairlead/fairlead/services/session/internal/model"
)

// Play streams one request. It reports pieces that interleave or do not add up
// to the answer, and returns the streamed text, also with an error.
func Play(ctx context.Context, t testing.TB, m model.Model, r model.Request) (*model.Response, string, error) {
	t.Helper()
	var text strings.Builder
	var got []*strings.Builder
	var starts []model.Delta
	open := -1
	resp, err := m.Stream(ctx, r, func(d model.Delta) error {
		switch d.Kind {
		case model.TextStart, model.ThinkingStart, model.ToolUseStart:
			if open != -1 || d.Block != len(got) {
				t.Errorf("block %d starts while %d is open, after %d blocks", d.Block, open, len(got))
			}
			open = d.Block
			got, starts = append(got, &strings.Builder{}), append(starts, d)
		case model.TextEnd, model.ThinkingEnd, model.ToolUseEnd:
			if d.Block != open || d.Kind != starts[open].Kind+2 {
				t.Errorf("block %d ends as %d while %d is open", d.Block, d.Kind, open)
			}
			open = -1
		default:
			if d.Block != open || d.Kind != starts[open].Kind+1 || d.Text == "" {
				t.Errorf("a piece of kind %d with text %q for block %d while %d is open", d.Kind, d.Text, d.Block, open)
			}
			got[d.Block].WriteString(d.Text)
			if d.Kind == model.TextDelta {
				text.WriteString(d.Text)
			}
		}
		return nil
	})
	if err != nil {
		if resp != nil {
			t.Errorf("there is an answer beside the error %v", err)
		}
		return nil, text.String(), err
	}
	if open != -1 || len(resp.Blocks) != len(got) {
		t.Fatalf("block %d is open at the end; %d blocks were streamed and %d are in the answer", open, len(got), len(resp.Blocks))
	}
	for i, b := range resp.Blocks {
		check(t, i, b, starts[i], got[i].String())
	}
	return resp, text.String(), nil
}

func check(t testing.TB, i int, b *sessionv1.Block, start model.Delta, pieces string) {
	t.Helper()
	want := b.GetContent().GetText().GetText() + b.GetThinking().GetText()
	if u := b.GetToolUse(); u != nil {
		if want = u.GetArgumentsJson(); want == "{}" {
			want = pieces
		}
		if start.ToolName != u.GetTool() || start.ProviderCallID != u.GetProviderCallId() {
			t.Errorf("block %d starts as %+v and is %v", i, start, u)
		}
	}
	if pieces != want {
		t.Errorf("block %d: the pieces are %q, the block is %q", i, pieces, want)
	}
}

// Text returns a block of text.
func Text(s string) *sessionv1.Block {
	return &sessionv1.Block{Kind: &sessionv1.Block_Content{Content: text(s)}}
}

func text(s string) *commonv1.Content {
	return &commonv1.Content{Kind: &commonv1.Content_Text{Text: &commonv1.Text{Text: s}}}
}

// Image returns a block with a small image.
func Image() *sessionv1.Block {
	return &sessionv1.Block{Kind: &sessionv1.Block_Content{Content: image()}}
}

func image() *commonv1.Content {
	return &commonv1.Content{Kind: &commonv1.Content_Image{Image: &commonv1.Media{MediaType: "image/png", Data: []byte{1, 2, 3}}}}
}

// Document returns a block with a document.
func Document(mediaType, data string) *sessionv1.Block {
	return &sessionv1.Block{Kind: &sessionv1.Block_Content{Content: &commonv1.Content{
		Kind: &commonv1.Content_Document{Document: &commonv1.Media{MediaType: mediaType, Data: []byte(data), Title: "doc"}},
	}}}
}

// Use returns a block of a tool call.
func Use(callID, providerID, tool, arguments string) *sessionv1.Block {
	return &sessionv1.Block{Kind: &sessionv1.Block_ToolUse{ToolUse: &sessionv1.ToolUse{
		CallId: callID, ProviderCallId: providerID, Tool: tool, ArgumentsJson: arguments,
	}}}
}

// Result returns a block of a tool's result; an empty text is a result without
// content, and "image" one with an image.
func Result(callID string, outcome sessionv1.ToolOutcome, s string) *sessionv1.Block {
	r := &sessionv1.ToolResult{CallId: callID, Outcome: outcome}
	switch s {
	case "":
	case "image":
		r.Content = []*commonv1.Content{image()}
	default:
		r.Content = []*commonv1.Content{text(s)}
	}
	return &sessionv1.Block{Kind: &sessionv1.Block_ToolResult{ToolResult: r}}
}

// User returns a message of the user.
func User(blocks ...*sessionv1.Block) *sessionv1.Message {
	return &sessionv1.Message{Role: sessionv1.Role_ROLE_USER, Blocks: blocks}
}

// Assistant returns a message of the model.
func Assistant(blocks ...*sessionv1.Block) *sessionv1.Message {
	return &sessionv1.Message{Role: sessionv1.Role_ROLE_ASSISTANT, Blocks: blocks}
}

// CheckUsage checks the usage and the stop reason of an answer, and that its
// blocks can be stored. No number of the usage may be above the limit, in
// tokens.
func CheckUsage(t testing.TB, resp *model.Response, limit int) {
	t.Helper()
	u := resp.Usage
	for _, n := range []int64{u.GetInputTokens(), u.GetOutputTokens(), u.GetCacheReadTokens(), u.GetCacheWriteTokens(), u.GetThinkingTokens()} {
		if n < 0 || n > int64(limit) {
			t.Errorf("the usage is %v", u)
		}
	}
	calls := 0
	for _, b := range resp.Blocks {
		if _, err := proto.Marshal(b); err != nil {
			t.Errorf("the block %v cannot be stored: %v", b, err)
		}
		if b.GetToolUse() != nil {
			calls++
		}
	}
	if resp.StopReason == "" || calls == 0 && resp.StopReason == "tool_use" || calls > 0 && resp.StopReason == "end_turn" {
		t.Errorf("the answer stops for %q with %d calls", resp.StopReason, calls)
	}
}
