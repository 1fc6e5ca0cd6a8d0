package dialog

import (
	"encoding/base64"
	"encoding/json"
	"mime"
	"strings"

	commonv1 "github.com/fairlead/fairlead/gen/go/fairlead/common/v1"
	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/internal/kit/media"
)

// Text returns a block of text.
func Text(s string) *sessionv1.Block { return Block(TextContent(s)) }

// TextContent returns content that is text.
func TextContent(s string) *commonv1.Content {
	return &commonv1.Content{Kind: &commonv1.Content_Text{Text: &commonv1.Text{Text: s}}}
}

// Block returns a block of content.
func Block(c *commonv1.Content) *sessionv1.Block {
	return &sessionv1.Block{Kind: &sessionv1.Block_Content{Content: c}}
}

// Media returns an image or a document, by its type.
func Media(field, mediaType, title, encoded string) (*commonv1.Content, error) {
	data, err := base64.StdEncoding.DecodeString(encoded)
	if err != nil || len(data) == 0 {
		return nil, Refuse(field, "the data is not base64")
	}
	m := &commonv1.Media{MediaType: mediaType, Title: title, Data: data}
	if strings.HasPrefix(media.Canonical(mediaType), "image/") {
		return &commonv1.Content{Kind: &commonv1.Content_Image{Image: m}}, nil
	}
	return &commonv1.Content{Kind: &commonv1.Content_Document{Document: m}}, nil
}

// DataURL returns the content of a data URL. Other URLs are refused: the proxy fetches nothing.
func DataURL(field, url, title string) (*commonv1.Content, error) {
	rest, ok := strings.CutPrefix(url, "data:")
	if !ok {
		return nil, Unable(field, "a file by its URL or id (send the data itself, as base64)")
	}
	kind, data, ok := strings.Cut(rest, ",")
	kind, encoded := strings.CutSuffix(kind, ";base64")
	mediaType, _, err := mime.ParseMediaType(kind)
	if !ok || !encoded || err != nil {
		return nil, Refuse(field, "a data URL has the form data:image/png;base64,…")
	}
	return Media(field, mediaType, title, data)
}

// seal begins the proof that thinking comes from here.
const seal = "fairlead-1:"

// sealed is what a proof holds: the provider's own data, for the time when the thinking comes back.
type sealed struct {
	Provider string `json:"p,omitempty"`
	Data     []byte `json:"d,omitempty"`
}

// Seal returns the proof of thinking, for a client that brings it back. It is never empty: clients drop thinking
// without one.
func Seal(d *sessionv1.ProviderData) string {
	b, err := json.Marshal(sealed{d.GetProvider(), d.GetData()})
	if err != nil { // text and bytes cannot fail
		b = []byte("{}")
	}
	return seal + base64.RawURLEncoding.EncodeToString(b)
}

// Thought returns the thinking that a client brings back, and false if it does not come from here: another model made
// it, and no other one understands its proof.
func Thought(text, proof string) (*sessionv1.Block, bool) {
	encoded, ok := strings.CutPrefix(proof, seal)
	if !ok {
		return nil, false
	}
	b, err := base64.RawURLEncoding.DecodeString(encoded)
	var s sealed
	if err != nil || json.Unmarshal(b, &s) != nil || s.Provider == "" {
		return nil, false
	}
	return &sessionv1.Block{
		Kind:         &sessionv1.Block_Thinking{Thinking: &sessionv1.Thinking{Text: text}},
		ProviderData: &sessionv1.ProviderData{Provider: s.Provider, Data: s.Data},
	}, true
}
