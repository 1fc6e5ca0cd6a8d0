package webhook

import (
	"fmt"
	"time"
)

// maxOverlap bounds the time in which a replaced secret still signs.
const maxOverlap = 90 * 24 * time.Hour

// Config configures the allowed addresses and the pauses.
type Config struct {
	AllowHTTP     bool          `key:"allow-http" help:"allow webhooks at http:// addresses"`
	AllowPrivate  bool          `key:"allow-private" help:"allow webhooks at private addresses, such as addresses of this machine and this network"`
	FirstPause    time.Duration `key:"first-pause" help:"delay before the first retry of a failed webhook message; each further delay is four times as long, up to 4h, for a day"`
	SecretOverlap time.Duration `key:"secret-overlap" help:"how long after a rotation messages are also signed with the old secret"`
}

// Defaults returns the default configuration.
func Defaults() Config { return Config{FirstPause: 5 * time.Second, SecretOverlap: 24 * time.Hour} }

// Validate reports every fault at once.
func (c Config) Validate() error {
	if c.FirstPause < time.Millisecond || c.FirstPause > lastPause {
		return fmt.Errorf("webhooks.first-pause: %v is not between 1ms and %v", c.FirstPause, lastPause)
	}
	if c.SecretOverlap < 0 || c.SecretOverlap > maxOverlap {
		return fmt.Errorf("webhooks.secret-overlap: %v is not between 0 and %v", c.SecretOverlap, maxOverlap)
	}
	return nil
}
