package cli

import (
	"fmt"
	"runtime"

	"github.com/spf13/cobra"

	"github.com/fleetbroker/fleetbroker/internal/api/version"
	"github.com/fleetbroker/fleetbroker/internal/cli/attested"
)

func newCmdVersion(s Streams) *cobra.Command {
	var output, file, key, provenance string
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Print the version, or check a file of a release",
		Long: `Print the version of this program. With --verify: check an archive or program of a
release by its digest, the release's provenance and the public key of who releases.`,
		Example: `  fleetbroker version
  fleetbroker version --verify fleetbroker_v0.1.0_linux_amd64.tar.gz --key cosign.pub`,
		Args: exactly(0, "no arguments"),
		RunE: func(*cobra.Command, []string) error {
			if file != "" {
				r, err := attested.Check(file, key, provenance)
				if err != nil {
					return err
				}
				return printOutcome(s.Out, output, r, r.Text())
			}
			return printOutcome(s.Out, output, struct {
				Version  string `json:"version"`
				Go       string `json:"go"`
				Platform string `json:"platform"`
			}{version.Text(), runtime.Version(), version.Platform()}, versionLine())
		},
	}
	cmd.Flags().StringVar(&file, "verify", "", "archive or program of a release to check")
	cmd.Flags().StringVar(&key, "key", "", "public key of who releases, with --verify (PEM)")
	cmd.Flags().StringVar(&provenance, "provenance", "", "provenance of the release, with --verify (default: "+attested.File+" next to the file)")
	outcomeFlag(cmd, &output)
	return cmd
}

// versionLine is what `version` and --version print.
func versionLine() string {
	return fmt.Sprintf("fleetbroker %s %s %s\n", version.Text(), runtime.Version(), version.Platform())
}
