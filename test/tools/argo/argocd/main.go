// Command argocd is Argo CD's own programs that the tests run, unmodified: as in
// Argo CD's cmd, of which it leaves out the API server, the command line and what goes with
// them, a sixth of the packages. (One of those turns gRPC's SRV lookups on, which Argo CD's
// cmd turns off again.) ARGOCD_BINARY_NAME says which one it is.
package main

import (
	"fmt"
	"os"

	appcontroller "github.com/argoproj/argo-cd/v3/cmd/argocd-application-controller/commands"
	applicationset "github.com/argoproj/argo-cd/v3/cmd/argocd-applicationset-controller/commands"
	gitaskpass "github.com/argoproj/argo-cd/v3/cmd/argocd-git-ask-pass/commands"
	reposerver "github.com/argoproj/argo-cd/v3/cmd/argocd-repo-server/commands"
	"github.com/argoproj/argo-cd/v3/common"
	"github.com/argoproj/argo-cd/v3/util/log"
	"github.com/spf13/cobra"
	"k8s.io/klog/v2"
)

func main() {
	klog.SetLogger(log.NewLogrusLogger(log.NewWithCurrentConfig()))
	commands := map[string]func() *cobra.Command{
		common.CommandApplicationController:    appcontroller.NewCommand,
		common.CommandRepoServer:               reposerver.NewCommand,
		common.CommandApplicationSetController: applicationset.NewCommand,
		common.CommandGitAskPass:               gitaskpass.NewCommand,
	}
	name := os.Getenv("ARGOCD_BINARY_NAME")
	command := commands[name]
	if command == nil {
		fmt.Fprintf(os.Stderr, "argocd: ARGOCD_BINARY_NAME=%q is none of its programs\n", name)
		os.Exit(2)
	}
	if err := command().Execute(); err != nil {
		os.Exit(1)
	}
}
