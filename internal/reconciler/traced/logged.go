package traced

import (
	"context"
	"log/slog"

	"github.com/fleetbroker/fleetbroker/internal/gitrepo"
)

// Committed logs commits of a round that landed.
func Committed(ctx context.Context, log *slog.Logger, list []gitrepo.Committed) {
	for _, c := range list {
		log.InfoContext(ctx, "committed", "commit", c.Commit.Hash.Short(), "subject", c.Commit.Subject())
	}
}
