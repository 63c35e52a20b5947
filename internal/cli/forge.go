package cli

import (
	"time"

	"github.com/spf13/pflag"

	"github.com/fleetbroker/fleetbroker/internal/forge"
	"github.com/fleetbroker/fleetbroker/internal/forge/forges"
	"github.com/fleetbroker/fleetbroker/internal/reconciler/reviews"
	"github.com/fleetbroker/fleetbroker/internal/reconciler/reviews/theirs"
)

// forgeFlags say where pull requests are. The token is a file, so that it
// stands neither in git nor in a process list.
type forgeFlags struct {
	config  forge.Config
	kind    string
	refresh time.Duration
}

func (f *forgeFlags) register(fs *pflag.FlagSet) {
	fs.StringVar(&f.kind, "forge", "", "forge of the fleet repo: github, gitlab or gitea (Forgejo too); empty leaves pull requests alone")
	fs.StringVar(&f.config.URL, "forge-url", "", "URL of the forge; on GitHub of its API (default: derived from the repository's URL)")
	fs.StringVar(&f.config.Repo, "forge-repo", "", "the repository's name on the forge, owner/name (default: derived from the repository's URL)")
	fs.StringVar(&f.config.TokenFile, "forge-token-file", "", "file with the forge's access token")
	fs.StringVar(&f.config.User, "forge-user", "", "login that the token belongs to, for tokens that may not ask (GitHub Apps)")
	fs.StringVar(&f.config.CAFile, "forge-ca-file", "", "further certificate authorities for the forge's API")
}

// registerReviews adds what only who looks after pull requests has.
func (f *forgeFlags) registerReviews(fs *pflag.FlagSet) {
	f.register(fs)
	fs.DurationVar(&f.refresh, "review-refresh", time.Minute, "how often what is posted on an unchanged pull request changes at most")
}

// open makes the forge's client; nil where none is configured.
func (f *forgeFlags) open(remote string) (forge.Forge, error) {
	if f.kind == "" {
		if f.config.TokenFile != "" {
			return nil, usagef("--forge-token-file needs --forge: github, gitlab or gitea")
		}
		return nil, nil
	}
	f.config.Kind = forge.Kind(f.kind)
	opened, err := forges.Open(f.config, remote)
	if err != nil {
		return nil, hinted(err, "see --forge, --forge-url, --forge-repo and --forge-token-file in `fleetbroker run --help`")
	}
	return opened, nil
}

// theirPullRequests looks after those of tenants' own repositories; nil in a shadow.
func (o *runOptions) theirPullRequests(d *daemon, common *reviews.Common) *theirs.Set {
	if o.shadow {
		return nil
	}
	return theirs.New(theirs.Options{Keeper: d.sources, Common: common, View: d.loop.View, Refresh: o.forge.refresh, Now: o.streams.Now, Log: d.log, Speaks: d.election.Holds})
}

// pullRequests looks after pull requests; nil where no forge is configured.
func (o *runOptions) pullRequests(d *daemon, common *reviews.Common) *reviews.Reviews {
	if d.forge == nil {
		return nil
	}
	return reviews.New(reviews.Options{
		Forge: d.forge, Repo: d.repo, Common: common, View: d.loop.View, Branch: o.inputs, Poll: o.poll, Refresh: o.forge.refresh,
		Now: o.streams.Now, Log: d.log, Speaks: d.election.Holds,
	})
}
