package turn

import (
	"context"
	"fmt"
	"strings"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/session/internal/model"
	"github.com/fairlead/fairlead/services/session/internal/store"
	"github.com/fairlead/fairlead/services/session/internal/view"
)

// maxSaid bounds how much of a provider's message is kept, in bytes.
const maxSaid = 1 << 10

// withhold marks the blocks of the conversation that the provider has refused. The
// next request has a note in their place: each request repeats the conversation, so
// these blocks would fail all of them. The write is empty when no block is known to be
// refused. persons reports whether a person sent one of them.
func withhold(w *Worker, failed *model.Error) (write store.Write, persons bool) {
	said := failed.Error()
	r := view.Refusal{Model: w.ModelName(), Reason: strings.ToValidUTF8(said[:min(len(said), maxSaid)], "")}
	switch {
	case failed.AboutMedia():
		r.Media, r.Named, r.New, r.Older = true, failed.Named, true, true
	case failed.AboutText():
		r.Named, r.New = failed.Named, failed.Filtered() && failed.Named == nil
	case failed.Unexplained():
		r.Media, r.New = true, true
	}
	write.Revised, persons = view.Refuse(w.Path, r)
	for _, m := range write.Revised {
		for i := range w.Path {
			if w.Path[i].Name == m.Name {
				w.Path[i] = m
			}
		}
	}
	if len(write.Revised) > 0 {
		write.Events = []*sessionv1.Event{w.Event(w.Active.Step(), &sessionv1.Event{Body: &sessionv1.Event_Warning{Warning: &sessionv1.Warning{
			Reason:  "CONTENT_REFUSED",
			Message: fmt.Sprintf("The model provider refuses what %d of the messages brought. From now on the model sees a note in its place.", len(write.Revised)),
		}}})}
	}
	return write, persons
}

// refused ends an attempt whose request the provider refused, and reports whether
// the step is done. A refused block of a person ends the turn, so that the person
// can send something else. The model is told at once of a refused block that tools
// returned.
func refused(parent context.Context, w *Worker, a *partialAnswer, failed *model.Error) (bool, error) {
	revised, persons := withhold(w, failed)
	if len(revised.Revised) > 0 && !persons {
		write := w.voidStep()
		write.Revised, write.Events = revised.Revised, append(revised.Events, write.Events...)
		return false, w.Log.Append(parent, write)
	}
	return true, w.commitPartial(a, func(write store.Write) error {
		write.Revised, write.Events = revised.Revised, append(write.Events, revised.Events...)
		return w.failModel(parent, write, failed)
	})
}
