package integration

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/session"
	"github.com/fairlead/fairlead/services/session/internal/agent"
	"github.com/fairlead/fairlead/services/session/internal/budget"
	"github.com/fairlead/fairlead/services/session/internal/model/catalog"
)

// Short names of what the combined recoveries say often.
const (
	steers      = sessionv1.OnActive_ON_ACTIVE_STEER
	rollsBack   = sessionv1.OnActive_ON_ACTIVE_ROLLBACK
	complete    = sessionv1.TurnState_TURN_STATE_COMPLETE
	interrupted = sessionv1.TurnState_TURN_STATE_INTERRUPTED
)

// verdicts has a turn that calls finish beside a call that a person must allow.
const verdicts = `
turns:
  - when: write
    steps:
      - tools: [{name: finish, input: {request_status: PARTIAL, summary: half}}, {name: Write, input: {file_path: a}}]
  - when: why
    steps: [{text: [because]}]
`

// oneByOne has the calls of arrivals' block in a step each.
var oneByOne = strings.Replace(arrivals, "{name: Bash, input: {}}, {name: Block", "{name: Bash, input: {}}]}, {tools: [{name: Block", 1)

// dear has turns whose second step is above the soft part of a small budget, and
// a summary that takes a minute.
var dear = `
turns:
  - when: earlier part of the conversation
    steps: [{text: ["the gist"], pause: 1m, usage: {input_tokens: 500, output_tokens: 100}}]
  - when: work
    steps:
      - {text: [Looking], tools: [{name: Bash, input: {command: ls}}], usage: {input_tokens: 500, output_tokens: 100}}
      - {text: [Done], usage: {input_tokens: 500, output_tokens: 100}}
  - when: fill
    steps:
      - {text: ["` + filler + filler + `"], tools: [{name: Bash, input: {command: a}}], usage: {input_tokens: 500, output_tokens: 600}}
      - {text: ["` + filler + filler + `"], tools: [{name: Bash, input: {command: b}}], usage: {input_tokens: 500, output_tokens: 600}}
      - {text: [full], usage: {input_tokens: 500, output_tokens: 100}}
  - when: why
    steps: [{text: [because], usage: {input_tokens: 500, output_tokens: 100}}]
  - when: long
    steps: [{text: ["` + filler + `"], usage: {input_tokens: 500, output_tokens: 100}}]
fallback: {steps: [{text: [ok], usage: {input_tokens: 500, output_tokens: 100}}]}
`

func asksForMoney(c *session.Config) {
	withPrices(func(b *budget.Config) {
		b.Tenant.MaxCostUSD, b.Tenant.SoftPercent, b.User.MaxWallTime = 10, 1, time.Hour
	})(c)
	c.Models.Models = map[string]catalog.Limits{"play:test": {MaxOutputTokens: 2000, Prices: catalog.Prices{Input: 100, Output: 1000}}}
}

func shortensForMoney(c *session.Config) {
	withPrices(func(b *budget.Config) { b.Tenant.MaxCostUSD, b.Tenant.MaxWallTime = 100, time.Hour })(c)
	c.CompactAt = 50
	c.Models.Models = map[string]catalog.Limits{"play:test": {ContextTokens: 2000, MaxOutputTokens: 800, Prices: catalog.Prices{Input: 10, Output: 100}}}
}

// combined are recoveries in which several things happen at once.
var combined = []recovery{
	{name: "a message that steers a turn that asks a person", scenario: arrivals,
		play: func(ctx context.Context, c *cluster) error {
			return errors.Join(c.send(ctx, "write"), c.asked(ctx, 1), c.arrive(ctx, "why?", steers), c.approve(ctx), c.ended(ctx, 2))
		},
		check: func(c *cluster, log []*sessionv1.Event, conversation []*sessionv1.Message) error {
			return errors.Join(c.executed(2), ends(log, complete, complete), happens(log, "turn.steered", 1), looks(conversation, `user: "write"
assistant: use Bash, use Write
user: OK, OK
user: "why?"
assistant: "because"`))
		}},
	{name: "a message that rolls back a turn that asks a person", scenario: arrivals,
		play: func(ctx context.Context, c *cluster) error {
			return errors.Join(c.send(ctx, "write"), c.asked(ctx, 1), c.arrive(ctx, "why?", rollsBack), c.ended(ctx, 2))
		},
		check: func(c *cluster, log []*sessionv1.Event, conversation []*sessionv1.Message) error {
			return errors.Join(c.executed(1), agree(c.first.peers, conversation), ends(log, interrupted, complete), happens(log, "session.rewound", 1), looks(conversation, becauseShape))
		}},
	{name: "a message that rolls back a turn during a call, with another that steered it", scenario: arrivals,
		play: func(ctx context.Context, c *cluster) error {
			return errors.Join(c.send(ctx, "block"), c.callRuns(ctx), c.arrive(ctx, "mind this", steers), c.arrive(ctx, "why?", rollsBack), c.ended(ctx, 3))
		},
		check: func(c *cluster, log []*sessionv1.Event, conversation []*sessionv1.Message) error {
			return errors.Join(c.executedOnce(), agree(c.first.peers, conversation), ends(log, interrupted, complete, complete), happens(log, "session.rewound", 1), looks(conversation, becauseShape+`
user: "mind this"
assistant: "ok"`))
		}},
	{name: "a rollback of a turn whose first change has no checkpoint", scenario: oneByOne, change: func(c *session.Config) { c.Checkpoints = []string{"Block"} },
		play: func(ctx context.Context, c *cluster) error {
			return errors.Join(c.send(ctx, "block"), c.callRuns(ctx), c.arrive(ctx, "why?", rollsBack), c.ended(ctx, 2))
		},
		check: func(c *cluster, log []*sessionv1.Event, _ []*sessionv1.Message) error {
			for _, e := range log {
				if r := e.GetWarning().GetReason(); r == "FILES_RESTORED" {
					return errors.New("the files are said to be those of before, and are not")
				}
			}
			return errors.Join(c.executedOnce(), ends(log, interrupted, complete), happens(log, "warning", 1))
		}},
	{name: "a rollback of a turn whose list of checkpoints names a later call of its step", scenario: arrivals, change: func(c *session.Config) { c.Checkpoints = []string{"Block"} },
		play: func(ctx context.Context, c *cluster) error {
			return errors.Join(c.send(ctx, "block"), c.callRuns(ctx), c.arrive(ctx, "why?", rollsBack), c.ended(ctx, 2))
		},
		check: func(c *cluster, log []*sessionv1.Event, conversation []*sessionv1.Message) error {
			return errors.Join(c.executedOnce(), ends(log, interrupted, complete), agree(c.first.peers, conversation), happens(log, "session.rewound", 1))
		}},
	{name: "a rollback of a turn whose view was shortened", scenario: strings.Replace(shortened, "{text: [Done]}", "{text: [Done], pause: 1m}", 1) + `
  - when: why
    steps: [{text: [because]}]
`, change: shortensAfterTwoSteps,
		play: func(ctx context.Context, c *cluster) error {
			err := errors.Join(c.send(ctx, "work"), c.follow(ctx, func(e *sessionv1.Event) bool { return e.GetSessionCompacted() != nil }))
			return errors.Join(err, c.arrive(ctx, "why?", rollsBack), c.ended(ctx, 2))
		},
		check: func(c *cluster, log []*sessionv1.Event, conversation []*sessionv1.Message) error {
			return errors.Join(ends(log, interrupted, complete), agree(c.first.peers, conversation), happens(log, "session.rewound", 1), looks(conversation, becauseShape))
		}},
	{name: "a finish beside a call that a person must allow", scenario: verdicts, change: withSpec(func(s *agent.Spec) { s.Verdict = agent.VerdictTool }),
		play: func(ctx context.Context, c *cluster) error {
			return errors.Join(c.send(ctx, "write"), c.asked(ctx, 1), c.approve(ctx), c.ended(ctx, 1))
		},
		check: func(c *cluster, log []*sessionv1.Event, _ []*sessionv1.Message) error {
			return errors.Join(c.executed(1), ends(log, sessionv1.TurnState_TURN_STATE_PARTIAL))
		}},
	{name: "a finish that a message overtakes", scenario: verdicts, change: withSpec(func(s *agent.Spec) { s.Verdict = agent.VerdictTool }),
		play: func(ctx context.Context, c *cluster) error {
			return errors.Join(c.send(ctx, "write"), c.asked(ctx, 1), c.arrive(ctx, "why?", steers), c.approve(ctx), c.ended(ctx, 2))
		},
		check: func(c *cluster, log []*sessionv1.Event, conversation []*sessionv1.Message) error {
			return errors.Join(c.executed(1), ends(log, complete, complete), looks(conversation, `user: "write"
assistant: use finish, use Write
user: OK, OK
user: "why?"
assistant: "because"`))
		}},
	{name: "a message that steers a turn that asks for money", scenario: dear, change: asksForMoney,
		play: func(ctx context.Context, c *cluster) error {
			return errors.Join(c.send(ctx, "work"), c.asked(ctx, 1), c.arrive(ctx, "why?", steers), c.approve(ctx), c.ended(ctx, 2), c.settled(ctx, 2))
		},
		check: func(c *cluster, log []*sessionv1.Event, conversation []*sessionv1.Message) error {
			return errors.Join(c.executedOnce(), ends(log, complete, complete), happens(log, "turn.steered", 1))
		}},
	{name: "a message that rolls back a turn that asks for money", scenario: dear, change: asksForMoney,
		play: func(ctx context.Context, c *cluster) error {
			return errors.Join(c.send(ctx, "work"), c.asked(ctx, 1), c.arrive(ctx, "why?", rollsBack), c.approveNth(ctx, 2), c.ended(ctx, 2), c.settled(ctx, 2))
		},
		check: func(c *cluster, log []*sessionv1.Event, conversation []*sessionv1.Message) error {
			return errors.Join(c.executedOnce(), ends(log, interrupted, complete), agree(c.first.peers, conversation), happens(log, "session.rewound", 1), looks(conversation, becauseShape))
		}},
	{name: "a summary between turns that is paid for", scenario: dear, change: shortensForMoney,
		play: func(ctx context.Context, c *cluster) error {
			return errors.Join(c.send(ctx, "long"), c.ended(ctx, 1), c.compact(ctx), c.settled(ctx, 2))
		},
		check: func(_ *cluster, log []*sessionv1.Event, conversation []*sessionv1.Message) error {
			return errors.Join(ends(log, complete), isShortened(log, conversation, 3, "requested"))
		}},
	{name: "an interrupt during a summary that is paid for", scenario: dear, change: shortensForMoney,
		play: func(ctx context.Context, c *cluster) error {
			steps := map[int32]bool{}
			err := errors.Join(c.send(ctx, "fill"), c.follow(ctx, func(e *sessionv1.Event) bool {
				if e.GetStepFinished() != nil {
					steps[e.Step] = true
				}
				return len(steps) == 2
			}))
			select {
			case <-time.After(10 * time.Second):
			case <-ctx.Done():
			}
			return errors.Join(err, c.interrupt(ctx), c.ended(ctx, 1), c.settled(ctx, 2))
		},
		check: func(c *cluster, log []*sessionv1.Event, _ []*sessionv1.Message) error {
			return errors.Join(c.executed(2), ends(log, interrupted), happens(log, "session.compacted", 0))
		}},
}

const becauseShape = `user: "why?"
assistant: "because"`

// arrive sends a message that does something to the active turn.
func (c *cluster) arrive(ctx context.Context, text string, on sessionv1.OnActive) error {
	return c.ask(ctx, "send "+text, func(f *fixture) error {
		_, err := f.CreateTurn(ctx, &sessionv1.CreateTurnRequest{Parent: c.session, Text: text, OnActive: on, RequestId: "arrive-" + text[:3]})
		return err
	})
}

func (c *cluster) interrupt(ctx context.Context) error {
	return c.ask(ctx, "interrupt", func(f *fixture) error {
		_, err := f.InterruptSession(ctx, &sessionv1.InterruptSessionRequest{Name: c.session, RequestId: "stop"})
		return err
	})
}

// asked waits until turns have begun to wait so often.
func (c *cluster) asked(ctx context.Context, n int) error {
	waits := map[int64]bool{}
	return c.follow(ctx, func(e *sessionv1.Event) bool {
		if e.GetTurnWaiting() != nil {
			waits[e.Seq] = true
		}
		return len(waits) == n
	})
}

// approveNth says yes to the question of that number.
func (c *cluster) approveNth(ctx context.Context, n int) error {
	var asked *sessionv1.ApprovalRequested
	calls := map[string]bool{}
	if err := c.follow(ctx, func(e *sessionv1.Event) bool {
		if a := e.GetApprovalRequested(); a != nil {
			calls[a.CallId], asked = true, a
		}
		return len(calls) == n
	}); err != nil {
		return err
	}
	return c.ask(ctx, "approve", func(f *fixture) error {
		_, err := f.ResolveApproval(ctx, &sessionv1.ResolveApprovalRequest{
			Parent: c.session, CallId: asked.CallId, Digest: asked.Digest, Approved: true, RequestId: fmt.Sprint("approve-", n),
		})
		return err
	})
}

// settled checks that nothing stays reserved, and that at least these model calls
// are in the ledger, as what they cost.
func (c *cluster) settled(ctx context.Context, calls int) error {
	return c.ask(ctx, "look at the budget", func(f *fixture) error {
		resp, err := sessionv1.NewBudgetServiceClient(f.conn).ListBudgets(ctx, &sessionv1.ListBudgetsRequest{Session: c.session})
		if err != nil {
			return err
		}
		got, err := f.GetSession(ctx, &sessionv1.GetSessionRequest{Name: c.session})
		if err != nil {
			return err
		}
		for _, b := range resp.Budgets {
			if b.ReservedTokens != 0 || b.ReservedCostNanoUsd != 0 || b.ReservedWallTime.AsDuration() != 0 || b.UsedTokens < int64(calls)*600 || b.UsedCostNanoUsd < got.Session.Usage.CostNanoUsd {
				return fmt.Errorf("the budget stands at %v, and the session has used %v", b, got.Session.Usage)
			}
		}
		return nil
	})
}

// happens checks how often an event is in the log.
func happens(log []*sessionv1.Event, name string, want int) error {
	if got := count(log, name); got != want {
		return fmt.Errorf("%s is %d times in the log, want %d: %s", name, got, want, names(log))
	}
	return nil
}

// looks checks a conversation's shape.
func looks(conversation []*sessionv1.Message, want string) error {
	if got := shape(conversation); got != want {
		return fmt.Errorf("the conversation is\n%s\nwant\n%s", got, want)
	}
	return nil
}
