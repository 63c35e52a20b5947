// Package forges opens a forge by its configuration. It is apart from package
// forge because it knows the three that are built on it.
package forges

import (
	"fmt"

	"github.com/fleetbroker/fleetbroker/internal/forge"
	"github.com/fleetbroker/fleetbroker/internal/forge/gitea"
	"github.com/fleetbroker/fleetbroker/internal/forge/github"
	"github.com/fleetbroker/fleetbroker/internal/forge/gitlab"
)

// Open makes the client of the configured forge, with what remote, the fleet
// repo's URL, tells of it. It sends nothing.
func Open(c forge.Config, remote string) (forge.Forge, error) {
	c, err := c.Complete(remote)
	if err != nil {
		return nil, fmt.Errorf("open the forge: %w", err)
	}
	switch c.Kind {
	case forge.GitHub:
		return github.New(c)
	case forge.GitLab:
		return gitlab.New(c)
	default:
		return gitea.New(c)
	}
}
