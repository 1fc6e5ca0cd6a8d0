package anthropic

import (
	"encoding/base64"
	"encoding/json"

	sdk "github.com/anthropics/anthropic-sdk-go/v2"
	"github.com/anthropics/anthropic-sdk-go/v2/packages/param"

	commonv1 "github.com/fairlead/fairlead/gen/go/fairlead/common/v1"
	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"

	"github.com/fairlead/fairlead/services/internal/kit/media"
	"github.com/fairlead/fairlead/services/session/internal/model"
	"github.com/fairlead/fairlead/services/session/internal/model/prompt"
)

// The functions below write a request with Anthropic's SDK. The SDK is too large for the program, so tests compare
// the program's own requests with it.

// sdkParams returns the request without its messages. The system prompt, the tools
// and the last message of the user each end a part that the provider caches.
func sdkParams(m *Model, r model.Request, c *prompt.Conversation) sdk.MessageNewParams {
	p := sdk.MessageNewParams{
		Model:     r.Model,
		MaxTokens: m.maxTokens(r),
		Tools:     sdkTools(r.Tools),
	}
	p.Thinking = sdkThinking(m, r, c, p.MaxTokens)
	if c.System != "" {
		p.System = []sdk.TextBlockParam{{Text: c.System, CacheControl: sdk.NewCacheControlEphemeralParam()}}
	}
	return p
}

func sdkThinking(m *Model, r model.Request, c *prompt.Conversation, maxTokens int64) sdk.ThinkingConfigParamUnion {
	switch {
	case r.ThinkingTokens <= 0:
		return sdk.ThinkingConfigParamUnion{}
	case m.limits.Adaptive:
		return sdk.ThinkingConfigParamUnion{OfAdaptive: &sdk.ThinkingConfigAdaptiveParam{Display: sdk.ThinkingConfigAdaptiveDisplaySummarized}}
	case maxTokens <= minBudget || midTurnWithoutThinking(c):
		return sdk.ThinkingConfigParamUnion{}
	}
	return sdk.ThinkingConfigParamOfEnabled(max(minBudget, min(r.ThinkingTokens, maxTokens-1)))
}

func sdkTools(offered []model.Tool) []sdk.ToolUnionParam {
	var out []sdk.ToolUnionParam
	for _, t := range offered {
		schema := t.InputSchema
		if len(schema) == 0 {
			schema = json.RawMessage(`{"type":"object"}`)
		}
		tool := &sdk.ToolParam{Name: t.Name, InputSchema: param.Override[sdk.ToolInputSchemaParam](schema)}
		if t.Description != "" {
			tool.Description = param.NewOpt(t.Description)
		}
		out = append(out, sdk.ToolUnionParam{OfTool: tool})
	}
	if len(out) > 0 {
		out[len(out)-1].OfTool.CacheControl = sdk.NewCacheControlEphemeralParam()
	}
	return out
}

func sdkUser(c *prompt.Conversation, blocks []*sessionv1.Block) []sdk.ContentBlockParamUnion {
	var out []sdk.ContentBlockParamUnion
	for _, b := range blocks {
		switch k := b.GetKind().(type) {
		case *sessionv1.Block_Content:
			out = append(out, sdkContent(k.Content))
		case *sessionv1.Block_ToolResult:
			out = append(out, sdk.ContentBlockParamUnion{OfToolResult: sdkResult(c, k.ToolResult)})
		}
	}
	return out
}

func sdkResult(c *prompt.Conversation, r *sessionv1.ToolResult) *sdk.ToolResultBlockParam {
	p := &sdk.ToolResultBlockParam{ToolUseID: c.ID(r.GetCallId())}
	if prompt.IsError(r.GetOutcome()) {
		p.IsError = param.NewOpt(true)
	}
	if why := prompt.Explain(r.GetOutcome()); why != "" {
		p.Content = append(p.Content, sdk.ToolResultBlockParamContentUnion{OfText: &sdk.TextBlockParam{Text: why}})
	}
	for _, piece := range r.GetContent() {
		if t := piece.GetText(); t != nil && !prompt.Blank(t.GetText()) || piece.GetText() == nil && piece.GetKind() != nil {
			u := sdkContent(piece)
			p.Content = append(p.Content, sdk.ToolResultBlockParamContentUnion{OfText: u.OfText, OfImage: u.OfImage, OfDocument: u.OfDocument})
		}
	}
	return p
}

func sdkContent(c *commonv1.Content) sdk.ContentBlockParamUnion {
	switch k := c.GetKind().(type) {
	case *commonv1.Content_Image:
		return sdk.NewImageBlockBase64(media.Canonical(k.Image.GetMediaType()), base64.StdEncoding.EncodeToString(k.Image.GetData()))
	case *commonv1.Content_Document:
		return sdkDocument(k.Document)
	}
	return sdk.NewTextBlock(c.GetText().GetText())
}

// sdkDocument returns the block of a document. The API takes only PDFs and texts;
// of other documents the model learns only that they exist.
func sdkDocument(d *commonv1.Media) sdk.ContentBlockParamUnion {
	p := &sdk.DocumentBlockParam{}
	switch {
	case media.Canonical(d.GetMediaType()) == media.PDF:
		p.Source.OfBase64 = &sdk.Base64PDFSourceParam{Data: base64.StdEncoding.EncodeToString(d.GetData())}
	case prompt.IsText(d):
		p.Source.OfText = &sdk.PlainTextSourceParam{Data: string(d.GetData())}
	default:
		return sdk.NewTextBlock(prompt.Describe(d))
	}
	if d.GetTitle() != "" {
		p.Title = param.NewOpt(d.GetTitle())
	}
	return sdk.ContentBlockParamUnion{OfDocument: p}
}

// cached marks the end of a user's message: the next request begins with
// everything before it.
func cached(msg sdk.MessageParam) sdk.MessageParam {
	if c := msg.OfUser.Content[len(msg.OfUser.Content)-1].GetCacheControl(); c != nil {
		*c = sdk.NewCacheControlEphemeralParam()
	}
	return msg
}
