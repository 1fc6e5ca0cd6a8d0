package integration

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc/codes"

	sandboxv1 "github.com/fairlead/fairlead/gen/go/fairlead/sandbox/v1"
	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/internal/kit/apierr"
	"github.com/fairlead/fairlead/services/internal/kit/principal"
	"github.com/fairlead/fairlead/services/session"
	"github.com/fairlead/fairlead/services/session/internal/agent"
)

// remote stands in for the repositories of sandbox. A call is done once.
type remote struct {
	sandboxv1.UnimplementedRepositoryServiceServer
	repositories sync.Mutex
	clones       map[string]*sandboxv1.CloneRepositoryRequest // by call id
	asked        int                                          // clones that were asked for
	cloned       int                                          // clones that were made
	pushes       []*sandboxv1.PushRepositoryRequest
	pushers      []string // the users of pushes
	branched     []*sandboxv1.CreateBranchRequest
	refusal      error // of clones
	refusals     int   // how many clones get it; zero: all
	pushRefusal  error
	branching    error                   // what a branch is refused with
	present      []*sandboxv1.Repository // those that are listed
	blind        error                   // what a list is refused with
	heads        map[string]bool         // branches that the remote has
}

func (m *remote) CloneRepository(r *sandboxv1.CloneRepositoryRequest, stream sandboxv1.RepositoryService_CloneRepositoryServer) error {
	m.repositories.Lock()
	defer m.repositories.Unlock()
	m.asked++
	if refusal := m.refusal; refusal != nil {
		if m.refusals--; m.refusals == 0 {
			m.refusal = nil
		}
		return refusal
	}
	if known := m.clones[r.Call.CallId]; known != nil && known.Url != r.Url {
		return apierr.Of(codes.AlreadyExists, sandboxv1.ErrorReason_ERROR_REASON_CALL_ID_REUSED, "another")
	}
	if m.clones == nil {
		m.clones = map[string]*sandboxv1.CloneRepositoryRequest{}
	}
	if m.clones[r.Call.CallId] == nil {
		m.cloned++
	}
	m.clones[r.Call.CallId] = r
	return stream.Send(&sandboxv1.CloneRepositoryResponse{Kind: &sandboxv1.CloneRepositoryResponse_Repository{
		Repository: &sandboxv1.Repository{Directory: "app", Branch: r.Branch, Url: r.Url},
	}})
}

func (m *remote) PushRepository(ctx context.Context, r *sandboxv1.PushRepositoryRequest) (*sandboxv1.PushRepositoryResponse, error) {
	m.repositories.Lock()
	defer m.repositories.Unlock()
	p, _ := principal.From(ctx)
	m.pushes, m.pushers = append(m.pushes, r), append(m.pushers, p.User)
	if m.pushRefusal != nil {
		return nil, m.pushRefusal
	}
	known := m.heads[r.Branch]
	if m.heads == nil {
		m.heads = map[string]bool{}
	}
	m.heads[r.Branch] = true
	return &sandboxv1.PushRepositoryResponse{Ref: "refs/heads/" + r.Branch, NewCommit: strings.Repeat("a", 40), UpToDate: known}, nil
}

func (m *remote) CreateBranch(_ context.Context, r *sandboxv1.CreateBranchRequest) (*sandboxv1.CreateBranchResponse, error) {
	m.repositories.Lock()
	defer m.repositories.Unlock()
	m.branched = append(m.branched, r)
	return &sandboxv1.CreateBranchResponse{}, m.branching
}

func (*remote) RemoveRepository(context.Context, *sandboxv1.RemoveRepositoryRequest) (*sandboxv1.RemoveRepositoryResponse, error) {
	return &sandboxv1.RemoveRepositoryResponse{}, nil
}

func (m *remote) set(change func(*remote)) {
	m.repositories.Lock()
	defer m.repositories.Unlock()
	change(m)
}

const reading = `
fallback: {steps: [{tools: [{name: Read, input: {path: x}}]}, {text: [done]}]}
`

func withRepository(c *session.Config) {
	spec := c.Agents["tester"]
	spec.Repositories = []agent.Repository{{URL: "https://git.example.com/org/app.git", Ref: "main", Push: agent.PushTurnEnd}}
	c.Agents["tester"] = spec
}

// untilEvent follows the session until an event is as wanted.
func (f *fixture) untilEvent(t *testing.T, session string, want func(*sessionv1.Event) bool) *sessionv1.Event {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	stream, err := f.StreamEvents(ctx, &sessionv1.StreamEventsRequest{Parent: session})
	if err != nil {
		t.Fatal(err)
	}
	for {
		r, err := stream.Recv()
		if err != nil {
			t.Fatal(err)
		}
		if e := r.GetEvent(); e != nil && want(e) {
			return e
		}
	}
}

func TestAnAgentsRepositoryIsClonedOnceAndPushedAtEachTurnsEnd(t *testing.T) {
	t.Parallel()
	f := start(t, reading, withRepository)
	ctx := t.Context()
	s := f.session(ctx, t)
	branch := "fairlead/" + strings.TrimPrefix(s, "sessions/")
	turn := f.turn(ctx, t, s, "one")
	pushed := f.untilEvent(t, s, func(e *sessionv1.Event) bool { return e.GetRepositoryPushed() != nil })
	if p := pushed.GetRepositoryPushed(); p.Directory != "app" || p.Ref != "refs/heads/"+branch || pushed.Turn != turn[0].Turn {
		t.Errorf("told %v", pushed)
	}
	f.turn(ctx, t, s, "two")
	f.peers.set(func(m *remote) {
		if len(m.pushers) == 0 || slices.ContainsFunc(m.pushers, func(user string) bool { return user != principal.Default().User }) {
			t.Errorf("%q pushed: others see other mounts", m.pushers)
		}
		if len(m.clones) != 1 {
			t.Errorf("%d clones, want one", len(m.clones))
		}
		for _, c := range m.clones {
			if c.Branch != branch || c.Ref != "main" || c.Directory != "app" {
				t.Errorf("asked for %v", c)
			}
		}
	})
}

func TestARepositoryThatCannotBeClonedIsTold(t *testing.T) {
	t.Parallel()
	f := start(t, reading, withRepository)
	ctx := t.Context()
	f.peers.set(func(m *remote) {
		m.refusal = apierr.Of(codes.PermissionDenied, sandboxv1.ErrorReason_ERROR_REASON_REMOTE_NOT_ALLOWED, "the remote is not allowed")
	})
	s := f.session(ctx, t)
	events := f.turn(ctx, t, s, "one")
	wantWarning(t, events, "REPOSITORY_NOT_CLONED")
	if end := finished(t, events); end.State != sessionv1.TurnState_TURN_STATE_COMPLETE {
		t.Errorf("the turn ended %v", end)
	}
	all, err := f.ListMessages(ctx, &sessionv1.ListMessagesRequest{Parent: s})
	if err != nil {
		t.Fatal(err)
	}
	if !slices.ContainsFunc(all.Messages, func(m *sessionv1.Message) bool { return strings.Contains(m.String(), "could not be cloned") }) {
		t.Errorf("the model was not told: %v", all.Messages)
	}
	f.peers.set(func(m *remote) { m.refusal = nil })
	if again := f.turn(ctx, t, s, "two"); slices.ContainsFunc(again, func(e *sessionv1.Event) bool { return e.GetWarning() != nil }) {
		t.Errorf("the next turn warns: %s", names(again))
	}
	f.peers.set(func(m *remote) {
		if len(m.clones) != 1 {
			t.Errorf("%d clones in the next turn", len(m.clones))
		}
	})
}

func TestASessionThatBeganWithARepositoryGetsABranchOfItsOwn(t *testing.T) {
	t.Parallel()
	f := start(t, reading, withRepository)
	ctx := t.Context()
	f.peers.set(func(m *remote) {
		m.refusal = apierr.Of(codes.AlreadyExists, sandboxv1.ErrorReason_ERROR_REASON_REPOSITORY_EXISTS, "it is there")
	})
	s := f.session(ctx, t)
	quiet := func() {
		t.Helper()
		for _, e := range f.turn(ctx, t, s, "one") {
			if e.GetWarning() != nil {
				t.Errorf("it warns: %v", e)
			}
		}
	}
	quiet()
	f.peers.set(func(m *remote) {
		if len(m.branched) != 1 || m.branched[0].Directory != "app" || m.branched[0].Branch != "fairlead/"+strings.TrimPrefix(s, "sessions/") {
			t.Errorf("branches %v", m.branched)
		}
	})
	f.peers.set(func(m *remote) { // it has the state of another user
		m.branching = apierr.Of(codes.FailedPrecondition, sandboxv1.ErrorReason_ERROR_REASON_BRANCH_EXISTS, "as it is")
	})
	quiet()
}

// A rewind takes away what was cloned since, and sandbox voids the clone's answer: the next
// turn asks for it, by the same call id, as often as it does else.
func TestARepositoryThatARewindTakesAwayIsClonedAgainOnce(t *testing.T) {
	t.Parallel()
	f := start(t, reading, withRepository)
	ctx := t.Context()
	s := f.session(ctx, t)
	made, err := f.points().CreateCheckpoint(ctx, &sessionv1.CreateCheckpointRequest{Parent: s})
	if err != nil {
		t.Fatal(err)
	}
	for n := range 3 {
		f.turn(ctx, t, s, "go")
		f.turn(ctx, t, s, "go on")
		f.peers.set(func(m *remote) {
			if len(m.clones) != 1 || m.cloned != n+1 {
				t.Errorf("cloned %d times by %d calls after %d rewinds", m.cloned, len(m.clones), n)
			}
			clear(m.clones)
		})
		f.rewind(ctx, t, &sessionv1.RewindSessionRequest{Name: s, Checkpoint: made.Checkpoint.Name})
	}
}

func TestABranchThatASessionCannotBeGivenIsTold(t *testing.T) {
	t.Parallel()
	f := start(t, reading, withRepository)
	ctx := t.Context()
	f.peers.set(func(m *remote) {
		m.refusal = apierr.Of(codes.AlreadyExists, sandboxv1.ErrorReason_ERROR_REASON_REPOSITORY_EXISTS, "it is there")
		m.branching = apierr.Of(codes.FailedPrecondition, sandboxv1.ErrorReason_ERROR_REASON_GIT_FAILED, "the index is locked")
	})
	s := f.session(ctx, t)
	wantWarning(t, f.turn(ctx, t, s, "one"), "REPOSITORY_BRANCH_NOT_MADE")
	messages := f.messages(ctx, t, s)
	if !slices.ContainsFunc(messages, func(m *sessionv1.Message) bool {
		return strings.Contains(m.String(), "could not be made in repos/app") && strings.Contains(m.String(), "the index is locked")
	}) {
		t.Errorf("the model is not told why: %v", messages)
	}
	f.peers.set(func(m *remote) { m.branching = nil })
	for _, e := range f.turn(ctx, t, s, "two") {
		if e.GetWarning() != nil {
			t.Errorf("it warns again: %v", e)
		}
	}
}

func TestAPushThatIsRejectedIsToldOnce(t *testing.T) {
	t.Parallel()
	f := start(t, reading, withRepository)
	ctx := t.Context()
	f.peers.set(func(m *remote) {
		m.pushRefusal = apierr.Of(codes.Aborted, sandboxv1.ErrorReason_ERROR_REASON_PUSH_REJECTED, "fetch first")
	})
	s := f.session(ctx, t)
	f.turn(ctx, t, s, "one")
	e := f.untilEvent(t, s, func(e *sessionv1.Event) bool { return e.GetRepositoryPushFailed() != nil })
	if p := e.GetRepositoryPushFailed(); p.Reason != "PUSH_REJECTED" || p.Message != "fetch first" || p.Branch == "" {
		t.Errorf("told %v", p)
	}
	f.peers.set(func(m *remote) {
		if len(m.pushes) != 1 || !m.pushes[0].OnlyNew {
			t.Errorf("pushed %v", m.pushes)
		}
	})
}

func TestATurnWithoutToolsDoesNotWaitForAClone(t *testing.T) {
	t.Parallel()
	f := start(t, "fallback: {steps: [{text: [hello]}]}\n", withRepository)
	f.peers.set(func(m *remote) {
		m.refusal = apierr.Of(codes.FailedPrecondition, sandboxv1.ErrorReason_ERROR_REASON_GIT_FAILED, "away")
	})
	events := f.turn(t.Context(), t, f.session(t.Context(), t), "hi")
	if end := finished(t, events); end.FinalText != "hello" {
		t.Errorf("the turn ended %v", end)
	}
	for _, e := range events {
		if e.GetWarning() != nil {
			t.Errorf("it warns: %v", e)
		}
	}
}

func TestRepositoriesAreKeptOverTheAPI(t *testing.T) {
	t.Parallel()
	f := start(t, asking)
	ctx := t.Context()
	api := sessionv1.NewRepositoryServiceClient(f.conn)
	s := f.session(ctx, t)
	made, err := api.AddRepository(ctx, &sessionv1.AddRepositoryRequest{Parent: s, Url: "https://git.example.com/org/app", SessionBranch: true})
	if err != nil || made.Repository.Name != s+"/repositories/app" || made.Repository.Branch != "fairlead/"+strings.TrimPrefix(s, "sessions/") {
		t.Fatalf("made %v, %v", made, err)
	}
	for name, r := range map[string]*sessionv1.AddRepositoryRequest{
		"neither a url nor an id": {Parent: s}, "two branches": {Parent: s, Url: "https://x/y", Branch: "b", SessionBranch: true},
	} {
		if _, err := api.AddRepository(ctx, r); apierr.Code(err) != codes.InvalidArgument {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := api.ListRepositories(ctx, &sessionv1.ListRepositoriesRequest{Parent: "sessions/none"}); !apierr.Is(err, sessionv1.ErrorReason_ERROR_REASON_SESSION_NOT_FOUND) {
		t.Errorf("a session that is not there: %v", err)
	}
	f.create(ctx, t, s, "write")
	f.waitForAsk(ctx, t, s)
	if _, err := api.RemoveRepository(ctx, &sessionv1.RemoveRepositoryRequest{Name: made.Repository.Name}); !apierr.Is(err, sessionv1.ErrorReason_ERROR_REASON_TURN_ACTIVE) {
		t.Errorf("during a turn: %v", err)
	}
}

// A request acts for the holder of the session, even if the holder changes meanwhile.
func TestARepositoryRequestOutlivesAHolder(t *testing.T) {
	t.Parallel()
	f := start(t, reading)
	ctx := t.Context()
	name := f.session(ctx, t)
	api := sessionv1.NewRepositoryServiceClient(f.conn)
	for refusals, fine := range map[int]bool{3: true, 0: false} {
		stale := apierr.Of(codes.FailedPrecondition, sandboxv1.ErrorReason_ERROR_REASON_STALE_EPOCH, "another holds the session")
		f.peers.set(func(m *remote) { m.asked, m.refusal, m.refusals = 0, stale, refusals })
		_, err := api.AddRepository(ctx, &sessionv1.AddRepositoryRequest{Parent: name, Url: "https://git.example.com/org/app"})
		if (err == nil) != fine || !fine && !apierr.Is(err, sandboxv1.ErrorReason_ERROR_REASON_STALE_EPOCH) {
			t.Errorf("refused %d times: %v", refusals, err)
		}
		f.peers.set(func(m *remote) {
			if m.asked > 10 {
				t.Errorf("it was asked %d times", m.asked)
			}
		})
	}
}
