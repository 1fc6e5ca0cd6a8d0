package step

import (
	"fmt"
	"strings"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/session/internal/model"
	"github.com/fairlead/fairlead/services/session/internal/modelview"
	"github.com/fairlead/fairlead/services/session/internal/store"
	"github.com/fairlead/fairlead/services/session/internal/turn/state"
)

// maxReason bounds how much of a provider's message is kept, in bytes.
const maxReason = 1 << 10

// withhold marks the blocks of the conversation that the provider has refused. The
// next request has a note in their place: each request repeats the conversation, so
// these blocks would fail all of them. The write is empty when no block is known to be
// refused. persons reports whether a person sent one of them.
func withhold(sc state.Scope, failed *model.Error) (write store.Write, persons bool) {
	said := failed.Error()
	r := modelview.Refusal{Model: sc.ModelName(), Reason: strings.ToValidUTF8(said[:min(len(said), maxReason)], "")}
	switch {
	case failed.AboutMedia():
		r.Media, r.Named, r.New, r.Older = true, failed.Named, true, true
	case failed.AboutText():
		r.Named, r.New = failed.Named, failed.Filtered() && failed.Named == nil
	case failed.Unexplained():
		r.Media, r.New = true, true
	}
	write.Revised, persons = modelview.Refuse(sc.Path, r)
	for _, m := range write.Revised {
		for i := range sc.Path {
			if sc.Path[i].Name == m.Name {
				sc.Path[i] = m
			}
		}
	}
	if len(write.Revised) > 0 {
		write.Events = []*sessionv1.Event{sc.StepEvent(state.Warning("CONTENT_REFUSED",
			fmt.Sprintf("The model provider refuses content of %d messages. From now on the model sees a note in its place.", len(write.Revised))))}
	}
	return write, persons
}

// refused ends an attempt whose request the provider refused, and reports whether the step needs
// another one. A refused block of a person ends the turn, so that the person can send something
// else. The model reads at once of a refused block that tools returned.
func refused(sc state.Scope, a *partialAnswer, failed *model.Error) (again bool, _ state.Outcome, _ error) {
	revised, persons := withhold(sc, failed)
	if len(revised.Revised) > 0 && !persons {
		write := VoidAttempt(sc.Session)
		write.Revised, write.Events = revised.Revised, append(revised.Events, write.Events...)
		return true, state.Outcome{}, sc.Append(write)
	}
	write := a.keep()
	write.Revised, write.Events = revised.Revised, append(write.Events, revised.Events...)
	return false, modelFailed(sc, write, failed), nil
}
