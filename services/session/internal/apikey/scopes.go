package apikey

import (
	"slices"
	"strings"
	"sync"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	commonv1 "github.com/fairlead/fairlead/gen/go/fairlead/common/v1"
	_ "github.com/fairlead/fairlead/gen/go/fairlead/sandbox/v1" // its RPCs have scopes
	_ "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	_ "github.com/fairlead/fairlead/gen/go/fairlead/tools/v1"
	"github.com/fairlead/fairlead/services/internal/kit/rpc"
)

// Scopes returns the scopes to which a key can be limited, sorted: those of the RPCs for clients, and of the metrics.
var Scopes = sync.OnceValue(func() []string {
	all := []string{rpc.MetricsScope}
	protoregistry.GlobalFiles.RangeFiles(func(f protoreflect.FileDescriptor) bool {
		for i := range f.Services().Len() {
			methods := f.Services().Get(i).Methods()
			for j := range methods.Len() {
				access, ok := proto.GetExtension(methods.Get(j).Options(), commonv1.E_Access).(*commonv1.Access)
				if ok && access.GetScope() != "" && access.GetRole() < commonv1.Role_ROLE_SERVICE {
					all = append(all, access.Scope)
				}
			}
		}
		return true
	})
	slices.Sort(all)
	return slices.Compact(all)
})

// queueScope begins the scope of a worker's key: the id of its environment follows.
const queueScope = "work.write:"

// QueueScope returns the scope of the workers of an environment. No RPC for clients needs it: the gateway lets its
// holder poll the environment's work queue, and run the tools of the sessions in it.
func QueueScope(environment string) string { return queueScope + environment }

// QueueOf returns the environment of a worker's scope.
func QueueOf(scope string) (environment string, ok bool) { return strings.CutPrefix(scope, queueScope) }
