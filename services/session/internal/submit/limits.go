package submit

import (
	"fmt"
	"strconv"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/session/internal/agent"
	"github.com/fairlead/fairlead/services/session/internal/budget"
	"github.com/fairlead/fairlead/services/session/internal/refusal"
)

// TurnLimits combines a request's limits with the agent's and the server's
// defaults, under the operator's ceilings.
func (s *Submitter) TurnLimits(tenant string, spec agent.Spec, asked *sessionv1.TurnLimits) (*sessionv1.TurnLimits, error) {
	most := s.Budgets.For(tenant).Turn
	steps, err := limit("limits.max_steps", int64(asked.GetMaxSteps()), int64(spec.MaxSteps), int64(s.Defaults.MaxSteps), int64(s.Ceilings.MaxSteps))
	if err != nil {
		return nil, err
	}
	ceiling := wallCeiling(int64(s.Ceilings.MaxWallTime), most)
	wall, err := limit("limits.max_wall_time", int64(asked.GetMaxWallTime().AsDuration()), int64(spec.MaxWallTime), int64(s.Defaults.MaxWallTime), ceiling)
	if err != nil {
		return nil, err
	}
	tokens, err := limit("limits.max_output_tokens", asked.GetMaxOutputTokens(), spec.MaxOutputTokens, s.Defaults.MaxOutputTokens, s.Ceilings.MaxOutputTokens)
	if err != nil {
		return nil, err
	}
	out := &sessionv1.TurnLimits{
		MaxSteps: int32(steps), MaxWallTime: durationpb.New(time.Duration(wall)), MaxOutputTokens: tokens,
	}
	return out, addTurnBudget(out, asked, most)
}

// limit returns the first of asked, the agent's and the server's value that is
// set.
func limit(field string, asked, agents, dflt, ceiling int64) (int64, error) {
	if asked > ceiling {
		shown, most := strconv.FormatInt(asked, 10), strconv.FormatInt(ceiling, 10)
		if field == "limits.max_wall_time" {
			shown, most = time.Duration(asked).String(), time.Duration(ceiling).String()
		}
		return 0, refusal.AboveCeiling(field, shown, "the operator", most)
	}
	for _, v := range []int64{asked, agents} {
		if v > 0 {
			return min(v, ceiling), nil
		}
	}
	return min(dflt, ceiling), nil
}

// addTurnBudget adds what the turn may use: the requested amount, or what the
// operator allows.
func addTurnBudget(out, asked *sessionv1.TurnLimits, most budget.Limits) error {
	var err error
	if out.MaxTokens, err = within("limits.max_tokens", asked.GetMaxTokens(), most.MaxTokens, tokens); err != nil {
		return err
	}
	out.MaxCostNanoUsd, err = within("limits.max_cost_nano_usd", asked.GetMaxCostNanoUsd(), most.MaxCostNanoUSD(), dollars)
	out.SoftPercent = asked.GetSoftPercent()
	if out.SoftPercent == 0 {
		out.SoftPercent = int32(most.SoftPercent)
	}
	return err
}

// wallCeiling returns the most time that a turn may request.
func wallCeiling(ceiling int64, most budget.Limits) int64 {
	if most.MaxWallTime > 0 {
		return min(ceiling, int64(most.MaxWallTime))
	}
	return ceiling
}

// CheckSessionBudget refuses a session's budget above the operator's.
func (s *Submitter) CheckSessionBudget(tenant string, asked *sessionv1.Budget) error {
	most := s.Budgets.For(tenant).Session
	if _, err := within("session.budget.max_tokens", asked.GetMaxTokens(), most.MaxTokens, tokens); err != nil {
		return err
	}
	if _, err := within("session.budget.max_cost_nano_usd", asked.GetMaxCostNanoUsd(), most.MaxCostNanoUSD(), dollars); err != nil {
		return err
	}
	_, err := within("session.budget.max_wall_time", int64(asked.GetMaxWallTime().AsDuration()), int64(most.MaxWallTime), span)
	return err
}

// within returns the requested amount, or the maximum if none was requested; 0
// bounds nothing.
func within(field string, asked, most int64, show func(int64) string) (int64, error) {
	switch {
	case most > 0 && asked > most:
		return 0, refusal.AboveCeiling(field, show(asked), "the operator", show(most))
	case asked > 0:
		return asked, nil
	default:
		return most, nil
	}
}

func tokens(n int64) string { return strconv.FormatInt(n, 10) }

func span(n int64) string { return time.Duration(n).String() }

func dollars(nano int64) string {
	return fmt.Sprintf("%d ($%s)", nano, strconv.FormatFloat(float64(nano)/1e9, 'f', -1, 64))
}
