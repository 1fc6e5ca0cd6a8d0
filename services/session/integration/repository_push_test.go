package integration

import (
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
)

func TestAnAddedRepositoryIsPushedAtTheEndOfTurns(t *testing.T) {
	t.Parallel()
	f := start(t, hello)
	ctx := t.Context()
	repositories := sessionv1.NewRepositoryServiceClient(f.conn)
	s := f.session(ctx, t)
	add := func(push string) error {
		_, err := repositories.AddRepository(ctx, &sessionv1.AddRepositoryRequest{Parent: s, Url: "https://git.example.com/org/app", SessionBranch: true, Push: push, RequestId: "r" + push})
		return err
	}
	pushes := func() int {
		f.peers.repositories.Lock()
		defer f.peers.repositories.Unlock()
		return len(f.peers.pushes)
	}
	f.turn(ctx, t, s, "hello")
	for range 2 { // repeated, it is kept once
		if err := add("turn_end"); err != nil {
			t.Fatal(err)
		}
	}
	got, err := f.GetSession(ctx, &sessionv1.GetSessionRequest{Name: s})
	if err != nil || len(got.Session.PushedRepositories) != 1 || got.Session.PushedRepositories[0].Directory != "app" {
		t.Fatalf("the session is %v, %v", got, err)
	}
	f.turn(ctx, t, s, "hello")
	eventually(t, "the branch is pushed", func() bool { return pushes() == 1 })
	f.peers.repositories.Lock()
	pushed := f.peers.pushes[0]
	f.peers.repositories.Unlock()
	if pushed.Directory != "app" || pushed.Url != "https://git.example.com/org/app" || pushed.Branch != "fairlead/"+s[len("sessions/"):] {
		t.Errorf("pushed %v", pushed)
	}
	if _, err := repositories.RemoveRepository(ctx, &sessionv1.RemoveRepositoryRequest{Name: s + "/repositories/app"}); err != nil {
		t.Fatal(err)
	}
	if got, err := f.GetSession(ctx, &sessionv1.GetSessionRequest{Name: s}); err != nil || len(got.Session.PushedRepositories) != 0 {
		t.Errorf("after its removal: %v, %v", got, err)
	}
	_, err = repositories.AddRepository(ctx, &sessionv1.AddRepositoryRequest{Parent: s, RepositoryId: "new", Push: "turn_end"})
	if status.Code(err) != codes.InvalidArgument {
		t.Errorf("a new repository has no remote: %v", err)
	}
}
