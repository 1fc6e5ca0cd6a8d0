package a2a

import (
	"encoding/json"
	"fmt"
	"net/url"
	"path"
	"slices"
	"strings"

	log "github.com/fairlead/fairlead/clients/go/fold"
	commonv1 "github.com/fairlead/fairlead/gen/go/fairlead/common/v1"
	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
)

// ref names a task and where it is.
type ref struct {
	// turn is the turn's name, and context the protocol's id of the session.
	turn, context string
	// base is the URL of the server, for the addresses of files.
	base string
}

// session returns the name of the task's session.
func (r ref) session() string {
	session, _, _ := strings.Cut(r.turn, "/turns/")
	return session
}

// id returns the id of the task: those of session and turn, which have no dots.
func (r ref) id() string {
	session, turn, _ := strings.Cut(strings.TrimPrefix(r.turn, "sessions/"), "/turns/")
	return session + "." + turn
}

// fold is a task as far as a log goes. It is a pure function of the events of the turn: any replica at any time says
// the same.
type fold struct {
	ref
	status    status
	metadata  object // what the turn took, at its end
	history   []message
	artifacts []*artifact
	texts     map[int32]*spoken // by step
	asks      log.Asks
	asked     []*ask          // answered or not
	asking    bool            // the turn waits for what is open
	answered  map[string]bool // what the request at hand answers, by key
	last      int64           // the number of the last event
	out       []update
}

// spoken is the text of a step as an artifact. The builder keeps deltas from copying what they are added to.
type spoken struct {
	artifact *artifact
	said     strings.Builder
}

func newFold(r ref) *fold {
	return &fold{ref: r, texts: map[int32]*spoken{}, status: status{State: stateSubmitted}}
}

// add takes an event of the log, and returns what the protocol says of it.
func (f *fold) add(e *sessionv1.Event) []update {
	f.out = nil
	if e.GetTurn() != f.turn || terminal(f.status.State) {
		return nil
	}
	f.last = e.GetSeq()
	switch b := e.GetBody().(type) {
	case *sessionv1.Event_TurnQueued:
		f.status.Timestamp = stamp(e.GetTime())
		if parts := partsOf(b.TurnQueued.GetContent()); len(parts) > 0 {
			f.history = append(f.history, f.message(roleUser, "request", parts...))
		}
	case *sessionv1.Event_TurnStarted:
		f.set(e, stateWorking, nil)
	case *sessionv1.Event_TurnFinished:
		f.finish(e, b.TurnFinished)
	case *sessionv1.Event_StepRestarted:
		if a := f.texts[e.GetStep()]; a != nil {
			f.artifacts = slices.DeleteFunc(f.artifacts, func(b *artifact) bool { return a.artifact == b })
			delete(f.texts, e.GetStep())
			f.emit(*a.artifact, "", false, false) // what clients have of it is void
		}
	case *sessionv1.Event_StepFinished:
		if a := f.texts[e.GetStep()]; a != nil {
			f.emit(*a.artifact, "", true, true)
		}
	case *sessionv1.Event_TextDelta:
		f.say(e.GetStep(), b.TextDelta.GetText())
	case *sessionv1.Event_ToolCallArguments:
		m := f.message(roleAgent, b.ToolCallArguments.GetCallId(), textPart("The agent uses "+b.ToolCallArguments.GetTool()+"."))
		f.set(e, stateWorking, &m)
	case *sessionv1.Event_ArtifactsChanged:
		for _, a := range b.ArtifactsChanged.GetArtifacts() {
			f.file(a)
		}
	}
	f.foldAsks(e)
	return f.out
}

// task returns the task.
func (f *fold) task() task {
	t := task{ID: f.id(), ContextID: f.context, Status: f.status, History: slices.Clone(f.history), Metadata: f.metadata}
	for _, a := range f.artifacts {
		c := *a
		c.Parts = slices.Clone(a.Parts)
		if s := a.Parts[0].Text; s != nil {
			c.Parts[0] = textPart(*s) // which the next event changes
		}
		t.Artifacts = append(t.Artifacts, c)
	}
	return t
}

// message returns a message of the task, with an id of its own in it.
func (f *fold) message(role, id string, parts ...part) message {
	return message{MessageID: f.id() + "." + id, ContextID: f.context, TaskID: f.id(), Role: role, Parts: parts}
}

// set changes the state.
func (f *fold) set(e *sessionv1.Event, state string, m *message) {
	f.status = status{State: state, Message: m, Timestamp: stamp(e.GetTime())}
	f.out = append(f.out, update{Status: &statusUpdate{TaskID: f.id(), ContextID: f.context, Status: f.status}})
}

// emit says that an artifact has changed: what it has now, or what was appended.
func (f *fold) emit(a artifact, added string, appended, last bool) {
	if a.Parts[0].Text != nil {
		a.Parts = []part{textPart(added)}
	}
	f.out = append(f.out, update{Artifact: &artifactUpdate{TaskID: f.id(), ContextID: f.context, Artifact: a, Append: appended, LastChunk: last}})
}

// say appends to the text of a step. Each step is an artifact of its own: the last one is the answer.
func (f *fold) say(step int32, text string) {
	if text == "" {
		return
	}
	a := f.texts[step]
	appended := a != nil
	if a == nil {
		a = &spoken{artifact: &artifact{ID: fmt.Sprintf("text-%d", step), Name: "answer", Parts: []part{textPart("")}}}
		f.texts[step] = a
		f.artifacts = append(f.artifacts, a.artifact)
	}
	a.said.WriteString(text)
	*a.artifact.Parts[0].Text = a.said.String() // no copy
	f.emit(*a.artifact, text, appended, false)
}

// put adds an artifact, or replaces the one with its id.
func (f *fold) put(a artifact) {
	i := slices.IndexFunc(f.artifacts, func(b *artifact) bool { return b.ID == a.ID })
	if i < 0 {
		f.artifacts = append(f.artifacts, &a)
	} else {
		f.artifacts[i] = &a
	}
	f.emit(a, "", false, true)
}

// file adds a file that the turn made.
func (f *fold) file(of *sessionv1.Artifact) {
	var segments []string
	for s := range strings.SplitSeq(of.GetPath(), "/") {
		segments = append(segments, url.PathEscape(s))
	}
	at := f.base + "/v1/" + f.session() + "/files/" + strings.Join(segments, "/")
	f.put(artifact{
		ID: "file-" + of.GetPath(), Name: path.Base(of.GetPath()), Metadata: object{"size": of.GetSize(), "etag": of.GetEtag(), "uri": of.GetUri()},
		Parts: []part{{URL: &at, Filename: path.Base(of.GetPath()), MediaType: of.GetMediaType()}},
	})
}

// finish ends the task.
func (f *fold) finish(e *sessionv1.Event, t *sessionv1.TurnFinished) {
	if out := t.GetOutputJson(); out != "" && json.Valid([]byte(out)) {
		f.put(artifact{ID: "output", Name: "output", Parts: []part{{Data: json.RawMessage(out), MediaType: "application/json"}}})
	}
	var why *message
	if t.GetError() != nil {
		m := f.message(roleAgent, "end", textPart(t.GetError().GetMessage()), dataPart(object{"reason": t.GetError().GetReason()}))
		why = &m
	}
	f.set(e, stateOf(t.GetState()), why)
	f.metadata = object{
		"durationMs": t.GetDurationMs(), "model": t.GetModel(), "steps": t.GetSteps(), "toolErrors": t.GetToolErrors(), "usage": usageOf(t.GetUsage()),
		"session": object{"turns": t.GetSessionTurns(), "usage": usageOf(t.GetSessionUsage())},
	}
	f.out[len(f.out)-1].Status.Metadata = f.metadata
}

func usageOf(u *sessionv1.Usage) object {
	return object{
		"inputTokens": u.GetInputTokens(), "outputTokens": u.GetOutputTokens(), "cacheReadTokens": u.GetCacheReadTokens(), "cacheWriteTokens": u.GetCacheWriteTokens(),
		"thinkingTokens": u.GetThinkingTokens(), "costNanoUsd": u.GetCostNanoUsd(),
	}
}

// stateOf returns the state of a task by that of its turn, except for what a turn waits for.
func stateOf(s sessionv1.TurnState) string {
	switch s {
	case sessionv1.TurnState_TURN_STATE_QUEUED:
		return stateSubmitted
	case sessionv1.TurnState_TURN_STATE_COMPLETE:
		return stateCompleted
	case sessionv1.TurnState_TURN_STATE_INTERRUPTED:
		return stateCanceled
	case sessionv1.TurnState_TURN_STATE_FAILED, sessionv1.TurnState_TURN_STATE_PARTIAL:
		return stateFailed
	default:
		return stateWorking
	}
}

// partsOf returns what a user said.
func partsOf(content []*commonv1.Content) (all []part) {
	for _, c := range content {
		switch k := c.GetKind().(type) {
		case *commonv1.Content_Text:
			all = append(all, textPart(k.Text.GetText()))
		case *commonv1.Content_Image:
			all = append(all, mediaPart(k.Image))
		case *commonv1.Content_Document:
			all = append(all, mediaPart(k.Document))
		case *commonv1.Content_Audio:
			all = append(all, mediaPart(k.Audio))
		}
	}
	return all
}

// mediaPart names a file. Its content stays in the session: the client has it.
func mediaPart(m *commonv1.Media) part {
	p := part{Filename: m.GetTitle(), MediaType: m.GetMediaType()}
	if u := m.GetUri(); u != "" {
		p.URL = &u
		return p
	}
	s := fmt.Sprintf("(a file of %d bytes)", len(m.GetData()))
	p.Text, p.MediaType = &s, "text/plain"
	return p
}
