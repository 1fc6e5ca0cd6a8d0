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
		Delivery:     cmp.Or(h.Get("Webhook-Id"), h.Get("X-Github-Delivery"), h.Get("X-Fairlead-Delivery")),
		HubSignature: h.Get("X-Hub-Signature-256"), WebhookTimestamp: h.Get("Webhook-Timestamp"), WebhookSignature: h.Get("Webhook-Signature"),
	})
	if err != nil {
		return err
	}
	return answer(w, http.StatusOK, resp)
}

var deliveryHeaders = []string{"Webhook-Id", "Webhook-Timestamp", "Webhook-Signature", "X-Github-Delivery", "X-Fairlead-Delivery", "X-Hub-Signature-256"}
