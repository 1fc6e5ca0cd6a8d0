package portable

import (
	"context"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protojson"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/session/internal/store"
)

// onePath is a store that has one conversation.
type onePath struct {
	store.Store
	path []*sessionv1.Message
}

func (s onePath) ListMessages(context.Context, store.Key, string, string, int) ([]*sessionv1.Message, error) {
	return s.path, nil
}

// TestAForksMessagesNameNothingOfTheSource: a summary whose kept messages were
// not found would show the model another conversation than the source's did.
func TestAForksMessagesNameNothingOfTheSource(t *testing.T) {
	s := Sessions{Store: onePath{path: []*sessionv1.Message{
		{Name: "sessions/old/messages/a", Turn: "sessions/old/turns/t"},
		{Name: "sessions/old/messages/b", Parent: "sessions/old/messages/a", Turn: "sessions/old/turns/t"},
		{Name: "sessions/old/messages/c", Parent: "sessions/old/messages/b", Compaction: &sessionv1.Compaction{
			KeptFrom: "sessions/old/messages/a", ResultsUntil: "sessions/old/messages/b", MaxBlockBytes: 7,
		}},
	}}}
	fork, err := s.copyMessages(t.Context(), store.Key{Session: "old"}, store.Key{Session: "new"}, "c")
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range fork {
		if text := protojson.Format(m); strings.Contains(text, "sessions/old") {
			t.Errorf("a message of the fork names the source: %s", text)
		}
	}
	if c := fork[2].Compaction; c.KeptFrom != fork[0].Name || c.ResultsUntil != fork[1].Name || c.MaxBlockBytes != 7 {
		t.Errorf("the fork's summary is %v", c)
	}
}
