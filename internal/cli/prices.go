package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/fleetbroker/fleetbroker/internal/api/escape"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/cli/outfile"
	"github.com/fleetbroker/fleetbroker/internal/prices"
)

type pricesOptions struct {
	sourceFlags
	streams   Streams
	kind      string
	from      []string
	file      string
	name      string
	fleet     string
	providers []string
	machines  []string
	models    []string
	currency  string
	output    string
	proposes  bool
	forge     forgeFlags
	author    v1alpha1.Person // of the fleet's commits, for a proposal
}

// priceSources are what prices can be imported from.
var priceSources = []string{"aws", "gcp", "azure", "csv", "configmap"}

func newCmdPrices(s Streams) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "prices",
		Short: "Price tables for flavors that name no price",
		Args:  cobra.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newCmdPricesImport(s))
	return cmd
}

func newCmdPricesImport(s Streams) *cobra.Command {
	o := pricesOptions{streams: s}
	cmd := &cobra.Command{
		Use:   "import aws|gcp|azure|csv|configmap --from FILE|URL",
		Short: "Write a price table from what a cloud publishes",
		Long: `Write a PriceTable from what others publish:

  aws        an offer file of AmazonEC2, or what aws pricing get-products prints
  gcp        the Cloud Billing Catalog's SKUs of Compute Engine
  azure      the answer of the Retail Prices API
  csv        a table of offers
  configmap  a Kubernetes ConfigMap with OpenCost's keys CPU, RAM, GPU, storage

Answers with a next page are followed when --from is a URL; of files, give all
pages. A row is a provider cluster and a GPU model: of several machines the
cheapest GPU counts. Clusters are those named by --provider, or those of --fleet
(or of the fleet repo around the working directory) that are in the region, or else
"<cloud>-<region>". What is not understood is
said on standard error.

With --propose the table becomes prices/NAME.yaml on a branch of the fleet repo, and
with --forge a pull request, unless it is as it was: for a CronJob
(install/broker/prices).`,
		Example: `  aws pricing get-products --service-code AmazonEC2 --filters ... > ec2.json
  fleetbroker prices import aws --from ec2.json --provider eu-west-1=dublin -f prices/aws.yaml
  fleetbroker prices import azure --from "https://prices.azure.com/api/retail/prices?$filter=..." --fleet .
  fleetbroker prices import azure --from "https://prices.azure.com/…" --fleet https://git.example.org/acme/fleet.git \
    --git-user fleetbroker --git-password-file token --propose --forge gitlab --forge-token-file token
  fleetbroker prices import configmap --from pricing.yaml --provider paris --model H100 --currency EUR`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 || !slices.Contains(priceSources, args[0]) {
				return usagef("the command takes one of %s", strings.Join(priceSources, ", "))
			}
			return nil
		},
		ValidArgs: priceSources,
		RunE: func(cmd *cobra.Command, args []string) error {
			o.kind = args[0]
			return pricesImportRun(cmd.Context(), o)
		},
	}
	f := cmd.Flags()
	o.register(f)
	f.StringArrayVar(&o.from, "from", nil, "file or URL of an answer; several for several pages, - is standard input")
	f.StringVarP(&o.file, "file", "f", "", "write the table to this file (default standard output)")
	f.StringVar(&o.name, "name", "", "name of the table (default the source)")
	f.StringVar(&o.fleet, "fleet", "", "fleet repo whose provider clusters are in the regions, as -C names it")
	f.StringArrayVar(&o.providers, "provider", nil, "REGION=CLUSTER; without a region the cluster of all prices")
	f.StringSliceVar(&o.machines, "machines", nil, "machines that count, such as p5.48xlarge; default all")
	f.StringSliceVar(&o.models, "model", nil, "models that a configmap's GPU price is for")
	f.StringVar(&o.currency, "currency", "USD", "currency of a configmap's prices")
	f.BoolVar(&o.proposes, "propose", false, "put the table onto a branch of --fleet, a URL, and with --forge open a pull request")
	o.forge.register(f)
	checkedOutput(cmd, &o.output, "yaml", "json")
	return cmd
}

func pricesImportRun(ctx context.Context, o pricesOptions) error {
	if len(o.from) == 0 {
		return hinted(usagef("--from is needed"), "a file or URL with what the provider answers; fleetbroker prices import --help names the sources")
	}
	url := ""
	if o.proposes {
		var err error
		if url, err = o.remote(); err != nil {
			return err
		}
	}
	opts := prices.Options{Name: o.name, Cloud: o.kind, Machines: o.machines}
	if opts.Name == "" {
		opts.Name = o.kind
	}
	file, err := outfile.Open(o.file)
	if err != nil {
		return fmt.Errorf("--file: %w", err)
	}
	defer file.Discard()
	if err := o.clusters(ctx, &opts); err != nil {
		return err
	}
	all := &prices.Answer{}
	for _, from := range o.from {
		pages := 0
		for next := from; next != ""; {
			if pages++; pages > maxPages {
				return fmt.Errorf("import prices from %s: more than %d pages", withoutQuery(from), maxPages)
			}
			in, err := openAnswer(ctx, o.streams, next)
			if err != nil {
				return err
			}
			a, err := o.read(in)
			_ = in.Close()
			if err == nil {
				err = all.Add(a)
			}
			if err != nil {
				return fmt.Errorf("import prices from %s: %w", withoutQuery(from), err)
			}
			if next, err = o.nextPage(next, a.Next); err != nil {
				return err
			}
		}
	}
	if o.kind == "csv" && opts.Providers == nil {
		// The table names its clusters whole.
		opts.Providers = map[string][]string{}
		for _, q := range all.Quotes {
			opts.Providers[q.Region] = []string{q.Region}
		}
	}
	table, more, err := prices.Table(all.Quotes, opts)
	if err != nil {
		return fmt.Errorf("make the price table: %w", err)
	}
	notes := slices.Concat(all.Notes, more)
	slices.Sort(notes)
	notes = slices.Compact(notes)
	for _, n := range notes {
		fmt.Fprintln(o.streams.Err, "fleetbroker: "+escape.Line(n))
	}
	if len(table.Spec.Prices) == 0 {
		return hinted(errors.New("there is no price of a GPU in it"), "is it the right answer, and do --provider or --fleet name its regions?")
	}
	if o.proposes {
		return o.propose(ctx, url, table, notes)
	}
	return o.write(file, table)
}

// read reads one answer.
func (o *pricesOptions) read(in io.Reader) (*prices.Answer, error) {
	switch o.kind {
	case "aws":
		return prices.AWS(in)
	case "gcp":
		return prices.GCP(in)
	case "azure":
		return prices.Azure(in)
	case "csv":
		return prices.CSV(in)
	}
	return prices.ConfigMap(in, strings.ToUpper(o.currency), o.models)
}

func (o *pricesOptions) write(file *outfile.File, table any) error {
	var text bytes.Buffer
	if err := printOutcome(&text, o.output, table, ""); err != nil {
		return fmt.Errorf("write the price table: %w", err)
	}
	b := text.Bytes()
	if o.file == "" {
		_, err := o.streams.Out.Write(b)
		return err
	}
	return file.Replace(b)
}

// clusters finds out which clusters stand in which region.
func (o *pricesOptions) clusters(ctx context.Context, into *prices.Options) error {
	add := func(region, cluster string) {
		if into.Providers == nil {
			into.Providers = map[string][]string{}
		}
		if !slices.Contains(into.Providers[region], cluster) {
			into.Providers[region] = append(into.Providers[region], cluster)
			slices.Sort(into.Providers[region])
		}
	}
	for _, text := range o.providers {
		region, cluster, two := strings.Cut(text, "=")
		if !two {
			into.Cloud, cluster, region = text, text, ""
			if o.kind != "configmap" {
				return usagef("--provider %q: want REGION=CLUSTER", text)
			}
		}
		if cluster == "" {
			return usagef("--provider %q: want REGION=CLUSTER", text)
		}
		add(region, cluster)
	}
	var named []string
	switch {
	case o.fleet != "":
		named = []string{o.fleet}
	case o.dir == "":
		// The fleet repo around the working directory, where there is one that helps.
		around, err := findFleet(".")
		if err != nil || len(o.providers) > 0 || o.kind == "csv" {
			return nil //nolint:nilerr // none is needed
		}
		named = []string{around}
	}
	src, err := o.open(ctx, named)
	if err != nil {
		return err
	}
	f, err := src.readFleet(ctx)
	if err != nil {
		return err
	}
	o.author = f.Policy.WriteBack.Author
	for name, c := range f.Clusters {
		if c.HasRole("provider") && c.Spec.Location.Region != "" {
			add(c.Spec.Location.Region, name)
		}
	}
	if into.Providers == nil && o.fleet == "" && o.dir == "" {
		return nil
	}
	if into.Providers == nil {
		return fmt.Errorf("no provider cluster of %s has a location.region", src.where)
	}
	return nil
}

const (
	maxPages      = 1000
	answerTimeout = 5 * time.Minute
)

func openAnswer(ctx context.Context, s Streams, from string) (io.ReadCloser, error) {
	switch {
	case from == "-":
		return io.NopCloser(s.In), nil
	case isURL(from):
		return getAnswer(ctx, from)
	}
	f, err := os.Open(from) //nolint:gosec // the user named the file
	if err != nil {
		return nil, fmt.Errorf("read prices: %w", err)
	}
	return f, nil
}

// getAnswer asks a server: by https, or by http on this machine.
func getAnswer(ctx context.Context, from string) (io.ReadCloser, error) {
	u, err := url.Parse(from)
	if err != nil || u.Host == "" || (u.Scheme != "https" && u.Scheme != "http") {
		return nil, usagef("--from %q: want a file, or a URL that begins with https://", withoutQuery(from))
	}
	if ip := net.ParseIP(u.Hostname()); u.Scheme == "http" && u.Hostname() != "localhost" && (ip == nil || !ip.IsLoopback()) {
		return nil, usagef("--from %s: http is for this machine alone; use https", withoutQuery(from))
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return nil, fmt.Errorf("ask %s: %w", withoutQuery(from), err)
	}
	client := &http.Client{Timeout: answerTimeout, CheckRedirect: func(r *http.Request, via []*http.Request) error {
		if r.URL.Scheme != u.Scheme || r.URL.Host != u.Host || len(via) > 5 {
			return fmt.Errorf("it sends on to %q, which is not followed: where that is right, give its address with --from", r.URL.Scheme+"://"+r.URL.Host)
		}
		return nil
	}}
	resp, err := client.Do(req)
	if err != nil {
		var at *url.Error
		if errors.As(err, &at) {
			err = at.Err // without the URL, which may hold a key
		}
		return nil, fmt.Errorf("ask %s for prices: %w", withoutQuery(from), err)
	}
	if resp.StatusCode != http.StatusOK {
		_ = resp.Body.Close()
		return nil, fmt.Errorf("ask %s for prices: it answers %s", withoutQuery(from), resp.Status)
	}
	return resp.Body, nil
}

// withoutQuery is a file or URL as it may be shown: Google wants an API key in
// the query.
func withoutQuery(from string) string {
	if isURL(from) {
		from, _, _ = strings.Cut(from, "?")
		if u, err := url.Parse(from); err == nil {
			return u.Redacted()
		}
	}
	return from
}

// nextPage is where a URL's answer goes on. Files do not go on by themselves.
func (o *pricesOptions) nextPage(at, next string) (string, error) {
	if next == "" {
		return "", nil
	}
	if !isURL(at) {
		if len(o.from) == 1 {
			fmt.Fprintln(o.streams.Err, "fleetbroker: the answer has further pages: give them too, each with --from")
		}
		return "", nil
	}
	to, err := prices.Next(at, next)
	if err != nil {
		return "", fmt.Errorf("follow the pages of %s: %w", withoutQuery(at), err)
	}
	return to, nil
}
