package integration

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	commonv1 "github.com/fairlead/fairlead/gen/go/fairlead/common/v1"
	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/internal/kit/apierr"
	"github.com/fairlead/fairlead/services/internal/kit/config"
	"github.com/fairlead/fairlead/services/internal/kit/media"
	"github.com/fairlead/fairlead/services/internal/kit/media/mediatest"
	"github.com/fairlead/fairlead/services/internal/kit/pg/pgtest"
	"github.com/fairlead/fairlead/services/session"
	"github.com/fairlead/fairlead/services/session/internal/agent"
	"github.com/fairlead/fairlead/services/session/internal/model/catalog"
	"github.com/fairlead/fairlead/services/session/modeltest"
)

func picture(mediaType string, data []byte) *commonv1.Content {
	return &commonv1.Content{Kind: &commonv1.Content_Image{Image: &commonv1.Media{MediaType: mediaType, Data: data}}}
}

func document(mediaType string, data []byte) *commonv1.Content {
	return &commonv1.Content{Kind: &commonv1.Content_Document{Document: &commonv1.Media{MediaType: mediaType, Data: data}}}
}

func words(s string) *commonv1.Content {
	return &commonv1.Content{Kind: &commonv1.Content_Text{Text: &commonv1.Text{Text: s}}}
}

var png = mediatest.Picture("image/png")

// badContents are messages that no provider takes, by the field at fault.
func badContents() map[string][]*commonv1.Content {
	many := make([]*commonv1.Content, media.MaxCount+1)
	for i := range many {
		many[i] = picture("image/png", png)
	}
	large := make([]*commonv1.Content, 6)
	for i := range large {
		large[i] = document("text/plain", make([]byte, media.MaxTogether/6+1))
	}
	return map[string][]*commonv1.Content{
		"content[0].image.data":          {picture("image/png", []byte("no picture"))},
		"content[1].image.data":          {words("look"), picture("image/jpeg", png)},
		"content[0].image.media_type":    {picture("image/bmp", []byte("BM"))},
		"content[2].image.media_type":    {words("a"), words("b"), picture("image/svg+xml", []byte("<svg/>"))},
		"content[1].document.data":       {words("read"), document(media.PDF, []byte("no PDF"))},
		"content":                        many,
		"content (together)":             large,
		"content[0].image.data (header)": {picture("image/png", png[:20])},
		"content[0].image.data (pixels)": {picture("image/png", mediatest.Sized(9000, 1))},
	}
}

func TestContentThatNoModelTakesIsRefusedByFieldAtEveryDoor(t *testing.T) {
	t.Parallel()
	f := start(t, asking)
	ctx := t.Context()
	doors := map[string]func(s string, content []*commonv1.Content) error{
		"CreateTurn": func(s string, c []*commonv1.Content) error {
			_, err := f.CreateTurn(ctx, &sessionv1.CreateTurnRequest{Parent: s, Content: c})
			return err
		},
		"RunTurn": func(s string, c []*commonv1.Content) error {
			stream, err := f.RunTurn(ctx, &sessionv1.RunTurnRequest{Parent: s, Content: c})
			if err == nil {
				_, err = stream.Recv()
			}
			return err
		},
		"SubmitToolResult": func(s string, c []*commonv1.Content) error {
			_, err := f.SubmitToolResult(ctx, &sessionv1.SubmitToolResultRequest{Parent: s, CallId: "c", Content: c})
			return err
		},
		"Converse": func(s string, c []*commonv1.Content) error { return f.converseTurn(ctx, t, s, c) },
	}
	for door, send := range doors {
		s := f.session(ctx, t)
		for want, content := range badContents() {
			err := send(s, content)
			field, _, _ := strings.Cut(want, " ")
			d, _ := apierr.Detail[*errdetails.BadRequest](err)
			if status.Code(err) != codes.InvalidArgument || len(d.GetFieldViolations()) != 1 || d.FieldViolations[0].Field != field {
				t.Errorf("%s, %s: %v, %v", door, want, err, d)
			}
		}
		if end := finished(t, f.turn(ctx, t, s, "hello")); end.State != complete {
			t.Errorf("%s: the next message ended %v", door, end)
		}
	}
}

// converseTurn sends content on a conversation, and gives why it was refused.
func (f *fixture) converseTurn(ctx context.Context, t *testing.T, s string, c []*commonv1.Content) error {
	t.Helper()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stream, err := f.Converse(ctx)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range []*sessionv1.ConverseRequest{
		{Kind: &sessionv1.ConverseRequest_Open{Open: &sessionv1.ConverseOpen{Session: s}}},
		{Kind: &sessionv1.ConverseRequest_CreateTurn{CreateTurn: &sessionv1.CreateTurnRequest{Parent: s, Content: c}}},
	} {
		if err := stream.Send(r); err != nil {
			t.Fatal(err)
		}
	}
	for {
		r, err := stream.Recv()
		if errors.Is(err, io.EOF) || err != nil {
			return err
		}
		if r.GetRejected() != nil {
			return status.ErrorProto(r.GetRejected().Status)
		}
		if r.GetAccepted() != nil {
			return nil
		}
	}
}

// picky refuses what has a word of refused in it, in the words of a real provider, and
// answers all else.
func picky(refused, said string, statusCode int) modeltest.Script {
	return func(r modeltest.Request) modeltest.Step {
		body, err := json.Marshal(r.Body["messages"])
		if err != nil {
			panic(err) // it was JSON
		}
		if strings.Contains(string(body), refused) {
			return modeltest.Step{Status: statusCode, ErrorType: "invalid_request_error", ErrorMessage: said}
		}
		if strings.HasPrefix(r.UserText, "call ") && r.Step == 1 {
			return modeltest.Step{Calls: []modeltest.Call{{ID: "c1", Name: strings.TrimPrefix(r.UserText, "call "), Input: "{}"}}}
		}
		return modeltest.Step{Text: []string{"fine"}}
	}
}

// wired has the model be one of a fake provider that plays script.
func wired(t *testing.T, kind string, script modeltest.Script) (*modeltest.Server, func(*session.Config)) {
	t.Helper()
	serve := modeltest.OpenAI
	if kind == "anthropic" {
		serve = modeltest.Anthropic
	}
	s := serve(t, script)
	return s, func(c *session.Config) {
		c.Models.Providers["wire"] = catalog.Provider{Kind: kind, BaseURL: s.URL, Key: config.Secret(modeltest.Key)}
		c.Models.Models = map[string]catalog.Limits{"wire:m": {ContextTokens: 1_000_000, MaxOutputTokens: 500}}
		c.Models.Model = "wire:m"
	}
}

// providerRefusals are what providers say about content, and what they say it about.
func providerRefusals() map[string]struct {
	content *commonv1.Content
	on      string // a part of the request that is refused
	said    string
	code    int
} {
	pdf := []byte("%PDF-1.7 with a password")
	encoded := base64.StdEncoding.EncodeToString
	return map[string]struct {
		content *commonv1.Content
		on      string
		said    string
		code    int
	}{
		"a picture":                     {picture("image/png", png), encoded(png), "messages.2.content.1.image.source.base64: Could not process image", http.StatusBadRequest},
		"a model that sees no pictures": {picture("image/png", png), encoded(png), "This model does not support image input", http.StatusBadRequest},
		"no words that explain it":      {picture("image/png", png), encoded(png), "Bad Request", http.StatusBadRequest},
		"a document":                    {document(media.PDF, pdf), encoded(pdf), "messages.2.content.1.document: The PDF is password protected", http.StatusBadRequest},
		"a text that a filter holds":    {words("forbidden words"), "forbidden", "The response was filtered due to the prompt triggering the content management policy", http.StatusBadRequest},
		"a character":                   {words("forbidden\x00"), "forbidden", "messages[2].content: \\u0000 cannot be converted to text", http.StatusUnprocessableEntity},
	}
}

func TestWhatTheProviderRefusesEndsItsTurnAndNoLaterOne(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"anthropic", "openai"} {
		for name, tt := range providerRefusals() {
			if kind == "openai" && tt.content.GetDocument() != nil {
				continue // it gets only the name of a document
			}
			t.Run(kind+", "+name, func(t *testing.T) {
				t.Parallel()
				said := tt.said
				if kind == "openai" {
					said = strings.ReplaceAll(said, "messages[2]", "messages[3]") // the first is the system prompt
				}
				_, change := wired(t, kind, picky(tt.on, said, tt.code))
				f := start(t, "fallback: {steps: [{text: [unused]}]}", change)
				f.refusesOnce(t, tt.content, said)
			})
		}
	}
}

// refusesOnce checks that content ends one turn, and that the session goes on: also after a restart, in a
// fork and in an import.
func (f *fixture) refusesOnce(t *testing.T, content *commonv1.Content, said string) {
	t.Helper()
	ctx := t.Context()
	s := f.session(ctx, t)
	end := finished(t, f.turn(ctx, t, s, "hello"))
	if end.State != complete {
		t.Fatalf("the first turn ended %v", end)
	}
	events := f.runTurn(ctx, t, &sessionv1.RunTurnRequest{Parent: s, Text: "look at this", Content: []*commonv1.Content{content}}, nil)
	if end = finished(t, events); end.State != sessionv1.TurnState_TURN_STATE_FAILED || !strings.Contains(end.Error.Message, said) {
		t.Fatalf("the turn ended %v", end)
	}
	f.restart(t)
	goesOn := func(s string) {
		t.Helper()
		if end := finished(t, f.turn(ctx, t, s, "go on")); end.State != complete || end.FinalText != "fine" {
			t.Errorf("%s: the next message ended %v", s, end)
		}
	}
	file := f.export(ctx, t, s, jsonl)
	goesOn(s)
	fork, err := f.ForkSession(ctx, &sessionv1.ForkSessionRequest{Name: s})
	if err != nil {
		t.Fatal(err)
	}
	goesOn(fork.Session.Name)
	made, err := f.upload(ctx, &sessionv1.ImportOpen{}, file)
	if err != nil {
		t.Fatal(err)
	}
	goesOn(made.Name)
	refusals := f.messages(ctx, t, s)[2].Blocks[1].Refusals
	if len(refusals) != 1 || refusals[0].Model != "wire:m" || !strings.Contains(refusals[0].Reason, said) {
		t.Errorf("the message says %v of its refusal", refusals)
	}
}

func TestWhatTheProviderRefusesIsKnownOnPostgresToo(t *testing.T) {
	t.Parallel()
	tt := providerRefusals()["a picture"]
	_, change := wired(t, "openai", picky(tt.on, tt.said, tt.code))
	f := start(t, "fallback: {steps: [{text: [unused]}]}", change, func(c *session.Config) { c.DatabaseURL = config.Secret(pgtest.New(t)) })
	f.refusesOnce(t, tt.content, tt.said)
}

func TestAPictureOfAToolThatTheProviderRefusesEndsNoTurn(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"anthropic", "openai"} {
		for name, tt := range map[string]struct {
			tool string
			on   string
		}{
			"a client's picture that the provider refuses": {"where", base64.StdEncoding.EncodeToString(png)},
			"an invalid picture":                           {"Picture", base64.StdEncoding.EncodeToString([]byte("no picture"))},
		} {
			t.Run(kind+", "+name, func(t *testing.T) {
				t.Parallel()
				wire, change := wired(t, kind, picky(tt.on, "image: cannot be processed", http.StatusBadRequest))
				f := start(t, "fallback: {steps: [{text: [unused]}]}", change, withSpec(func(s *agent.Spec) { s.Tools = []string{"Picture"} }))
				ctx := t.Context()
				s := f.session(ctx, t)
				r := &sessionv1.RunTurnRequest{Parent: s, Text: "call " + tt.tool, ClientTools: []*sessionv1.ClientTool{{Name: "where"}}}
				events := f.runTurn(ctx, t, r, func(e *sessionv1.Event) {
					if w := e.GetTurnWaiting(); w != nil {
						_, err := f.SubmitToolResult(ctx, &sessionv1.SubmitToolResultRequest{Parent: s, CallId: w.CallIds[0], Content: []*commonv1.Content{words("here"), picture("image/png", png)}})
						if err != nil {
							t.Error(err)
						}
					}
				})
				if end := finished(t, events); end.State != complete || end.FinalText != "fine" {
					t.Errorf("the turn ended %v", end)
				}
				requests := wire.Requests()
				if last := requests[len(requests)-1]; !strings.Contains(last.LastResult, "an image is left out") {
					t.Errorf("the model saw the result %q", last.LastResult)
				}
				if end := finished(t, f.turn(ctx, t, s, "go on")); end.State != complete {
					t.Errorf("the next message ended %v", end)
				}
			})
		}
	}
}

func TestARequestHasOnlySoManyPictures(t *testing.T) {
	t.Parallel()
	wire, change := wired(t, "anthropic", func(modeltest.Request) modeltest.Step { return modeltest.Step{Text: []string{"fine"}} })
	f := start(t, "fallback: {steps: [{text: [unused]}]}", change)
	ctx := t.Context()
	s := f.session(ctx, t)
	for i := range 6 {
		content := make([]*commonv1.Content, media.MaxCount)
		for j := range content {
			content[j] = picture("image/png", png)
		}
		r := &sessionv1.RunTurnRequest{Parent: s, Text: fmt.Sprint("message ", i), Content: content}
		if end := finished(t, f.runTurn(ctx, t, r, nil)); end.State != complete {
			t.Fatalf("message %d ended %v", i, end)
		}
	}
	requests := wire.Requests()
	body, err := json.Marshal(requests[len(requests)-1].Body)
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(string(body), base64.StdEncoding.EncodeToString(png)); n != 100 {
		t.Errorf("the last request has %d pictures", n)
	}
}

func TestAProviderGetsTheCommonNameOfAPicturesType(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"anthropic", "openai"} {
		for said, want := range map[string]string{"image/jpg": "image/jpeg", "image/x-png": "image/png", "IMAGE/PNG": "image/png", "image/png; x=y": "image/png"} {
			t.Run(kind+", "+said, func(t *testing.T) {
				t.Parallel()
				wire, change := wired(t, kind, picky("unheard of", "", http.StatusBadRequest))
				f := start(t, "fallback: {steps: [{text: [unused]}]}", change)
				ctx := t.Context()
				s := f.session(ctx, t)
				content := []*commonv1.Content{picture(said, mediatest.Picture(want))}
				r := &sessionv1.RunTurnRequest{Parent: s, Text: "call where", Content: content, ClientTools: []*sessionv1.ClientTool{{Name: "where"}}}
				events := f.runTurn(ctx, t, r, func(e *sessionv1.Event) {
					if w := e.GetTurnWaiting(); w != nil {
						if _, err := f.SubmitToolResult(ctx, &sessionv1.SubmitToolResultRequest{Parent: s, CallId: w.CallIds[0], Content: content}); err != nil {
							t.Error(err)
						}
					}
				})
				if end := finished(t, events); end.State != complete {
					t.Fatalf("the turn ended %v", end)
				}
				requests := wire.Requests()
				body, err := json.Marshal(requests[len(requests)-1].Body["messages"])
				if err != nil {
					t.Fatal(err)
				}
				if n := strings.Count(string(body), want); n != 2 || want != said && strings.Contains(string(body), said) {
					t.Errorf("the provider got the type %d times: %.2000s", n, body)
				}
				if kept := f.messages(ctx, t, s)[0].Blocks[1].GetContent().GetImage().MediaType; kept != said {
					t.Errorf("the session keeps the type %q", kept)
				}
			})
		}
	}
}
