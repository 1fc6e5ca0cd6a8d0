package scripted

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"

	"github.com/fairlead/fairlead/services/session/internal/model"
)

// argumentBytes is the size of the pieces in which arguments are streamed.
const argumentBytes = 48

// errBudget ends an answer that has reached its bound.
var errBudget = errors.New("output tokens used up")

// player plays one step for one request.
type player struct {
	emit    func(model.Delta) error
	step    *Step
	talk    conversation
	failure *Failure // nil when the step succeeds
	budget  int64    // output tokens; 0 means no bound
	id      string

	pieces   int   // emitted so far
	tokens   int64 // emitted so far
	thinking int64 // the part of tokens that is thinking
	blocks   []*sessionv1.Block
}

func (p *player) play(ctx context.Context) (*model.Response, error) {
	if err := p.wait(ctx, time.Duration(p.step.Pause)); err != nil {
		return nil, err
	}
	if p.failure != nil && p.failure.Midway == 0 {
		return nil, p.failure.err(false)
	}
	stop := p.step.StopReason
	err := p.content(ctx)
	switch {
	case errors.Is(err, errBudget):
		stop = "max_tokens"
	case err != nil:
		return nil, err
	case p.failure != nil:
		return nil, p.failure.err(p.pieces > 0)
	case stop == "" && len(p.step.Tools) > 0:
		stop = "tool_use"
	case stop == "":
		stop = "end_turn"
	}
	return &model.Response{Blocks: p.blocks, StopReason: stop, Usage: p.usage(), ID: p.id}, nil
}

func (p *player) content(ctx context.Context) error {
	if len(p.step.Thinking) > 0 {
		if err := p.thought(ctx); err != nil {
			return err
		}
	}
	if len(p.step.Text) > 0 {
		if err := p.text(ctx); err != nil {
			return err
		}
	}
	for i := range p.step.Tools {
		if err := p.tool(ctx, i); err != nil {
			return err
		}
	}
	return nil
}

// block emits a block: its start, its pieces and its end. build makes the block
// from the emitted text, and block adds it to the answer, even if the bound cut
// the text. A block without text is left out, unless it is a tool use.
func (p *player) block(ctx context.Context, start model.Delta, pieces func(yield func(string) bool), build func(string) *sessionv1.Block) error {
	start.Block = len(p.blocks)
	started := false
	begin := func() error {
		if started {
			return nil
		}
		started = true
		return p.emit(start)
	}
	if start.Kind == model.ToolUseStart {
		if err := begin(); err != nil {
			return err
		}
	}
	var all strings.Builder
	var cut error
	for piece := range pieces {
		err := p.admit(ctx, start.Kind+1, piece)
		if errors.Is(err, errBudget) {
			cut = err
			break
		}
		if err == nil {
			err = begin()
		}
		if err == nil {
			err = p.emit(model.Delta{Kind: start.Kind + 1, Block: start.Block, Text: piece})
		}
		if err != nil {
			return err
		}
		all.WriteString(piece)
	}
	if !started {
		return cut
	}
	p.blocks = append(p.blocks, build(all.String()))
	if err := p.emit(model.Delta{Kind: start.Kind + 2, Block: start.Block}); err != nil {
		return err
	}
	return cut
}

func (p *player) thought(ctx context.Context) error {
	before := p.tokens
	err := p.block(ctx, model.Delta{Kind: model.ThinkingStart}, p.filled(p.step.Thinking, 1), func(s string) *sessionv1.Block {
		return &sessionv1.Block{Kind: &sessionv1.Block_Thinking{Thinking: &sessionv1.Thinking{Text: s}}}
	})
	p.thinking = p.tokens - before
	return err
}

func (p *player) text(ctx context.Context) error {
	return p.block(ctx, model.Delta{Kind: model.TextStart}, p.filled(p.step.Text, max(p.step.Repeat, 1)), textBlock)
}

func (p *player) tool(ctx context.Context, i int) error {
	call := &p.step.Tools[i]
	args, err := call.Arguments(p.talk.fill)
	if err != nil {
		return &model.Error{Kind: model.Refused, Message: "the scenario's tool input cannot be written as JSON", Err: err}
	}
	id := call.ID
	if id == "" {
		id = fmt.Sprintf("%s_%d", p.id, i+1)
	}
	pieces := func(yield func(string) bool) {
		for _, s := range cut(args, argumentBytes) {
			if !yield(s) {
				return
			}
		}
	}
	start := model.Delta{Kind: model.ToolUseStart, ToolName: call.Name, ProviderCallID: id}
	return p.block(ctx, start, pieces, func(s string) *sessionv1.Block {
		if s == "" {
			s = "{}"
		}
		return &sessionv1.Block{Kind: &sessionv1.Block_ToolUse{ToolUse: &sessionv1.ToolUse{
			ProviderCallId: id, Tool: call.Name, ArgumentsJson: s,
		}}}
	})
}

// filled returns the pieces, repeated times, with their placeholders filled in.
func (p *player) filled(chunks Chunks, times int) func(yield func(string) bool) {
	return func(yield func(string) bool) {
		for range times {
			for _, s := range chunks {
				if s = p.talk.fill(s); s != "" && !yield(s) {
					return
				}
			}
		}
	}
}

// admit waits until a piece is due. It returns an error when the step fails
// here or its output is used up.
func (p *player) admit(ctx context.Context, kind model.DeltaKind, piece string) error {
	n := tokens(piece)
	if p.budget > 0 && p.tokens+n > p.budget {
		return errBudget
	}
	if err := p.wait(ctx, p.delay(kind, n)); err != nil {
		return err
	}
	if p.failure != nil && p.pieces >= p.failure.Midway {
		return p.failure.err(true)
	}
	p.pieces++
	p.tokens += n
	return nil
}

func (p *player) delay(kind model.DeltaKind, n int64) time.Duration {
	if tps := p.step.TokensPerSecond; tps > 0 {
		return time.Duration(float64(n) / tps * float64(time.Second))
	}
	if kind == model.ToolUseDelta {
		return 0
	}
	return time.Duration(p.step.Delay)
}

// wait waits for d, or until the context ends.
func (p *player) wait(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return ctx.Err()
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return ctx.Err()
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (p *player) usage() *sessionv1.Usage {
	if u := p.step.Usage; u != nil {
		return &sessionv1.Usage{
			InputTokens: u.Input, OutputTokens: u.Output, CacheReadTokens: u.CacheRead,
			CacheWriteTokens: u.CacheWrite, ThinkingTokens: u.Thinking,
		}
	}
	return &sessionv1.Usage{InputTokens: int64(p.talk.bytes+3) / 4, OutputTokens: p.tokens, ThinkingTokens: p.thinking}
}

// tokens estimates the tokens of a text: about four bytes each.
func tokens(s string) int64 { return int64(len(s)+3) / 4 }
