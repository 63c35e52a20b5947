package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/fleetbroker/fleetbroker/internal/cli/tables"
	"github.com/fleetbroker/fleetbroker/internal/pki"
)

func newCmdPKI(s Streams) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "pki",
		Short: "Make the fleet's certificate authority and its certificates",
		Long: `Agents and the daemon know each other by certificates of one authority. Keep
its directory off the fleet repo and off the clusters: who has ca.key can speak
for every cluster.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newCmdPKIInit(s), newCmdPKIIssue(s), newCmdPKIRevoke(s))
	return cmd
}

type pkiInitOptions struct {
	streams   Streams
	dir, name string
	output    string
}

func newCmdPKIInit(s Streams) *cobra.Command {
	o := pkiInitOptions{streams: s}
	cmd := &cobra.Command{
		Use:     "init DIR",
		Short:   "Make a certificate authority in DIR",
		Example: `  fleetbroker pki init ~/acme-pki --name acme`,
		Args:    exactly(1, "one argument: the directory of the authority"),
		RunE: func(_ *cobra.Command, args []string) error {
			o.dir = args[0]
			return pkiInitRun(o)
		},
	}
	cmd.Flags().StringVar(&o.name, "name", "fleetbroker", "name of the authority, for people")
	outcomeFlag(cmd, &o.output)
	return cmd
}

func pkiInitRun(o pkiInitOptions) error {
	if _, err := pki.InitCA(o.dir, o.name, o.streams.Now); err != nil {
		return err
	}
	return printOutcome(o.streams.Out, o.output, struct {
		Name string `json:"name"`
		Dir  string `json:"dir"`
	}{o.name, o.dir}, fmt.Sprintf("made the authority in %s\nnext: fleetbroker pki issue %s CLUSTER --out DIR\n", o.dir, o.dir))
}

type pkiIssueOptions struct {
	streams       Streams
	dir, cn, role string
	out, output   string
	fleet         string
	hosts         []string
}

func newCmdPKIIssue(s Streams) *cobra.Command {
	o := pkiIssueOptions{streams: s}
	cmd := &cobra.Command{
		Use:   "issue DIR NAME",
		Short: "Issue a certificate for the cluster, person, program or server NAME",
		Long: `Issue a certificate by the authority in DIR. For an agent NAME is its cluster's
id. An operator reads everything, a reader only the market. tls.crt, tls.key and
ca.crt are written to --out, in the form that --broker-cert-path of the agent and
--cert-path of the daemon take. With --fleet-id a server's is for the daemon of
that fleet alone.`,
		Example: `  fleetbroker pki issue ~/acme-pki paris --out paris-certs
  fleetbroker pki issue ~/acme-pki broker --role server --host broker.example.org --out broker-certs
  fleetbroker pki issue ~/acme-pki ada --role operator --out ada-certs`,
		Args: exactly(2, "two arguments: the directory of the authority and a name"),
		RunE: func(_ *cobra.Command, args []string) error {
			o.dir, o.cn = args[0], args[1]
			if err := oneOf("role", o.role, string(pki.Agent), string(pki.Operator), string(pki.Reader), string(pki.Server)); err != nil {
				return err
			}
			if o.role == string(pki.Server) && len(o.hosts) == 0 {
				return usagef("a server's certificate needs --host: the names and addresses under which agents reach it")
			}
			return pkiIssueRun(o)
		},
	}
	cmd.Flags().StringVar(&o.role, "role", string(pki.Agent), "agent, operator, reader or server")
	cmd.Flags().StringSliceVar(&o.hosts, "host", nil, "DNS name or IP address under which the holder serves; repeatable")
	cmd.Flags().StringVar(&o.fleet, "fleet-id", "", "id of the fleet that a server's certificate is for: it is no replica of another one's")
	cmd.Flags().StringVar(&o.out, "out", "", "directory to write to (default NAME under DIR)")
	outcomeFlag(cmd, &o.output)
	return cmd
}

func pkiIssueRun(o pkiIssueOptions) error {
	ca, err := pki.OpenCA(o.dir, o.streams.Now)
	if err != nil {
		return err
	}
	if o.out == "" {
		o.out = filepath.Join(o.dir, o.cn)
	}
	// Looked at first, so that no certificate is issued that nobody gets.
	if _, err := os.Stat(filepath.Join(o.out, pki.KeyFile)); err == nil {
		return hinted(fmt.Errorf("%s has a %s already", o.out, pki.KeyFile), "choose another directory with --out, or remove what is there")
	}
	bundle, err := ca.Issue(pki.Request{Name: o.cn, Role: pki.Role(o.role), Hosts: o.hosts, Fleet: o.fleet})
	if err != nil {
		return err
	}
	if err := bundle.WriteDir(o.out); err != nil {
		return err
	}
	return printOutcome(o.streams.Out, o.output, struct {
		Name     string    `json:"name"`
		Role     string    `json:"role"`
		Serial   string    `json:"serial"`
		NotAfter time.Time `json:"notAfter"`
		Dir      string    `json:"dir"`
	}{o.cn, o.role, bundle.Serial, bundle.NotAfter.UTC(), o.out}, fmt.Sprintf("issued %s (%s), serial %s, good until %s, in %s\n",
		o.cn, o.role, bundle.Serial, bundle.NotAfter.UTC().Format(time.DateOnly), o.out))
}

type pkiRevokeOptions struct {
	streams         Streams
	dir, who, fleet string
	output          string
}

func newCmdPKIRevoke(s Streams) *cobra.Command {
	o := pkiRevokeOptions{streams: s}
	cmd := &cobra.Command{
		Use:   "revoke DIR NAME|SERIAL",
		Short: "Revoke every certificate of NAME, or the one with SERIAL",
		Long: `Revoke certificates of the authority in DIR. The list, DIR/revoked.crl, takes
effect once it is committed to the fleet repo as pki/revoked.crl, where --fleet
writes it: the daemon then refuses these certificates and cuts the connections
that were made with them. It takes no list that is older than the one it has.`,
		Example: `  fleetbroker pki revoke ~/acme-pki oslo --fleet fleet && git -C fleet commit -m "Revoke oslo" pki/revoked.crl`,
		Args:    exactly(2, "two arguments: the directory of the authority and a name or serial number"),
		RunE: func(_ *cobra.Command, args []string) error {
			o.dir, o.who = args[0], args[1]
			return pkiRevokeRun(o)
		},
	}
	cmd.Flags().StringVar(&o.fleet, "fleet", "", "checkout of the fleet repo to write pki/revoked.crl to")
	outcomeFlag(cmd, &o.output)
	return cmd
}

func pkiRevokeRun(o pkiRevokeOptions) error {
	if o.fleet != "" {
		if _, err := os.Stat(filepath.Join(o.fleet, "fleet.yaml")); err != nil {
			return usagef("--fleet %s is no checkout of a fleet repo: it has no fleet.yaml", o.fleet)
		}
	}
	ca, err := pki.OpenCA(o.dir, o.streams.Now)
	if err != nil {
		return err
	}
	n, err := ca.Revoke(o.who)
	if err != nil {
		return err
	}
	list := filepath.Join(o.dir, pki.RevokedFile)
	next := "copy " + list + " to pki/revoked.crl in the fleet repo and commit it"
	if o.fleet != "" {
		list = filepath.Join(o.fleet, "pki", pki.RevokedFile)
		if err := ca.WriteCRL(list); err != nil {
			return err
		}
		next = "commit " + list
	}
	return printOutcome(o.streams.Out, o.output, struct {
		Certificates int    `json:"certificates"`
		List         string `json:"list"`
	}{n, list}, fmt.Sprintf("revoked %s\nnext: %s\n", tables.Count(n, "certificate"), next))
}
