package a2a

import (
	"testing"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
)

// A card names gRPC where the server knows its address, and the agent as the tenant.
func TestACardNamesItsBindings(t *testing.T) {
	for at, want := range map[string]int{"": 2, "agents.example.com:443": 3} {
		card := cardOf(&sessionv1.Agent{Name: "agents/coder"}, "https://agents.example.com/a2a/coder", Config{PublicGRPC: at})
		all, _ := card["supportedInterfaces"].([]object)
		if len(all) != want {
			t.Fatalf("with the address %q the card has the bindings %v", at, all)
		}
		if last := all[want-1]; at != "" && (last["protocolBinding"] != "GRPC" || last["url"] != at || last["tenant"] != "coder") {
			t.Errorf("the binding to gRPC is %v", last)
		}
	}
}
