// Package helmchart is `fleetbroker install chart`: it writes the Helm chart that package
// chart makes, and keeps what was edited in it (package laid).
//
// Package cli calls Command; a command runs once, in one goroutine.
package helmchart

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/fleetbroker/fleetbroker/internal/api/hints"
	"github.com/fleetbroker/fleetbroker/internal/api/version"
	"github.com/fleetbroker/fleetbroker/internal/chart"
	"github.com/fleetbroker/fleetbroker/internal/laid"
)

// Command is the command; args checks its arguments, and fleet finds the fleet repo around
// the working directory.
func Command(out, errs io.Writer, args cobra.PositionalArgs, fleet func(dir string) (string, error)) *cobra.Command {
	var to string
	cmd := &cobra.Command{
		Use:   "chart -o DIR",
		Short: "Write the Helm chart of daemon and agent",
		Long: `Write into DIR the Helm chart of daemon and agent, of this program's version. It renders
what install/broker and install/agent build. What you edit in DIR is kept.`,
		Example: `  fleetbroker install chart -o chart
  helm install fleetbroker ./chart -n fleetbroker --create-namespace -f values.yaml`,
		Args: args,
		RunE: func(*cobra.Command, []string) error {
			if to == "" {
				return hints.On(errors.New("name the directory to write: -o chart"), "fleetbroker install chart --help")
			}
			files, err := chart.Files(version.Text(), version.Releases())
			if err != nil {
				return err
			}
			done, err := laid.Write(to, chart.Lock, files, version.Text(), nil)
			if err != nil {
				return err
			}
			if here, err := fleet("."); err == nil { // a cluster may have this command's name
				if _, err := os.Stat(filepath.Join(here, "clusters", "chart.yaml")); err == nil {
					fmt.Fprintln(errs, "fleetbroker: this is the Helm chart; what cluster chart needs is written by: fleetbroker install -o DIR -- chart")
				}
			}
			_, err = fmt.Fprintf(out, "wrote the chart into %s: %s\n%s", to, done.Counts(), done.KeptText())
			return err
		},
	}
	cmd.Flags().StringVarP(&to, "output", "o", "", "directory to write")
	_ = cmd.MarkFlagDirname("output")
	return cmd
}
