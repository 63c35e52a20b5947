package cli

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

// Version is set by the release build (-ldflags -X); otherwise the module's
// version and the commit stand in for it.
var Version = ""

func newCmdVersion(s Streams) *cobra.Command {
	var output string
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Args:  exactly(0, "no arguments"),
		RunE: func(*cobra.Command, []string) error {
			platform := runtime.GOOS + "/" + runtime.GOARCH
			return printOutcome(s.Out, output, struct {
				Version  string `json:"version"`
				Go       string `json:"go"`
				Platform string `json:"platform"`
			}{versionText(), runtime.Version(), platform}, fmt.Sprintf("fleetbroker %s %s %s\n", versionText(), runtime.Version(), platform))
		},
	}
	outcomeFlag(cmd, &output)
	return cmd
}

func versionText() string {
	if Version != "" {
		return Version
	}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	v := info.Main.Version
	if v == "" || v == "(devel)" {
		v = "devel"
		for _, s := range info.Settings {
			if s.Key == "vcs.revision" && len(s.Value) >= 7 {
				v += "-" + s.Value[:7]
			}
		}
	}
	return v
}
