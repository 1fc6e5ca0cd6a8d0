package spend

import (
	"fmt"

	"github.com/fairlead/fairlead/services/session/internal/model"
	"github.com/fairlead/fairlead/services/session/internal/store"
)

// InputBound returns an upper bound of a request's input, in tokens.
func InputBound(r model.Request) int64 { return fixedBound(r) + messagesBound(r.Messages) }

// Explain says why a budget does not allow a model call that no turn makes, and what to do.
func Explain(d *store.Denial) string {
	text := fmt.Sprintf("%s has used %s of %s of its budget", owner(d.Bound, true), amount(d.Used, d.Kind), amount(d.Hard, d.Kind))
	if d.Soft {
		return text + fmt.Sprintf(". From %s on a person is asked, which only a turn can do. Use a turn, or ask the operator for more (budgets.%s).", softAmount(d), d.Scope)
	}
	if reserved(d) {
		text += fmt.Sprintf(", calls under way could need up to %s", amount(d.Reserved, d.Kind))
	}
	if d.Kind != store.LimitWallTime {
		text += fmt.Sprintf(", and this call could need up to %s", amount(d.Least, d.Kind))
	}
	if d.Later {
		return text + ". Try again when they have ended."
	}
	if !d.WindowEnd.IsZero() {
		return text + fmt.Sprintf(". Counting restarts at%s. Wait, or ask the operator for more (budgets.%s).", windowText(d.WindowEnd, " "), d.Scope)
	}
	return text + fmt.Sprintf(". Ask the operator for more (budgets.%s).", d.Scope)
}
