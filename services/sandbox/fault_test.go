package sandbox

import (
	"strings"

	"github.com/fairlead/fairlead/services/sandbox/internal/box"
)

// WithFault has a function called at the points of a change at which a service may die.
func (d Deps) WithFault(f func(session, call, point string)) Deps {
	d.fault = func(c box.Call, _, point string) { f(strings.TrimPrefix(c.Session, "sessions/"), c.ID, point) }
	return d
}
