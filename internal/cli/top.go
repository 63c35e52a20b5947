package cli

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/fleetbroker/fleetbroker/internal/api/escape"
	"github.com/fleetbroker/fleetbroker/internal/cli/top"
)

type topOptions struct {
	worldFlags
	watchFlags
	output string
}

func newCmdTop(s Streams) *cobra.Command {
	var o topOptions
	var once bool
	cmd := &cobra.Command{
		Use:   "top",
		Short: "Show what is free, held, queued and spent, live",
		Long: `Show what is free, held, queued and spent until interrupted: a terminal is redrawn, a
pipe gets what has changed. With --market of a daemon's operators' port it is what the
dashboard shows. Else, and while the daemon does not answer, it is what the fleet repo
and its ledger show; the first line says which.`,
		Example: `  fleetbroker top
  fleetbroker top --market https://broker.example.org:8444 --cert-path ~/certs
  fleetbroker top --once -o json`,
		Args: exactly(0, "no arguments; the fleet repo is named with -C"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := oneOf("output", o.output, "text", "json"); err != nil {
				return err
			}
			o.looked, o.watch = new(ledgerSeen), !once
			w := watched{watchFlags: o.watchFlags, form: o.output, key: 1, seen: o.looked, show: func(s Streams) error { return o.show(cmd.Context(), s) }}
			return w.run(cmd.Context(), s)
		},
	}
	o.worldFlags.register(cmd.Flags())
	cmd.Flags().BoolVar(&once, "once", false, "print once and end")
	cmd.Flags().DurationVar(&o.every, "watch-interval", 5*time.Second, "how often it is looked at")
	outputFlag(cmd, &o.output, "text", "json")
	return cmd
}

// show shows it once.
func (o *topOptions) show(ctx context.Context, s Streams) error {
	p, err := o.picture(ctx, s)
	switch {
	case err != nil:
		return err
	case o.output == "json":
		return escape.WriteJSON(s.Out, p)
	}
	return p.Print(s.Out, s.view("text"))
}

func (o *topOptions) picture(ctx context.Context, s Streams) (*top.Picture, error) {
	from, silent := "the ledger", error(nil)
	if isURL(o.market) {
		p, err := o.asked(ctx)
		var wrong *usageError
		if err == nil || errors.As(err, &wrong) {
			return p, err
		}
		from, silent = fmt.Sprintf("the ledger, because the daemon does not show it (%v)", err), err
	}
	offline := o.worldFlags
	if silent != nil {
		offline.market = ""
	}
	src, err := offline.open(ctx, nil)
	if err == nil {
		var in *gathered
		var said strings.Builder // a terminal is redrawn: what is said beside the picture would be gone at once
		s.Err = &said
		if in, err = offline.gather(ctx, src, s); err == nil {
			return top.Of(in.shown(o.looked.commit), in.now.Time, from, said.String())
		}
	}
	if silent != nil {
		return nil, silent
	}
	return nil, err
}

// asked is what a daemon shows.
func (o *topOptions) asked(ctx context.Context) (*top.Picture, error) {
	u, err := url.Parse(o.market)
	if err != nil || u.Host == "" {
		return nil, usagef("--market %q: want a URL such as https://broker.example.org:8444", o.market)
	}
	u.Path, u.RawQuery = "/api/ui/fleet", ""
	client, err := marketClient(u, o.certPath)
	if err != nil {
		return nil, err
	}
	_, content, err := askDaemon(ctx, client, u, "application/json")
	if err != nil {
		return nil, err
	}
	return top.Read(content, "the daemon at "+u.Host)
}
