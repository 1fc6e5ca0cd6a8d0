package main

import (
	"context"
	"fmt"
	"io"
	"strconv"
	"strings"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/allinone/internal/terminal"
	"github.com/fairlead/fairlead/services/internal/kit/id"
)

// webhooksCommand tells other systems when turns end.
type webhooksCommand struct {
	Create     createWebhookCommand  `cmd:"" help:"Notify an address when turns end. Prints the signing secret, which is not shown again."`
	List       listWebhooksCommand   `cmd:"" help:"List the webhooks."`
	Get        getWebhookCommand     `cmd:"" help:"Show a webhook."`
	Rotate     rotateWebhookCommand  `cmd:"" help:"Replace a webhook's signing secret. Prints the new one, which is not shown again."`
	Delete     deleteWebhookCommand  `cmd:"" help:"Delete a webhook and its undelivered messages."`
	Deliveries listDeliveriesCommand `cmd:"" help:"List a webhook's deliveries, the newest first."`
}

func webhookName(given string) string { return "webhooks/" + bare(given) }

// createWebhookCommand makes a webhook.
type createWebhookCommand struct {
	URL     string `arg:"" help:"Where to send: an https:// address."`
	Session string `placeholder:"ID" help:"Only turns of this session. The default is all sessions."`
	ID      string `name:"id" placeholder:"ID" help:"The webhook's id. The server makes one by default."`
	JSON    bool   `name:"json" help:"Print the webhook and its secret as JSON."`
	target
}

// Run makes a webhook.
func (c createWebhookCommand) Run(ctx context.Context, s stdio) error {
	r := &sessionv1.CreateWebhookRequest{Webhook: &sessionv1.Webhook{Url: c.URL}, WebhookId: c.ID, RequestId: id.New()}
	if c.Session != "" {
		r.Webhook.Session = sessionName(c.Session)
	}
	return c.with(ctx, s, func(ctx context.Context, b *backend) error {
		var resp *sessionv1.CreateWebhookResponse
		err := retry(ctx, func() (err error) {
			resp, err = b.webhooks.CreateWebhook(ctx, r)
			return err
		})
		if err != nil {
			return terminal.Explained(err)
		}
		b.remind(s)
		if c.JSON {
			return printJSON(s.out, []*sessionv1.CreateWebhookResponse{resp})
		}
		return columns(s.out, append(webhookRows(resp.GetWebhook()), []string{"secret", resp.GetSecret()}))
	})
}

func webhookRows(x *sessionv1.Webhook) [][]string {
	rows := [][]string{{"webhook", bare(x.GetName())}, {"url", x.GetUrl()}, {"session", about(x)}, {"created", stamp(x.GetCreateTime())}}
	if until := x.GetOldSecretExpireTime(); until != nil {
		rows = append(rows, []string{"old secret until", stamp(until)})
	}
	return rows
}

// about returns the session whose turns a webhook is told of.
func about(x *sessionv1.Webhook) string {
	if x.GetSession() == "" {
		return "all"
	}
	return bare(x.GetSession())
}

// listWebhooksCommand lists webhooks.
type listWebhooksCommand struct {
	JSON bool `name:"json" help:"Print one JSON webhook per line."`
	target
}

// Run lists webhooks.
func (c listWebhooksCommand) Run(ctx context.Context, s stdio) error {
	return c.with(ctx, s, func(ctx context.Context, b *backend) error {
		var all []*sessionv1.Webhook
		err := pages(ctx, 0, func(size int32, token string) (int, string, error) {
			resp, err := b.webhooks.ListWebhooks(ctx, &sessionv1.ListWebhooksRequest{PageSize: size, PageToken: token})
			all = append(all, resp.GetWebhooks()...)
			return len(resp.GetWebhooks()), resp.GetNextPageToken(), err
		})
		if err != nil {
			return terminal.Explained(err)
		}
		if c.JSON {
			return printJSON(s.out, all)
		}
		rows := [][]string{{"WEBHOOK", "SESSION", "CREATED", "URL"}}
		for _, x := range all {
			rows = append(rows, []string{bare(x.GetName()), about(x), stamp(x.GetCreateTime()), x.GetUrl()})
		}
		return columns(s.out, rows)
	})
}

// getWebhookCommand shows a webhook.
type getWebhookCommand struct {
	ID   string `arg:"" help:"The webhook."`
	JSON bool   `name:"json" help:"Print the webhook as JSON."`
	target
}

// Run shows a webhook.
func (c getWebhookCommand) Run(ctx context.Context, s stdio) error {
	return c.with(ctx, s, func(ctx context.Context, b *backend) error {
		resp, err := b.webhooks.GetWebhook(ctx, &sessionv1.GetWebhookRequest{Name: webhookName(c.ID)})
		if err != nil {
			return terminal.Explained(err)
		}
		if c.JSON {
			return printJSON(s.out, []*sessionv1.Webhook{resp.GetWebhook()})
		}
		return columns(s.out, webhookRows(resp.GetWebhook()))
	})
}

// rotateWebhookCommand rotates a webhook's secret.
type rotateWebhookCommand struct {
	ID     string `arg:"" help:"The webhook."`
	Revoke bool   `help:"End the old secret at once. Without this flag, messages are signed with both secrets for a while."`
	JSON   bool   `name:"json" help:"Print the webhook and its new secret as JSON."`
	target
}

// Run rotates a webhook's secret.
func (c rotateWebhookCommand) Run(ctx context.Context, s stdio) error {
	r := &sessionv1.RotateWebhookSecretRequest{Name: webhookName(c.ID), RevokeOld: c.Revoke, RequestId: id.New()}
	return c.with(ctx, s, func(ctx context.Context, b *backend) error {
		var resp *sessionv1.RotateWebhookSecretResponse
		err := retry(ctx, func() (err error) {
			resp, err = b.webhooks.RotateWebhookSecret(ctx, r)
			return err
		})
		if err != nil {
			return terminal.Explained(err)
		}
		if c.JSON {
			return printJSON(s.out, []*sessionv1.RotateWebhookSecretResponse{resp})
		}
		return columns(s.out, append(webhookRows(resp.GetWebhook()), []string{"secret", resp.GetSecret()}))
	})
}

// deleteWebhookCommand deletes a webhook.
type deleteWebhookCommand struct {
	ID string `arg:"" help:"The webhook."`
	target
}

// Run deletes a webhook.
func (c deleteWebhookCommand) Run(ctx context.Context, s stdio) error {
	r := &sessionv1.DeleteWebhookRequest{Name: webhookName(c.ID), RequestId: id.New()}
	return c.with(ctx, s, func(ctx context.Context, b *backend) error {
		err := retry(ctx, func() error {
			_, err := b.webhooks.DeleteWebhook(ctx, r)
			return err
		})
		if err != nil {
			return terminal.Explained(err)
		}
		_, err = fmt.Fprintln(s.out, "deleted")
		return err
	})
}

// listDeliveriesCommand lists deliveries.
type listDeliveriesCommand struct {
	ID    string `arg:"" help:"The webhook."`
	Limit int    `default:"50" help:"The most deliveries."`
	JSON  bool   `name:"json" help:"Print one JSON delivery per line."`
	target
}

// Run lists deliveries.
func (c listDeliveriesCommand) Run(ctx context.Context, s stdio) error {
	if c.Limit < 1 {
		return usage("--limit must be at least 1")
	}
	return c.with(ctx, s, func(ctx context.Context, b *backend) error {
		var all []*sessionv1.Delivery
		err := pages(ctx, c.Limit, func(size int32, token string) (int, string, error) {
			resp, err := b.webhooks.ListDeliveries(ctx, &sessionv1.ListDeliveriesRequest{Parent: webhookName(c.ID), PageSize: size, PageToken: token})
			all = append(all, resp.GetDeliveries()...)
			return len(resp.GetDeliveries()), resp.GetNextPageToken(), err
		})
		if err != nil {
			return terminal.Explained(err)
		}
		if c.JSON {
			return printJSON(s.out, all)
		}
		return listDeliveries(s.out, all)
	})
}

func listDeliveries(w io.Writer, all []*sessionv1.Delivery) error {
	rows := [][]string{{"SESSION", "TURN", "STATE", "SENT", "STATUS", "CREATED", "NEXT", "LAST ERROR"}}
	for _, x := range all {
		status := ""
		if x.GetLastStatus() > 0 {
			status = strconv.Itoa(int(x.GetLastStatus()))
		}
		session, turn, _ := strings.Cut(x.GetTurn(), "/turns/")
		rows = append(rows, []string{
			bare(session), turn, x.GetState(), strconv.Itoa(int(x.GetAttempts())), status, stamp(x.GetCreateTime()), stamp(x.GetNextTime()), x.GetLastError(),
		})
	}
	return columns(w, rows)
}
