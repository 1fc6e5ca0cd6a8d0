package conversation

import (
	"context"
	"strings"
	"testing"
	"unicode/utf8"

	"google.golang.org/protobuf/proto"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/internal/kit/page"
	"github.com/fairlead/fairlead/services/internal/kit/principal"
	"github.com/fairlead/fairlead/services/session/internal/store"
)

// A turn is as large as its model's answers, and a client has to be able to list it.
func TestATurnThatIsLargerThanAPageIsListedShortened(t *testing.T) {
	text := strings.Repeat("é", 2<<20)
	huge := &huge{turns: []*sessionv1.Turn{
		{Name: "sessions/s/turns/1", FinalText: "small", OutputJson: "{}"},
		{Name: "sessions/s/turns/2", FinalText: "x" + text, OutputJson: `"` + text + `"`},
		{Name: "sessions/s/turns/3", FinalText: "small"},
	}}
	ctx := principal.With(t.Context(), principal.Default())
	answer, err := New(&Config{Store: huge}).ListTurns(ctx, &sessionv1.ListTurnsRequest{Parent: "sessions/s"})
	if err != nil {
		t.Fatal(err)
	}
	if len(answer.Turns) != 3 || proto.Size(answer) > page.MaxBytes || answer.NextPageToken != "" {
		t.Fatalf("%d turns and %d bytes", len(answer.Turns), proto.Size(answer))
	}
	for i, turn := range answer.Turns {
		if turn.Shortened != (i == 1) || !utf8.ValidString(turn.FinalText) || (turn.OutputJson == "{}") != (i == 0) {
			t.Errorf("turn %d is shortened: %t, with %d bytes of text and output %.20q", i+1, turn.Shortened, len(turn.FinalText), turn.OutputJson)
		}
	}
	if n := len(answer.Turns[1].FinalText); n < 60<<10 || n > 64<<10 {
		t.Errorf("the shortened text has %d bytes", n)
	}
}

type huge struct {
	store.Store
	turns []*sessionv1.Turn
}

func (h *huge) ListTurns(context.Context, store.Key, string, int) ([]*sessionv1.Turn, error) {
	return h.turns, nil
}

func (*huge) GetSession(context.Context, store.Key) (*sessionv1.Session, error) {
	return &sessionv1.Session{}, nil
}
