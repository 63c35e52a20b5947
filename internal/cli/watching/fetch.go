package watching

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/beginning"
	"github.com/fleetbroker/fleetbroker/internal/api/escape"
)

// fetchTimeout bounds one fetch: a remote that does not answer stops no watch.
const fetchTimeout = 30 * time.Second

// Fetch brings a branch of a clone's remote up to date: refs/remotes/<remote>/<branch>, in
// clones of one branch and in shallow ones too. It asks for no password. The error says
// what git said.
func Fetch(ctx context.Context, dir, remote, branch string) error {
	ctx, cancel := context.WithTimeout(ctx, fetchTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, "git", "-C", dir, "fetch", "--quiet", "--no-tags", "--", remote, Refspec(remote, branch)) //nolint:gosec // the user's own clone and its remote
	cmd.Env = append(os.Environ(), "GIT_TERMINAL_PROMPT=0", "LC_ALL=C")
	errs := beginning.Of(maxSaid)
	cmd.Stderr = errs
	err := cmd.Run()
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil && errors.Is(context.Cause(ctx), context.DeadlineExceeded):
		return fmt.Errorf("fetch branch %s: %s does not answer within %s", branch, remote, fetchTimeout)
	case errs.String() == "":
		return fmt.Errorf("fetch branch %s: %w", branch, err)
	}
	said, _, _ := strings.Cut(strings.TrimSpace(errs.String()), "\n")
	return fmt.Errorf("fetch branch %s: git: %s", branch, escape.Line(said))
}

// maxSaid is how much is kept of what git says: a server's words may have no end.
const maxSaid = 4 << 10

// Refspec is what to fetch a branch by, such that its remote-tracking ref moves. A plain
// "git fetch origin ledger" moves none in a clone of one branch, which a shallow one is.
func Refspec(remote, branch string) string {
	return "+refs/heads/" + branch + ":refs/remotes/" + remote + "/" + branch
}

// Command is the same as a person types it.
func Command(remote, branch string) string {
	return "git fetch " + remote + " +" + branch + ":refs/remotes/" + remote + "/" + branch
}
