package box

// Ask is a session's request for a mount of the operator's.
type Ask struct {
	Name string `json:"name"`
	// Path is a folder in the mount, to show instead of the whole; empty for the whole.
	Path string `json:"path,omitempty"`
	// Alias is a path below the workspace; empty for the operator's.
	Alias string `json:"alias,omitempty"`
	// Mode is `ro` or `rw`; empty for the operator's.
	Mode string `json:"mode,omitempty"`
	// Optional means that the session goes on without the mount if it does not exist.
	Optional bool `json:"optional,omitempty"`
}
