package node

// Config has the addresses of the sandbox nodes.
type Config struct {
	Sandbox      string   `key:"sandbox" help:"address of the sandbox service's peer listener"`
	SandboxNodes []string `key:"sandbox-nodes" help:"in place of sandbox: the sandbox nodes, each as name=address, where name is the node's own (its key node, or else its host name); session and tools need the same ones; workspaces from before there were several are on the first"`
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
