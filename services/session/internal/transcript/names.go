package transcript

import (
	"regexp"
	"strings"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
)

// Collections of a session.
const (
	turns     = "turns"
	messages  = "messages"
	schedules = "schedules"
	// checkpoints are named only by events: an import has none.
	checkpoints = "checkpoints"
)

var (
	sessionName = regexp.MustCompile(`^sessions/[a-z0-9][a-z0-9-]{0,62}$`)
	childID     = regexp.MustCompile(`^[a-z0-9][a-z0-9-]{0,62}$`)
)

// ref is a field that names a resource of its session, or is empty.
type ref struct {
	name       *string
	collection string
}

func (r ref) empty() bool { return *r.name == "" }

// id returns the id in the name, if it belongs to the session's collection.
func (r ref) id(session string) (string, bool) {
	id, ok := strings.CutPrefix(*r.name, session+"/"+r.collection+"/")
	return id, ok && childID.MatchString(id)
}

// rename changes the session in the name.
func (r ref) rename(from, to string) {
	if rest, ok := strings.CutPrefix(*r.name, from+"/"); ok {
		*r.name = to + "/" + rest
	}
}

// refs lists the names in a line; its own name, if it has one, comes first.
func (r record) refs() []ref {
	switch {
	case r.session != nil:
		return []ref{{&r.session.Head, messages}}
	case r.turn != nil:
		return []ref{{&r.turn.Name, turns}, {&r.turn.SteeredInto, turns}, {&r.turn.Head, messages}, {&r.turn.Schedule, schedules}}
	case r.message != nil:
		all := []ref{{&r.message.Name, messages}, {&r.message.Parent, messages}, {&r.message.Turn, turns}}
		if c := r.message.Compaction; c != nil {
			all = append(all, ref{&c.KeptFrom, messages}, ref{&c.ResultsUntil, messages})
		}
		return all
	default:
		return eventRefs(r.event)
	}
}

func eventRefs(e *sessionv1.Event) []ref {
	all := []ref{{&e.Turn, turns}}
	switch b := e.Body.(type) {
	case *sessionv1.Event_SessionRewound:
		all = append(all, ref{&b.SessionRewound.Head, messages}, ref{&b.SessionRewound.UndoneTurn, turns}, ref{&b.SessionRewound.BeforeTurn, turns}, ref{&b.SessionRewound.Checkpoint, checkpoints})
	case *sessionv1.Event_SessionRewindFailed:
		all = append(all, ref{&b.SessionRewindFailed.Checkpoint, checkpoints})
	case *sessionv1.Event_CheckpointCreated:
		all = append(all, ref{&b.CheckpointCreated.Checkpoint, checkpoints}, ref{&b.CheckpointCreated.Head, messages})
	case *sessionv1.Event_CheckpointFailed:
		all = append(all, ref{&b.CheckpointFailed.Checkpoint, checkpoints})
	case *sessionv1.Event_SessionCompacted:
		all = append(all, ref{&b.SessionCompacted.Message, messages})
	case *sessionv1.Event_TurnQueued:
		all = append(all, ref{&b.TurnQueued.Schedule, schedules})
	case *sessionv1.Event_TurnSteered:
		all = append(all, ref{&b.TurnSteered.Into, turns})
	case *sessionv1.Event_StepFinished:
		all = append(all, ref{&b.StepFinished.Message, messages})
	}
	return all
}
