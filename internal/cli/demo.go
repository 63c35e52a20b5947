package cli

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/fleetbroker/fleetbroker/internal/cli/quick"
)

func newCmdDemo(s Streams) *cobra.Command {
	return quick.Command(s.Out, func(ctx context.Context, out io.Writer, args ...string) error {
		var errs strings.Builder
		in := Streams{In: strings.NewReader(""), Out: out, Err: &errs, Terminal: true, Now: s.Now}
		if code := Run(ctx, in, args); code != exitOK && code != exitChanges {
			return fmt.Errorf("fleetbroker %s: %s", strings.Join(args, " "), strings.TrimSpace(errs.String()))
		}
		return nil
	})
}
