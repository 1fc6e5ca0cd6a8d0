package permission

import "context"

// maxSteps bounds the work of one decision, or of one explanation. A step is about a nanosecond or two. Whatever the
// limit leaves unchecked is in doubt: rules that restrict match, and rules that allow do not.
const maxSteps = 24 << 20

// parseSteps is how many steps the parse of one byte of a script counts for.
const parseSteps = 24

// tooMuch is the doubt about what the limit leaves unchecked.
const tooMuch = "the rules and the call are too long to check all of them"

// meter counts the steps of a decision.
type meter struct {
	used  int
	ended func() bool // reports whether the caller has left; nil: never
	asked int         // the steps at which the meter asked last
}

// meterOf returns a meter for the work of a request.
func meterOf(ctx context.Context) *meter {
	return &meter{ended: func() bool { return ctx.Err() != nil }}
}

// spend counts steps. It reports false once the work must end.
func (m *meter) spend(steps int) bool {
	if m.spent() {
		return false
	}
	m.used += steps
	if m.ended != nil && m.used-m.asked > 1<<16 {
		m.asked = m.used
		if m.ended() {
			m.used = maxSteps + 1
		}
	}
	return m.used <= maxSteps
}

// spent reports whether the work must end.
func (m *meter) spent() bool { return m.used > maxSteps }
