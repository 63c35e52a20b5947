package cli

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/fleetbroker/fleetbroker/internal/api/version"
	"github.com/fleetbroker/fleetbroker/internal/cli/helmchart"
	"github.com/fleetbroker/fleetbroker/internal/fleet"
	"github.com/fleetbroker/fleetbroker/internal/install"
	"github.com/fleetbroker/fleetbroker/internal/laid"
	"github.com/fleetbroker/fleetbroker/internal/ledger"
)

type installOptions struct {
	sourceFlags
	streams                   Streams
	cluster, to               string
	brokerURL, image, repoURL string
}

func newCmdInstall(s Streams) *cobra.Command {
	o := installOptions{streams: s}
	cmd := &cobra.Command{
		Use:   "install CLUSTER -o DIR",
		Short: "Write what a cluster needs: a kustomization with its rights, peers and agent",
		Long: `Write into DIR what one cluster of the fleet needs, from the install bases of this
program, named and filled in by the fleet repo: the daemon's rights and policies on a
consumer, a provider's peerings (one entry for each peer), the agent with its cluster id,
what Flux or Argo CD apply for each tenant, and Liqo's values. DIR is a kustomization
for kubectl apply -k, Flux or Argo CD.

Run it again when a cluster or tenant is added, and with each new version: what you
edited in DIR is kept, and where it has a new version that is next to it as NAME.new.

The daemon's address and the agent's image are those of install/agent in the fleet repo,
unless flags name others.`,
		Example: `  fleetbroker install rome -o install/clusters/rome
  fleetbroker install paris -o install/clusters/paris --broker-url https://broker.acme.example:8443
  kubectl --context rome apply -k install/clusters/rome`,
		Args: exactly(1, "one argument: a cluster of the fleet"),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.cluster = args[0]
			if o.to == "" {
				return usagef("name the directory to write: -o install/clusters/%s", o.cluster)
			}
			return installRun(cmd.Context(), o)
		},
	}
	o.register(cmd.Flags())
	cmd.Flags().StringVarP(&o.to, "output", "o", "", "directory to write")
	cmd.Flags().StringVar(&o.brokerURL, "broker-url", "", "address of the daemon that agents reach (default: as in install/agent)")
	cmd.Flags().StringVar(&o.image, "image", "", "image of the agent, with tag or digest (default: as in install/agent)")
	cmd.Flags().StringVar(&o.repoURL, "repo-url", "", "URL of the fleet repo that Flux or Argo CD reach (default: the checkout's origin)")
	_ = cmd.MarkFlagDirname("output")
	cmd.ValidArgsFunction = completeNames(clusterNames)
	cmd.AddCommand(helmchart.Command(s.Out, s.Err, exactly(0, "no arguments"), findFleet))
	return cmd
}

// clusterNames are the fleet's clusters.
func clusterNames(f *fleet.Fleet, _ *ledger.Ledger, args []string) []string {
	if len(args) > 0 {
		return nil
	}
	return sortedNames(f.Clusters)
}

func installRun(ctx context.Context, o installOptions) error {
	src, err := o.open(ctx, nil)
	if err != nil {
		return err
	}
	f, err := src.readFleet(ctx)
	if err != nil {
		return err
	}
	for _, d := range f.Errors() {
		if d.File == "clusters/"+o.cluster+".yaml" {
			return hinted(fmt.Errorf("the cluster's file is not well written: %s", d), "fleetbroker validate")
		}
	}
	id, err := src.installedID()
	if err != nil {
		return err
	}
	brokerURL, image := install.Sample(src.file)
	files, err := (&install.Fleet{
		Clusters: f.Delivered(), Tenants: f.Tenants, ID: id, Ledger: f.Policy.WriteBack.Branch,
		RepoURL: cmp.Or(o.repoURL, src.origin()), BrokerURL: cmp.Or(o.brokerURL, brokerURL), Image: cmp.Or(o.image, image),
	}).Files(o.cluster)
	if err != nil {
		return err
	}
	out, err := laid.Write(o.to, install.Lock, files, version.Text(), map[string]string{"cluster": o.cluster})
	if err != nil {
		return err
	}
	next := "next: kubectl --context " + o.cluster + " apply -k " + o.to + "\n"
	if strings.Contains(string(files["kustomization.yaml"]), "\n- agent\n") {
		next += "      before it the agent's certificate: docs/install.md, steps 3 and 4\n"
	} else if o.brokerURL != "" || o.image != "" {
		next += "note: " + o.cluster + " gets no agent: --broker-url and --image are not used\n"
	}
	_, err = fmt.Fprintf(o.streams.Out, "wrote what cluster %s needs into %s: %s\n%s%s", o.cluster, o.to, out.Counts(), out.KeptText(), next)
	return err
}

// installedID is the fleet's id: the trust root's, and that of the repo's install bases.
func (s *source) installedID() (string, error) {
	root, repo := s.root.ID(), install.ID(s.file)
	if root != "" && repo != "" && root != repo {
		return "", hinted(fmt.Errorf("the trust root is of fleet %s, the install bases of %s", root, repo), "name this fleet's trust root with --trust-root")
	}
	return cmp.Or(root, repo), nil
}

// file is one of the inputs' files.
func (s *source) file(name string) ([]byte, error) { return s.inputs.ReadFile(name, 1<<20) }

// origin is the URL of the checkout's remote, "" where it has none.
func (s *source) origin() string {
	if s.repo == nil {
		return ""
	}
	if remote, err := s.repo.Remote("origin"); err == nil && len(remote.Config().URLs) > 0 {
		return remote.Config().URLs[0]
	}
	return ""
}
