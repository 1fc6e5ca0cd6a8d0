package turn

import (
	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/session/internal/model"
	"github.com/fairlead/fairlead/services/session/internal/store"
)

// believed returns the usage that settles the reservation of an answer. If the
// provider's numbers are impossible it returns nil, so that the ledger counts what
// was reserved, and the write warns people.
func believed(w *Worker, write *store.Write, resp *model.Response) *sessionv1.Usage {
	if resp.Warning == "" {
		return resp.Usage
	}
	write.Events = append(write.Events, w.Event(w.Active.Step(), &sessionv1.Event{Body: &sessionv1.Event_Warning{Warning: &sessionv1.Warning{
		Reason: "MODEL_ANSWER", Message: resp.Warning,
	}}}))
	return nil
}
