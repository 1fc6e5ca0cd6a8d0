package node

// Config has the addresses of the sandbox nodes.
type Config struct {
	Sandbox      string   `key:"sandbox" help:"address of the sandbox service's peer listener"`
	SandboxNodes []string `key:"sandbox-nodes" help:"the sandbox nodes, instead of sandbox, each as name=address; name is the node's key node, or its host name; session and tools need the same list; workspaces that are older than the list are on its first node"`
}

// DefaultConfig returns the configuration for one sandbox on this machine.
func DefaultConfig() Config { return Config{Sandbox: "127.0.0.1:9192"} }

// List returns the nodes as Dial takes them.
func (c Config) List() []string {
	if len(c.SandboxNodes) == 0 {
		return []string{"=" + c.Sandbox}
	}
	return c.SandboxNodes
}
