package main

import (
	"strconv"
	"strings"

	"google.golang.org/protobuf/proto"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
)

// webhooksCommand tells other systems when turns end.
type webhooksCommand struct {
	Create     shows[createWebhook, *sessionv1.CreateWebhookResponse]       `cmd:"" set:"one=webhook and its secret" help:"Notify an address when turns end. Prints the signing secret, which is not shown again."`
	List       lists[listWebhooks, *sessionv1.Webhook]                      `cmd:"" help:"List the webhooks."`
	Get        shows[getWebhook, *sessionv1.Webhook]                        `cmd:"" help:"Show a webhook."`
	Rotate     shows[rotateWebhook, *sessionv1.RotateWebhookSecretResponse] `cmd:"" set:"one=webhook and its new secret" help:"Replace a webhook's signing secret. Prints the new one, which is not shown again."`
	Delete     does[deleteWebhook]                                          `cmd:"" help:"Delete a webhook and its undelivered messages."`
	Deliveries lists[listDeliveries, *sessionv1.Delivery]                   `cmd:"" set:"one=delivery" help:"List a webhook's deliveries, the newest first."`
}

// webhookName names a webhook.
type webhookName struct {
	ID string `arg:"" help:"The webhook."`
}

func (n webhookName) name() string { return "webhooks/" + bare(n.ID) }

type createWebhook struct {
	URL     string `arg:"" help:"Where to send: an https:// address."`
	Session string `placeholder:"ID" help:"Only turns of this session. The default is all sessions."`
	ID      string `name:"id" placeholder:"ID" help:"The webhook's id. The server makes one by default."`
	jsonOne
	lasting
}

func (f createWebhook) request() proto.Message {
	r := &sessionv1.CreateWebhookRequest{Webhook: &sessionv1.Webhook{Url: f.URL}, WebhookId: f.ID}
	if f.Session != "" {
		r.Webhook.Session = sessionName(f.Session)
	}
	return r
}

func (createWebhook) show(s stdio, made *sessionv1.CreateWebhookResponse) error {
	return columns(s.out, append(webhookRows(made.GetWebhook()), []string{"secret", made.GetSecret()}))
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

type listWebhooks struct{ jsonList }

func (listWebhooks) request() proto.Message { return &sessionv1.ListWebhooksRequest{} }

func (listWebhooks) row(x *sessionv1.Webhook) [][]string {
	return [][]string{{"WEBHOOK", bare(x.GetName())}, {"SESSION", about(x)}, {"CREATED", stamp(x.GetCreateTime())}, {"URL", x.GetUrl()}}
}

type getWebhook struct {
	webhookName
	jsonOne
}

func (f getWebhook) request() proto.Message { return &sessionv1.GetWebhookRequest{Name: f.name()} }

func (getWebhook) show(s stdio, x *sessionv1.Webhook) error { return columns(s.out, webhookRows(x)) }

type rotateWebhook struct {
	webhookName
	Revoke bool `help:"End the old secret at once. Without this flag, messages are signed with both secrets for a while."`
	jsonOne
}

func (f rotateWebhook) request() proto.Message {
	return &sessionv1.RotateWebhookSecretRequest{Name: f.name(), RevokeOld: f.Revoke}
}

func (rotateWebhook) show(s stdio, x *sessionv1.RotateWebhookSecretResponse) error {
	return columns(s.out, append(webhookRows(x.GetWebhook()), []string{"secret", x.GetSecret()}))
}

type deleteWebhook struct{ webhookName }

func (f deleteWebhook) request() proto.Message {
	return &sessionv1.DeleteWebhookRequest{Name: f.name()}
}

func (deleteWebhook) done() string { return "deleted" }

type listDeliveries struct {
	webhookName
	Limit int `default:"50" help:"The most deliveries."`
	jsonList
}

func (f listDeliveries) limit() int { return f.Limit }

func (f listDeliveries) ready() error { return positive(f.Limit) }

func (f listDeliveries) request() proto.Message {
	return &sessionv1.ListDeliveriesRequest{Parent: f.name()}
}

func (listDeliveries) row(x *sessionv1.Delivery) [][]string {
	status := ""
	if x.GetLastStatus() > 0 {
		status = strconv.Itoa(int(x.GetLastStatus()))
	}
	session, turn, _ := strings.Cut(x.GetTurn(), "/turns/")
	return [][]string{
		{"SESSION", bare(session)}, {"TURN", turn}, {"STATE", x.GetState()}, {"SENT", strconv.Itoa(int(x.GetAttempts()))}, {"STATUS", status},
		{"CREATED", stamp(x.GetCreateTime())}, {"NEXT", stamp(x.GetNextTime())}, {"LAST ERROR", x.GetLastError()},
	}
}
