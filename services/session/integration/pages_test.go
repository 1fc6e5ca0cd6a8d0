package integration

import (
	"fmt"
	"strings"
	"testing"

	"google.golang.org/grpc"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
)

// ordinary is what gRPC clients take unless they are told otherwise.
var ordinary = grpc.MaxCallRecvMsgSize(4 << 20)

func TestAnOrdinaryClientReadsLargeSessionsAndTurns(t *testing.T) {
	t.Parallel()
	f := start(t, "turns:\n  - steps: [{text: ["+strings.Repeat("x", 300<<10)+"]}]\n")
	ctx := t.Context()
	labels := map[string]string{}
	for n := range 32 {
		labels[fmt.Sprintf("l%d", n)] = strings.Repeat("é", 256)
	}
	for range 300 {
		if _, err := f.CreateSession(ctx, &sessionv1.CreateSessionRequest{Session: &sessionv1.Session{Labels: labels}}); err != nil {
			t.Fatal(err)
		}
	}
	session, turns := f.session(ctx, t), 15
	for range turns {
		f.turn(ctx, t, session, "hi")
	}
	sessions := map[string]bool{}
	for token, first := "", true; token != "" || first; first = false {
		r, err := f.ListSessions(ctx, &sessionv1.ListSessionsRequest{PageSize: 1000, PageToken: token}, ordinary)
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range r.Sessions {
			sessions[s.Name] = true
		}
		token = r.NextPageToken
	}
	if len(sessions) != 301 {
		t.Errorf("listed %d sessions", len(sessions))
	}
	read := 0
	for token, first := "", true; token != "" || first; first = false {
		r, err := f.ListTurns(ctx, &sessionv1.ListTurnsRequest{Parent: session, PageSize: 1000, PageToken: token}, ordinary)
		if err != nil {
			t.Fatal(err)
		}
		for _, turn := range r.Turns {
			if read++; len(turn.FinalText) != 300<<10 || turn.Shortened {
				t.Errorf("%s has %d bytes of text, shortened: %t", turn.Name, len(turn.FinalText), turn.Shortened)
			}
		}
		token = r.NextPageToken
	}
	if read != turns {
		t.Errorf("listed %d turns", read)
	}
	f.turn(ctx, t, session, "still there?")
}
