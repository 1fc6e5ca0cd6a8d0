package openaiagents

import (
	"encoding/base64"
	"errors"
	"io"
	"math"
	"mime"
	"net/http"
	"path"
	"slices"
	"strings"
	"time"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/gateway/internal/wires/resource"
	"github.com/fairlead/fairlead/services/gateway/internal/wires/wire"
)

// artifact is a file that a turn has left, in the folder for results.
type artifact struct {
	*sessionv1.Artifact
	turn string
	at   int64 // in seconds
}

const artifactPrefix = "art_"

func artifactID(path string) string {
	return artifactPrefix + base64.RawURLEncoding.EncodeToString([]byte(path))
}

func (a artifact) json(session string) map[string]any {
	return map[string]any{
		"id": artifactID(a.GetPath()), "object": "agent.session.artifact", "session_id": wire.LastPart(session), "turn_id": a.turn, "environment_id": environmentID(session),
		"path": "/workspace/" + a.GetPath(), "size_bytes": a.GetSize(), "created_at": a.at,
	}
}

// artifacts returns the files of a session that turns have left and that are there, each with its latest turn.
func (s *artifactsServer) artifacts(c *request, session string) (out []artifact, err error) {
	log, err := s.wire.Events(c.R.Context(), session, 0, math.MaxInt64)
	if err != nil {
		return nil, err
	}
	ctx, cancel := s.within(c)
	defer cancel()
	there := map[string]*sessionv1.Artifact{}
	req := &sessionv1.ListSessionArtifactsRequest{Parent: session, PageSize: 1000}
	for a, err := range wire.All(ctx, s.files.ListSessionArtifacts, req, (*sessionv1.ListSessionArtifactsResponse).GetArtifacts) {
		if err != nil {
			return nil, err
		}
		there[a.GetPath()] = a
	}
	for _, ev := range log {
		for _, changed := range ev.GetArtifactsChanged().GetArtifacts() {
			a, ok := there[changed.GetPath()]
			if !ok {
				continue
			}
			out = slices.DeleteFunc(out, func(before artifact) bool { return before.GetPath() == a.GetPath() })
			out = append(out, artifact{a, wire.LastPart(ev.GetTurn()), ev.GetTime().GetSeconds()})
		}
	}
	return out, nil
}

func (s *artifactsServer) listArtifacts(c *request) (any, error) {
	l, err := c.list()
	if err != nil {
		return nil, err
	}
	session := sessionName(c.ID[0])
	all, err := s.artifacts(c, session)
	if err != nil {
		return nil, err
	}
	var whole []entry
	for _, a := range all {
		if id := l.query.Get("environment_id"); id == "" || id == environmentID(session) {
			whole = append(whole, entry{artifactID(a.GetPath()), a.json(session)})
		}
	}
	return l.page(whole)
}

// artifact finds the artifact of a request.
func (s *artifactsServer) artifact(c *request) (artifact, error) {
	all, err := s.artifacts(c, sessionName(c.ID[0]))
	if err != nil {
		return artifact{}, err
	}
	for _, a := range all {
		if artifactID(a.GetPath()) == c.ID[1] {
			return a, nil
		}
	}
	return artifact{}, resource.None("artifact", c.ID[1])
}

func (s *artifactsServer) getArtifact(c *request) (any, error) {
	a, err := s.artifact(c)
	if err != nil {
		return nil, err
	}
	return a.json(sessionName(c.ID[0])), nil
}

func (s *artifactsServer) deleteArtifact(c *request) (any, error) {
	a, err := s.artifact(c)
	if err != nil {
		return nil, err
	}
	ctx, cancel := s.within(c)
	defer cancel()
	if _, err := s.files.DeleteSessionFile(ctx, &sessionv1.DeleteSessionFileRequest{Parent: sessionName(c.ID[0]), Path: a.GetPath(), RequestId: c.Key}); err != nil {
		return nil, err
	}
	return map[string]any{"id": c.ID[1], "object": "agent.session.artifact.deleted", "deleted": true}, nil
}

// artifactContent answers with the bytes of a file.
func (s *artifactsServer) artifactContent(c *request) (any, error) {
	a, err := s.artifact(c)
	if err != nil {
		return nil, err
	}
	from, err := s.files.ReadSessionFile(c.R.Context(), &sessionv1.ReadSessionFileRequest{Parent: sessionName(c.ID[0]), Path: a.GetPath()})
	if err != nil {
		return nil, err
	}
	if _, err := from.Recv(); err != nil { // the first message describes the file
		return nil, err
	}
	h := c.W.Header()
	h.Set("Content-Type", "application/octet-stream")
	h.Set("Content-Disposition", mime.FormatMediaType("attachment", map[string]string{"filename": path.Base(strings.TrimSuffix(a.GetPath(), "/"))}))
	h.Set("Content-Security-Policy", "default-src 'none'; sandbox")
	control := http.NewResponseController(c.W)
	for {
		m, err := from.Recv()
		if errors.Is(err, io.EOF) {
			return nil, nil
		}
		if err != nil {
			panic(http.ErrAbortHandler) // an answer that ends well would look whole
		}
		_ = control.SetWriteDeadline(time.Now().Add(s.wire.WriteTimeout))
		if _, err := c.W.Write(m.GetData()); err != nil {
			return nil, nil //nolint:nilerr // the client has gone
		}
	}
}
