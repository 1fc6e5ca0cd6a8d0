package model_test

import (
	"testing"

	"github.com/fairlead/fairlead/services/session/internal/model"
)

func TestWhatAProviderSaysOfARefusalTellsWhatItMeans(t *testing.T) {
	const media, text, unexplained, other = "media", "text", "unexplained", ""
	for said, want := range map[string]string{
		"messages.0.content.1.image.source.base64: Could not process image":                                media,
		"This model does not support image input":                                                          media,
		"Invalid content type. image_url is only supported by certain models.":                             media,
		"At most 1 image(s) may be provided in one prompt.":                                                media,
		"messages.2.content.0.pdf: The PDF specified is password protected.":                               media,
		"Unknown part type: image_url":                                                                     media,
		"The response was filtered due to the prompt triggering Azure OpenAI's content management policy.": text,
		"Invalid 'messages[1].content': string too long. Expected a string with maximum length 1048576":    text,
		"unsupported Unicode escape sequence: \\u0000 cannot be converted to text.":                        text,
		"messages[2]: unknown variant `image_url`, expected `text`":                                        media,
		"invalid_image_format": media,
		"messages.3.content.0: text content blocks must be non-empty": other,
		"Bad Request":             unexplained,
		"":                        unexplained,
		"Provider returned error": unexplained,
		"Invalid value for 'top_k'. See our documentation at https://example.com/images": other,
		"Invalid value for 'n'. See the documents for images at example.com.":            other,
		"not provisioned for your region":                                                other,
		"retry immediately":                                                              other,
		"model was retired. See the documentation":                                       other,
		"Your API key may not send images":                                               other,
		"The quota for images is used up":                                                other,
		"The media service is down":                                                      other,
		"Invalid safety_identifier":                                                      other,
		"tools.0.custom.input_schema: JSON schema is invalid":                            other,
		"max_tokens: 100000 > 8192, which is the maximum allowed":                        other,
		"Invalid schema for function 'x'":                                                other,
		"messages.1.content.0: unexpected `tool_use_id` found in `tool_result` blocks":   other,
		"messages.1.content.0: Invalid `signature` in `thinking` block":                  other,
		"The model `x` does not exist or you do not have access to it.":                  other,
		"Unsupported parameter: 'max_tokens' is not supported with this model.":          other,
	} {
		e := &model.Error{Kind: model.Refused, Status: 400, Message: "the model provider vision refused the request: " + said, ProviderText: said}
		got := other
		switch {
		case e.AboutMedia():
			got = media
		case e.AboutText():
			got = text
		case e.Unexplained():
			got = unexplained
		}
		if got != want {
			t.Errorf("%q is about %q, want %q", said, got, want)
		}
	}
	for _, e := range []*model.Error{
		{Kind: model.Unavailable, Status: 500, ProviderText: "failed to process inputs: image: unknown format"},
		{Kind: model.Refused, Status: 500, ProviderText: "image: unknown format"},
		{Kind: model.Refused, Status: 404, ProviderText: "no image model"},
		{Kind: model.Unavailable, ProviderText: "the connection to the image server broke"},
		{Kind: model.Refused, Status: 404},
	} {
		if e.AboutMedia() || e.AboutText() || e.Unexplained() {
			t.Errorf("%v is about content", e)
		}
	}
}
