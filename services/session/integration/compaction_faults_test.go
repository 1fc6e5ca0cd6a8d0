package integration

import (
	"context"
	"errors"
	"fmt"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/session"
	"github.com/fairlead/fairlead/services/session/internal/agent"
)

// shortened has a turn whose third step does not fit before the view is shortened.
var shortened = `
turns:` + summarizes + `
  - when: work
    steps:
      - {text: ["` + filler + filler + `"], tools: [{name: Bash, input: {command: a}}]}
      - {text: ["` + filler + filler + `"], tools: [{name: Bash, input: {command: b}}]}
      - text: [too long]
  - when: conversation so far
    steps: [{text: [lost]}, {text: [Done]}]
  - when: talk
    steps: [{text: ["` + filler + filler + `"]}]
`

// shortensAfterTwoSteps makes the context small, and has a command run first.
func shortensAfterTwoSteps(c *session.Config) {
	smallContext(c)
	c.Models.Models["play:test"] = limits{ContextTokens: 2000, MaxOutputTokens: 800}
	withSpec(func(s *agent.Spec) { s.PreCompaction = "cat notes" })(c)
}

// compact asks for a compaction and waits for it.
func (c *cluster) compact(ctx context.Context) error {
	err := c.ask(ctx, "compact", func(f *fixture) error {
		_, err := f.CompactSession(ctx, &sessionv1.CompactSessionRequest{Name: c.session, RequestId: "compact"})
		return err
	})
	return errors.Join(err, c.follow(ctx, func(e *sessionv1.Event) bool { return e.GetSessionCompacted() != nil }))
}

// isShortened checks that the view was shortened once, by a summary, and that
// the conversation is whole.
func isShortened(log []*sessionv1.Event, conversation []*sessionv1.Message, messages int, trigger string) error {
	if done := compacted(log); len(done) != 1 || done[0].Method != "summary" || done[0].Trigger != trigger {
		return fmt.Errorf("compactions: %v", done)
	}
	summaries := 0
	for _, m := range conversation {
		if m.Compaction != nil {
			summaries++
		}
	}
	if len(conversation) != messages || summaries != 1 {
		return fmt.Errorf("the conversation has %d messages, want %d with one summary:\n%s", len(conversation), messages, shape(conversation))
	}
	return nil
}
