package cli

import (
	"fmt"
	"runtime"

	"github.com/spf13/cobra"

	"github.com/fleetbroker/fleetbroker/internal/api/version"
	"github.com/fleetbroker/fleetbroker/internal/cli/attested"
)

func newCmdVersion(s Streams) *cobra.Command {
	var output string
	var proof attested.Options
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Print the version, or check a file of a release",
		Args:  exactly(0, "no arguments"),
		RunE: func(*cobra.Command, []string) error {
			if r, err := proof.Check(); err != nil {
				return err
			} else if r != nil {
				return printOutcome(s.Out, output, r, r.Text())
			}
			return printOutcome(s.Out, output, struct {
				Version  string `json:"version"`
				Go       string `json:"go"`
				Platform string `json:"platform"`
			}{version.Text(), runtime.Version(), version.Platform()}, versionLine())
		},
	}
	proof.On(cmd)
	outcomeFlag(cmd, &output)
	return cmd
}

// versionLine is what `version` and --version print.
func versionLine() string {
	return fmt.Sprintf("fleetbroker %s %s %s\n", version.Text(), runtime.Version(), version.Platform())
}
