package main

import (
	"strings"
	"testing"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/internal/kit/rpc"
)

func TestAnswersAreJudgedFromTheCommandLine(t *testing.T) {
	t.Parallel()
	a := startAsker(t)
	conn, err := rpc.Dial(a.address)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := conn.Close(); err != nil {
			t.Error(err)
		}
	}()
	made, err := sessionv1.NewSessionServiceClient(conn).CreateSession(t.Context(), &sessionv1.CreateSessionRequest{
		Session: &sessionv1.Session{FirstMessage: &sessionv1.FirstMessage{Text: "hello"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	id := strings.TrimSpace(a.command(t, 0, "feedback", "create", made.Session.FirstTurn, "negative", "too short"))
	list := a.command(t, 0, "feedback", "list", made.Session.Name)
	if id == "" || !strings.Contains(list, id) || !strings.Contains(list, "negative") || !strings.Contains(list, "too short") {
		t.Errorf("%q is not in the list:\n%s", id, list)
	}
	if why := a.command(t, 1, "feedback", "create", made.Session.FirstTurn, "positive", "--step", "99"); !strings.Contains(why, "steps") {
		t.Errorf("a step that there is not: %s", why)
	}
}
