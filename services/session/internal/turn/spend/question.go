package spend

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strconv"
	"time"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/session/internal/store"
	"github.com/fairlead/fairlead/services/session/internal/turn/state"
)

// TimeError ends a turn's context when a budget has no time left.
type TimeError struct{ Denied *store.Denial }

// Error says which budget has no time left.
func (e *TimeError) Error() string {
	return fmt.Sprintf("the time of the %s's budget is up", e.Denied.Scope)
}

// askToPass makes the turn wait until a person answers whether it may pass the soft part of a
// limit.
func askToPass(sc state.Scope, d *store.Denial) state.Outcome {
	t := sc.Active
	t.Run.Budget.Questions++
	q := &state.BudgetQuestion{CallID: t.ID + ".budget." + strconv.Itoa(t.Run.Budget.Questions), Limit: limitName(d.Scope, d.Kind)}
	t.Run.Budget.Question = q
	sum := sha256.Sum256([]byte(q.CallID + "\x00" + q.Limit + "\x00" + softAmount(d)))
	digest := hex.EncodeToString(sum[:])
	var write store.Write
	sc.Ask(&write, &sessionv1.ApprovalRequested{
		CallId: q.CallID, Digest: digest, Rule: q.Limit, Kind: sessionv1.ApprovalKind_APPROVAL_KIND_BUDGET, Message: question(d),
	})
	return state.Outcome{Wait: &state.Wait{Write: write, CallIDs: []string{q.CallID}}}
}

// takeAnswer acts on a person's answer about a soft limit. A refusal ends the turn.
func takeAnswer(t *state.Turn, write *store.Write) state.Outcome {
	q := t.Run.Budget.Question
	if q == nil {
		return state.Outcome{}
	}
	answer, answered := t.Run.Approvals[q.CallID]
	delete(t.Run.Approvals, q.CallID)
	t.Run.Budget.Question = nil
	switch {
	case !answered: // something else resumed the turn; the next reservation asks again if it must
		delete(t.Run.Asked, q.CallID)
		write.Waited = append(write.Waited, q.CallID)
		return state.Outcome{}
	case answer.Approved:
		t.Run.Budget.Allowed = append(t.Run.Budget.Allowed, q.Limit)
		return state.Outcome{}
	}
	message := fmt.Sprintf("%s did not want the turn to use more of the %s's budget. Its work so far is kept.", people(answer.User), q.Limit)
	if answer.Expired {
		message = fmt.Sprintf("The turn asked whether it may use more of the %s's budget. %s Its work so far is kept.", q.Limit, answer.Comment)
	} else if answer.Comment != "" {
		message += " They said: " + answer.Comment
	}
	return state.Partial(*write, sessionv1.ErrorReason_ERROR_REASON_BUDGET_REFUSED, message)
}

func people(user string) string {
	if user == "" {
		return "A person"
	}
	return user
}

// limitName names a limit in an approval and in the turn's state.
func limitName(scope store.BudgetScope, kind store.LimitKind) string {
	return string(scope) + " " + string(kind)
}

// question returns the question for a person.
func question(d *store.Denial) string {
	return fmt.Sprintf("%s has used %s of %s of its budget%s, and a person is asked from %s on. May this turn continue, up to the limit?",
		owner(d.Bound, true), amount(d.Used, d.Kind), amount(d.Hard, d.Kind), windowText(d.WindowEnd, " until "), softAmount(d))
}

// exhaustedText says which limit is reached, in which budget, and what to do.
func exhaustedText(d *store.Denial) string {
	text := fmt.Sprintf("%s has used %s of %s of its budget", owner(d.Bound, true), amount(d.Used, d.Kind), amount(d.Hard, d.Kind))
	if reserved(d) {
		text += fmt.Sprintf(", turns under way could need up to %s", amount(d.Reserved, d.Kind))
	}
	if d.Kind != store.LimitWallTime {
		text += fmt.Sprintf(", and the next model call could need up to %s", amount(d.Least, d.Kind))
	}
	text += ". The work so far is kept. "
	if !d.WindowEnd.IsZero() {
		return text + "Counting restarts at" + windowText(d.WindowEnd, " ") + ": send another message then, or ask the operator for more (budgets." + string(d.Scope) + ")."
	}
	switch d.Scope {
	case store.BudgetTurn:
		return text + "Send another message to let the agent continue, or allow more with the turn's limits."
	case store.BudgetSession:
		return text + "Create another session, or ask the operator for more (budgets.session)."
	default:
		return text + "Ask the operator for more (budgets." + string(d.Scope) + ")."
	}
}

// reserved reports whether other calls have reserved a part of what was denied.
func reserved(d *store.Denial) bool {
	switch d.Kind {
	case store.LimitCost:
		return d.Reserved.CostNanoUSD > 0
	case store.LimitWallTime:
		return d.Reserved.WallTime > 0
	default:
		return d.Reserved.Tokens > 0
	}
}

// owner names the owner of a budget.
func owner(b store.Bound, begin bool) string {
	the := "the "
	if begin {
		the = "The "
	}
	switch b.Scope {
	case store.BudgetUser, store.BudgetTenant:
		return the + string(b.Scope) + " " + b.Subject
	default:
		return the + string(b.Scope)
	}
}

func windowText(end time.Time, before string) string {
	if end.IsZero() {
		return ""
	}
	return before + end.Format(time.RFC3339)
}

func softAmount(d *store.Denial) string { return amount(d.Bound.Soft, d.Kind) }

// amount formats one kind of an amount for people.
func amount(a store.Amount, kind store.LimitKind) string {
	switch kind {
	case store.LimitCost:
		return "$" + strconv.FormatFloat(float64(a.CostNanoUSD)/1e9, 'f', -1, 64)
	case store.LimitWallTime:
		return a.WallTime.Round(time.Second / 10).String()
	default:
		return strconv.FormatInt(a.Tokens, 10) + " tokens"
	}
}
