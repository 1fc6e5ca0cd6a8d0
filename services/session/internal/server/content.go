package server

import (
	"errors"
	"fmt"

	commonv1 "github.com/fairlead/fairlead/gen/go/fairlead/common/v1"
	"github.com/fairlead/fairlead/services/internal/kit/media"
	"github.com/fairlead/fairlead/services/session/internal/refusal"
)

// checkContent refuses images and documents that no model provider accepts. A
// conversation that has one would send it with each of its requests.
func checkContent(content []*commonv1.Content) error {
	count, together := 0, 0
	for i, c := range content {
		var m *commonv1.Media
		var err error
		what := "image"
		switch k := c.GetKind().(type) {
		case *commonv1.Content_Image:
			m = k.Image
			_, err = media.Image(m.GetMediaType(), m.GetData())
		case *commonv1.Content_Document:
			m, what = k.Document, "document"
			err = media.Document(m.GetMediaType(), m.GetData())
		case *commonv1.Content_Audio, *commonv1.Content_Resource, *commonv1.Content_ResourceLink:
			return refusal.Input(fmt.Sprintf("content[%d]", i), "A message has texts, images and documents; only results of tools have sound and resources.")
		default:
			continue
		}
		var fault *media.Error
		if errors.As(err, &fault) {
			return refusal.Input(fmt.Sprintf("content[%d].%s.%s", i, what, fault.Field), fmt.Sprintf("The %s %s.", what, fault.Problem))
		}
		count, together = count+1, together+len(m.GetData())
	}
	switch {
	case count > media.MaxCount:
		return refusal.Input("content", fmt.Sprintf("The message has %d images and documents; the most is %d. Send the others in messages of their own.", count, media.MaxCount))
	case together > media.MaxTogether:
		return refusal.Input("content", fmt.Sprintf("The images and documents of the message have %d bytes together; the most is %d. Make them smaller, or send some in messages of their own.", together, media.MaxTogether))
	}
	return nil
}
