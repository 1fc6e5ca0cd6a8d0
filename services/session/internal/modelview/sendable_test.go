package modelview_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	commonv1 "github.com/fairlead/fairlead/gen/go/fairlead/common/v1"
	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/internal/kit/media/mediatest"
	"github.com/fairlead/fairlead/services/session/internal/modelview"
)

func image(data []byte) *commonv1.Content {
	return &commonv1.Content{Kind: &commonv1.Content_Image{Image: &commonv1.Media{MediaType: "image/png", Data: data, Title: "p.png"}}}
}

func said(role sessionv1.Role, content ...*commonv1.Content) *sessionv1.Message {
	m := &sessionv1.Message{Role: role}
	for _, c := range content {
		m.Blocks = append(m.Blocks, &sessionv1.Block{Kind: &sessionv1.Block_Content{Content: c}})
	}
	return m
}

// pictures counts what of a view is a picture, and gives its notes.
func pictures(ms []*sessionv1.Message) (n int, notes string) {
	see := func(c *commonv1.Content) {
		if c.GetImage() != nil || c.GetDocument() != nil {
			n++
		} else if s := c.GetText().GetText(); strings.Contains(s, "left out") {
			notes += s
		}
	}
	for _, m := range ms {
		for _, b := range m.Blocks {
			if c := b.GetContent(); c != nil {
				see(c)
			}
			for _, c := range b.GetToolResult().GetContent() {
				see(c)
			}
		}
	}
	return n, notes
}

func TestANoteStandsForAPictureThatNoModelTakes(t *testing.T) {
	path := []*sessionv1.Message{
		said(sessionv1.Role_ROLE_USER, image([]byte("no picture")), image(mediatest.Picture("image/png"))),
		{Role: sessionv1.Role_ROLE_USER, Blocks: []*sessionv1.Block{{Kind: &sessionv1.Block_ToolResult{ToolResult: &sessionv1.ToolResult{
			CallId: "c", Content: []*commonv1.Content{image(mediatest.Sized(9000, 1))},
		}}}}},
	}
	n, notes := pictures(modelview.Of(path, "p:m"))
	if n != 1 || !strings.Contains(notes, `[an image, "p.png", is left out: it is said to be image/png, but begins as text/plain`) || !strings.Contains(notes, "9000×1 pixels") {
		t.Errorf("%d pictures, notes %s", n, notes)
	}
	if n, _ := pictures(path); n != 3 {
		t.Errorf("the conversation has %d pictures left", n)
	}
}

func TestTheOldestPicturesBeyondARequestsBoundBecomeNotes(t *testing.T) {
	small, wide := mediatest.Picture("image/png"), mediatest.Sized(2001, 1)
	heavy := append(mediatest.Picture("image/png"), make([]byte, 2<<20)...)
	for name, tt := range map[string]struct {
		pictures []byte
		n, want  int
	}{
		"as many as may be":              {small, 100, 100},
		"one more: a group goes":         {small, 101, 81},
		"and no other until it is full":  {small, 120, 100},
		"then the next group":            {small, 121, 81},
		"wide ones, as many as may be":   {wide, 20, 20},
		"wide ones, one more":            {wide, 21, 17},
		"as many bytes as may be":        {heavy, 9, 9},
		"too many bytes: a group goes":   {heavy, 10, 1},
		"more bytes than the last group": {heavy, 25, 5},
	} {
		t.Run(name, func(t *testing.T) {
			var path []*sessionv1.Message
			for range tt.n {
				path = append(path, said(sessionv1.Role_ROLE_USER, image(tt.pictures)))
			}
			got := modelview.Of(path, "p:m")
			if n, _ := pictures(got); n != tt.want {
				t.Errorf("%d pictures of %d, want %d", n, tt.n, tt.want)
			}
			if n, _ := pictures(got[tt.n-tt.want:]); n != tt.want {
				t.Error("others than the newest are there")
			}
		})
	}
}

func TestARefusalMeansWhatCameSinceTheLastAnswer(t *testing.T) {
	text := func(s string) *commonv1.Content {
		return &commonv1.Content{Kind: &commonv1.Content_Text{Text: &commonv1.Text{Text: s}}}
	}
	picture := image(mediatest.Picture("image/png"))
	path := func(last ...*commonv1.Content) []*sessionv1.Message {
		return []*sessionv1.Message{
			said(sessionv1.Role_ROLE_USER, text("one"), picture), said(sessionv1.Role_ROLE_ASSISTANT, text("two")), said(sessionv1.Role_ROLE_USER, last...),
		}
	}
	named := path(text("three"), picture)
	for name, tt := range map[string]struct {
		path    []*sessionv1.Message
		refusal modelview.Refusal
		want    string // the blocks that are marked
		persons bool
	}{
		"the new picture":               {path(text("three"), picture), modelview.Refusal{Media: true, New: true, Older: true}, "2.1", true},
		"the old picture":               {path(text("three")), modelview.Refusal{Media: true, New: true, Older: true}, "0.1", true},
		"nothing that was taken":        {path(text("three")), modelview.Refusal{Media: true, New: true}, "", false},
		"the old picture that is named": {named, modelview.Refusal{Media: true, New: true, Older: true, Named: named[0].Blocks}, "0.1", true},
		"the named text":                {named, modelview.Refusal{Named: named[0].Blocks[:1]}, "0.0", true},
		"no text of the model":          {named, modelview.Refusal{Named: named[1].Blocks}, "", false},
		"no text that is not named":     {named, modelview.Refusal{}, "", false},
		"the only new text":             {path(text("three"), picture), modelview.Refusal{New: true}, "2.0", true},
		"neither of two new texts":      {append(path(text("three")), said(sessionv1.Role_ROLE_USER, text("four"))), modelview.Refusal{New: true}, "", false},
		"nothing before any message":    {nil, modelview.Refusal{Media: true, New: true, Older: true}, "", false},
	} {
		t.Run(name, func(t *testing.T) {
			for i, m := range tt.path {
				m.Name = strconv.Itoa(i)
			}
			tt.refusal.Model, tt.refusal.Reason = "p:m", "no"
			revised, persons := modelview.Refuse(tt.path, tt.refusal)
			var got []string
			for _, m := range revised {
				for i, b := range m.Blocks {
					if len(b.Refusals) > 0 {
						got = append(got, fmt.Sprint(m.Name, ".", i))
					}
				}
			}
			if strings.Join(got, " ") != tt.want || persons != tt.persons {
				t.Errorf("marked %v, persons %t", got, persons)
			}
			for _, m := range modelview.Of(revised, "p:other") {
				for _, b := range m.Blocks {
					if strings.Contains(b.GetContent().GetText().GetText(), "left out") {
						t.Errorf("another model sees %v", b)
					}
				}
			}
			if again, _ := modelview.Refuse(revised, tt.refusal); len(again) > 0 {
				t.Errorf("marked twice: %v", again)
			}
		})
	}
}

func TestResultsOfToolsInAFormThatModelsSee(t *testing.T) {
	dot := mediatest.Picture("image/png")
	content := []*commonv1.Content{
		{Kind: &commonv1.Content_Audio{Audio: &commonv1.Media{MediaType: "audio/wav", Data: []byte("RIFF")}}},
		{Kind: &commonv1.Content_Resource{Resource: &commonv1.Resource{Uri: "file:///a", Text: "inside"}}},
		{Kind: &commonv1.Content_Resource{Resource: &commonv1.Resource{Uri: "file:///b", MediaType: "image/png", Data: dot}}},
		{Kind: &commonv1.Content_Resource{Resource: &commonv1.Resource{Uri: "file:///c", MediaType: "image/png", Data: []byte("none")}}},
		{Kind: &commonv1.Content_Resource{Resource: &commonv1.Resource{Uri: "file:///d", MediaType: "application/zip", Data: []byte("PK")}}},
		{Kind: &commonv1.Content_ResourceLink{ResourceLink: &commonv1.ResourceLink{Uri: "file:///e", Title: "E", MediaType: "text/plain"}}},
	}
	given := []*sessionv1.Message{{Blocks: []*sessionv1.Block{{Kind: &sessionv1.Block_ToolResult{ToolResult: &sessionv1.ToolResult{CallId: "c", Content: content}}}}}}
	before := proto.CloneOf(given[0])
	got := modelview.Of(given, "p:m")[0].Blocks[0].GetToolResult().Content
	want := []string{
		"[Sound of type audio/wav, 4 bytes, which this model cannot hear.]", "[Resource file:///a]\ninside", "", "[an image, \"file:///c\", is left out: it",
		"[Resource file:///d of type application/zip, 2 bytes, which cannot be shown to this model.]", "[Resource file:///e, E, text/plain]",
	}
	for i, c := range got {
		if !strings.HasPrefix(c.GetText().GetText(), want[i]) || (i == 2) != (c.GetImage() != nil) {
			t.Errorf("%d is %v", i, c)
		}
	}
	if !proto.Equal(before, given[0]) {
		t.Error("the conversation was changed")
	}
	if n := modelview.Tokens(given); n < 1600 {
		t.Errorf("%d tokens", n)
	}
}
