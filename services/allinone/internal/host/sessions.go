package host

import "github.com/fairlead/fairlead/services/session"

// SessionConfig returns the configuration of the session service, with its data in its place.
func (c Config) SessionConfig() (session.Config, error) {
	err := c.place()
	return c.Session, err
}
