package transfer

import (
	"cmp"
	"context"
	"net/http"
	"time"
	"unicode/utf8"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/gateway/internal/codec"
	"github.com/fairlead/fairlead/services/gateway/internal/problem"
)

const (
	// maxPayload bounds a delivery, in bytes.
	maxPayload = 256 << 10
	// fireTimeout bounds the service's answer. Senders wait for seconds.
	fireTimeout = 30 * time.Second
)

// fire passes a delivery to a trigger on. Its signature is over the bytes of the body, whatever they are.
func (s *Server) fire(w http.ResponseWriter, r *http.Request, names []string) error {
	query, err := parameters(r.URL.RawQuery, "secret")
	if err != nil {
		return err
	}
	for _, name := range deliveryHeaders {
		if !utf8.ValidString(r.Header.Get(name)) { // gRPC cannot transport it
			return problem.BadParameter(name, "is not UTF-8")
		}
	}
	payload, err := codec.NewBody(w, r, maxPayload, s.BodyTimeout).Bytes()
	if err != nil {
		return err
	}
	h := r.Header
	ctx, cancel := context.WithTimeout(r.Context(), fireTimeout)
	defer cancel()
	resp, err := s.Triggers.FireTrigger(ctx, &sessionv1.FireTriggerRequest{
		Name: names[0], Payload: payload, Secret: query["secret"],
		Delivery:    cmp.Or(h.Get("Webhook-Id"), h.Get("X-Github-Delivery"), h.Get("X-Fairlead-Delivery")),
		ContentType: h.Get("Content-Type"), Event: kind(h),
		HubSignature: h.Get("X-Hub-Signature-256"), WebhookTimestamp: h.Get("Webhook-Timestamp"), WebhookSignature: h.Get("Webhook-Signature"),
	})
	if err != nil {
		return err
	}
	return answer(w, http.StatusOK, resp)
}

var (
	deliveryHeaders = append([]string{
		"Content-Type", "Webhook-Id", "Webhook-Timestamp", "Webhook-Signature", "X-Github-Delivery", "X-Fairlead-Delivery", "X-Hub-Signature-256",
	}, eventHeaders...)
	// eventHeaders have the kind of a delivery's event. Gitea and Forgejo send GitHub's header, too; X-Event-Key is
	// Bitbucket's, and Ce-Type that of CloudEvents.
	eventHeaders = []string{
		"X-Fairlead-Event", "X-Github-Event", "X-Gitlab-Event", "X-Gitea-Event", "X-Forgejo-Event", "X-Gogs-Event", "X-Event-Key", "Ce-Type",
		"Linear-Event", "Sentry-Hook-Resource", "X-Shopify-Topic", "X-Wc-Webhook-Topic",
	}
)

// kind returns the kind of a delivery's event; "" where no header has it.
func kind(h http.Header) string {
	for _, name := range eventHeaders {
		if event := h.Get(name); event != "" {
			return event
		}
	}
	return ""
}
