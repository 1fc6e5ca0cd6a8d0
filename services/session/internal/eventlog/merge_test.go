package eventlog

import (
	"reflect"
	"testing"

	"github.com/google/go-cmp/cmp"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/session/internal/store"
)

// TestNothingOfAWriteIsLostWhenItJoinsAnother fails when store.Write gets a field
// that merge does not know.
func TestNothingOfAWriteIsLostWhenItJoinsAnother(t *testing.T) {
	head, active := "m1", "t1"
	full := store.Write{
		Lease: store.Lease{Epoch: 1}, LastSeq: 1, Events: []*sessionv1.Event{{}}, Messages: []*sessionv1.Message{{Name: "a"}}, Revised: []*sessionv1.Message{{Name: "b"}}, Head: &head,
		Turns: []*store.TurnRow{{ID: "t1"}}, ActiveTurn: &active, AddUsage: &sessionv1.Usage{InputTokens: 1}, FinishedTurns: 1,
		Consume: []int64{1}, Wait: []store.PendingCall{{CallID: "c"}}, Waited: []string{"d"}, StepCommitted: true,
		Settle: []store.Settle{{}}, Reserve: []*store.Reserve{{}}, Jobs: []store.Job{{ID: "j"}}, PlaceChange: store.PlaceChange{Place: &store.Place{Node: "a"}, Made: 1, VoidExports: 1},
		Checkpoints: []*sessionv1.Checkpoint{{}}, DropCheckpoints: []string{"x"},
	}
	into := store.Write{Lease: full.Lease, LastSeq: full.LastSeq}
	merge(&into, full)
	for _, f := range reflect.VisibleFields(reflect.TypeFor[store.Write]()) {
		if reflect.ValueOf(full).FieldByIndex(f.Index).IsZero() && f.Name != "Key" && f.Name != "Tenant" && f.Name != "Session" && f.Name != "Suspect" && f.Name != "FenceDue" && f.Name != "Claims" {
			t.Errorf("the test does not set %s", f.Name)
		} else if reflect.ValueOf(into).FieldByIndex(f.Index).IsZero() != reflect.ValueOf(full).FieldByIndex(f.Index).IsZero() {
			t.Errorf("%s of the later write is lost", f.Name)
		}
	}
}

func TestMergeRevisesAMessageThatWaits(t *testing.T) {
	into := store.Write{Messages: []*sessionv1.Message{{Name: "a"}}}
	merge(&into, store.Write{Revised: []*sessionv1.Message{{Name: "a", Turn: "revised"}, {Name: "old", Turn: "revised"}}})
	if len(into.Messages) != 1 || into.Messages[0].Turn != "revised" || len(into.Revised) != 1 || into.Revised[0].Name != "old" {
		t.Errorf("added %v, revised %v", into.Messages, into.Revised)
	}
}

func TestMergeDoesNotAddACheckpointThatALaterWriteRemoves(t *testing.T) {
	into := store.Write{Checkpoints: []*sessionv1.Checkpoint{{Name: "sessions/s/checkpoints/a"}, {Name: "sessions/s/checkpoints/b"}}}
	merge(&into, store.Write{DropCheckpoints: []string{"a", "old"}, Checkpoints: []*sessionv1.Checkpoint{{Name: "sessions/s/checkpoints/c"}}})
	var left []string
	for _, c := range into.Checkpoints {
		left = append(left, c.Name)
	}
	if d := cmp.Diff([]string{"sessions/s/checkpoints/b", "sessions/s/checkpoints/c"}, left); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff([]string{"a", "old"}, into.DropCheckpoints); d != "" {
		t.Error(d)
	}
}
