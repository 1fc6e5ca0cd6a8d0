package wires

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/fairlead/fairlead/services/allinone/chaos/internal/record"
)

// a2a is another agent, which watches the tasks of a context: it lists them and subscribes to the one that goes on, over
// one binding of the protocol or the other. The protocol has the names of tools, and neither arguments nor results.
type a2a struct {
	Target
	tasks map[string]*task
	whole []record.Shown // tasks whose end it saw
}

// task is what a client knows of a task.
type task struct {
	texts map[int]string    // of the artifacts, by step
	calls map[string]string // the tools, by call
	open  []string          // calls of the step that goes on, which may begin again
	begun bool              // the client has followed it since before it began
}

// artifact is an Artifact of the protocol.
type artifact struct {
	ID    string `json:"artifactId"`
	Parts []struct{ Text string }
}

// progress is a TaskStatus.
type progress struct {
	State   string
	Message struct {
		ID    string `json:"messageId"`
		Parts []struct{ Text string }
	}
}

// change is a StreamResponse, or what JSON-RPC puts around one.
type change struct {
	Result *change
	Task   *struct {
		ID        string
		Status    progress
		Artifacts []artifact
	}
	StatusUpdate *struct {
		TaskID string
		Status progress
	}
	ArtifactUpdate *struct {
		TaskID   string
		Artifact artifact
		Append   bool
		Last     bool `json:"lastChunk"`
	}
}

// unsupported is the code in JSON-RPC of a subscription to a task that has ended.
const unsupported = -32004

var version = map[string]string{"A2A-Version": "1.0"}

// listed is a task in a list.
type listed struct {
	ID        string
	Status    progress
	Artifacts []artifact
}

// list reads the tasks of the session.
func (a *a2a) list(ctx context.Context, artifacts bool) (all []listed, err error) {
	query := url.Values{"contextId": {strings.TrimPrefix(a.Session, "sessions/")}, "pageSize": {"100"}, "includeArtifacts": {strconv.FormatBool(artifacts)}}
	for {
		var page struct {
			Tasks []listed
			Next  string `json:"nextPageToken"`
		}
		if err := a.object(ctx, "/a2a/"+a.Agent+"/tasks?"+query.Encode(), &page, version); err != nil {
			return nil, err
		}
		all = append(all, page.Tasks...)
		if page.Next == "" {
			return all, nil
		}
		query.Set("pageToken", page.Next)
	}
}

func ended(state string) bool {
	return state == "TASK_STATE_COMPLETED" || state == "TASK_STATE_FAILED" || state == "TASK_STATE_CANCELED"
}

func asks(state string) bool {
	return state == "TASK_STATE_INPUT_REQUIRED" || state == "TASK_STATE_AUTH_REQUIRED"
}

// Follow implements Follower. The other way to come back is JSON-RPC.
func (a *a2a) Follow(ctx context.Context, other bool) error {
	tasks, err := a.list(ctx, false)
	if err != nil {
		return err
	}
	tasks = slices.DeleteFunc(tasks, func(t listed) bool { return ended(t.Status.State) })
	if len(tasks) == 0 {
		return nil
	}
	waits := func(t listed) int { // one that runs, or else the first that waits
		if t.Status.State == "TASK_STATE_SUBMITTED" {
			return 1
		}
		return 0
	}
	id := slices.MinFunc(tasks, func(x, y listed) int { return cmp.Or(cmp.Compare(waits(x), waits(y)), cmp.Compare(x.ID, y.ID)) }).ID
	resp, err := a.subscribe(ctx, id, other)
	if err != nil || resp == nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	return frames(resp.Body, func(f frame) (bool, error) {
		var c change
		if err := json.Unmarshal(f.data, &c); err != nil {
			return false, fmt.Errorf("an update that cannot be read: %w: %s", err, f.data)
		}
		if c.Result != nil {
			c = *c.Result
		}
		return a.add(&c), nil
	})
}

// subscribe follows a task; nil: it has ended meanwhile.
func (a *a2a) subscribe(ctx context.Context, id string, rpc bool) (*http.Response, error) {
	at := "/a2a/" + a.Agent
	if !rpc {
		resp, err := a.get(ctx, at+"/tasks/"+url.PathEscape(id)+":subscribe", version)
		if err != nil && strings.Contains(err.Error(), "UNSUPPORTED_OPERATION") {
			return nil, nil //nolint:nilnil // there is nothing to follow
		}
		return resp, err
	}
	call := fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"SubscribeToTask","params":{"id":%q}}`, id)
	resp, err := a.open(ctx, http.MethodPost, at, strings.NewReader(call), map[string]string{"A2A-Version": "1.0", "Content-Type": "application/json"})
	if err != nil || strings.HasPrefix(resp.Header.Get("Content-Type"), "text/event-stream") {
		return resp, err
	}
	defer func() { _ = resp.Body.Close() }()
	var refused struct {
		Error struct {
			Code    int
			Message string
		}
	}
	if err := json.NewDecoder(resp.Body).Decode(&refused); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrAgain, err)
	}
	if refused.Error.Code == unsupported {
		return nil, nil //nolint:nilnil // there is nothing to follow
	}
	return nil, fmt.Errorf("SubscribeToTask: %d: %s", refused.Error.Code, refused.Error.Message)
}

// add takes an update. It reports whether more come.
func (a *a2a) add(c *change) bool {
	switch {
	case c.Task != nil:
		t := a.tasks[c.Task.ID]
		if t == nil || !t.begun {
			t = &task{calls: map[string]string{}, begun: c.Task.Status.State == "TASK_STATE_SUBMITTED"}
			a.tasks[c.Task.ID] = t
		} else if c.Task.Status.State != "TASK_STATE_SUBMITTED" {
			t.begun = false // calls may have been missed
		}
		t.drop()
		t.texts = map[int]string{}
		for _, artifact := range c.Task.Artifacts {
			t.put(artifact, false)
		}
		return a.status(c.Task.ID, c.Task.Status, true)
	case c.StatusUpdate != nil:
		return a.status(c.StatusUpdate.TaskID, c.StatusUpdate.Status, false)
	case c.ArtifactUpdate != nil:
		t := a.tasks[c.ArtifactUpdate.TaskID]
		t.put(c.ArtifactUpdate.Artifact, c.ArtifactUpdate.Append)
		switch {
		case c.ArtifactUpdate.Last:
			t.open = nil
		case !c.ArtifactUpdate.Append:
			t.drop()
		}
	}
	return true
}

// drop forgets the calls of a step that began again.
func (t *task) drop() {
	for _, call := range t.open {
		delete(t.calls, call)
	}
	t.open = nil
}

// put takes an artifact. Those that are no texts of the agent are files.
func (t *task) put(a artifact, appended bool) {
	step, ok := strings.CutPrefix(a.ID, "text-")
	n, err := strconv.Atoi(step)
	if !ok || err != nil {
		return
	}
	if !appended {
		t.texts[n] = ""
	}
	for _, p := range a.Parts {
		t.texts[n] += p.Text
	}
}

// status takes the state of a task. It reports whether more updates come.
func (a *a2a) status(id string, s progress, first bool) bool {
	t := a.tasks[id]
	if len(s.Message.Parts) > 0 {
		if tool, ok := strings.CutPrefix(s.Message.Parts[0].Text, "The agent uses "); ok {
			call := strings.TrimPrefix(s.Message.ID, id+".")
			t.calls[call], t.open = strings.TrimSuffix(tool, "."), append(t.open, call)
		}
	}
	if ended(s.State) {
		shown := t.shown(id)
		shown.Live = true
		a.whole = append(a.whole, shown)
		delete(a.tasks, id)
		return false
	}
	return first || !asks(s.State)
}

// shown returns what the client shows of a task.
func (t *task) shown(id string) record.Shown {
	_, turn, _ := strings.Cut(id, ".")
	shown := record.Shown{Turn: turn, Lacks: !t.begun}
	steps := make([]int, 0, len(t.texts))
	for n := range t.texts {
		steps = append(steps, n)
	}
	slices.Sort(steps)
	for _, n := range steps {
		shown.Text += t.texts[n]
	}
	for call, tool := range t.calls {
		shown.Call(call).Tool = tool
	}
	return shown
}

// End implements Follower.
func (a *a2a) End(ctx context.Context, _ int64) ([]record.Shown, error) {
	tasks, err := a.list(ctx, true)
	if err != nil {
		return nil, err
	}
	all := a.whole
	for _, l := range tasks {
		t := &task{texts: map[int]string{}}
		for _, artifact := range l.Artifacts {
			t.put(artifact, false)
		}
		all = append(all, t.shown(l.ID))
	}
	return all, nil
}
