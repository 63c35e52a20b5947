package cli

import (
	"fmt"
	"runtime"

	"github.com/spf13/cobra"

	"github.com/fleetbroker/fleetbroker/internal/api/version"
)

func newCmdVersion(s Streams) *cobra.Command {
	var output string
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Args:  exactly(0, "no arguments"),
		RunE: func(*cobra.Command, []string) error {
			return printOutcome(s.Out, output, struct {
				Version  string `json:"version"`
				Go       string `json:"go"`
				Platform string `json:"platform"`
			}{version.Text(), runtime.Version(), version.Platform()}, versionLine())
		},
	}
	outcomeFlag(cmd, &output)
	return cmd
}

// versionLine is what `version` and --version print.
func versionLine() string {
	return fmt.Sprintf("fleetbroker %s %s %s\n", version.Text(), runtime.Version(), version.Platform())
}
