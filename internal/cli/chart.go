package cli

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/fleetbroker/fleetbroker/internal/api/version"
	"github.com/fleetbroker/fleetbroker/internal/chart"
	"github.com/fleetbroker/fleetbroker/internal/laid"
)

func newCmdInstallChart(s Streams) *cobra.Command {
	var to string
	cmd := &cobra.Command{
		Use:   "chart -o DIR",
		Short: "Write the Helm chart of daemon and agent",
		Long: `Write into DIR the Helm chart of daemon and agent, of this program's version. It renders
what install/broker and install/agent build. What you edit in DIR is kept.`,
		Example: `  fleetbroker install chart -o chart
  helm install fleetbroker ./chart -n fleetbroker --create-namespace -f values.yaml`,
		Args: exactly(0, "no arguments"),
		RunE: func(*cobra.Command, []string) error {
			if to == "" {
				return usagef("name the directory to write: -o chart")
			}
			files, err := chart.Files(version.Text())
			if err != nil {
				return err
			}
			out, err := laid.Write(to, chart.Lock, files, version.Text(), nil)
			if err != nil {
				return err
			}
			if here, err := findFleet("."); err == nil { // a cluster may have this command's name
				if _, err := os.Stat(filepath.Join(here, "clusters", "chart.yaml")); err == nil {
					fmt.Fprintln(s.Err, "fleetbroker: this is the Helm chart; what cluster chart needs is written by: fleetbroker install -o DIR -- chart")
				}
			}
			_, err = fmt.Fprintf(s.Out, "wrote the chart into %s: %s\n%s", to, out.Counts(), out.KeptText())
			return err
		},
	}
	cmd.Flags().StringVarP(&to, "output", "o", "", "directory to write")
	_ = cmd.MarkFlagDirname("output")
	return cmd
}
