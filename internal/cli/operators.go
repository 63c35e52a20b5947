package cli

import (
	"fmt"
	"net"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/fleetbroker/fleetbroker/internal/api/wire"
	process "github.com/fleetbroker/fleetbroker/internal/daemon"
	"github.com/fleetbroker/fleetbroker/internal/forge"
	"github.com/fleetbroker/fleetbroker/internal/pki"
	"github.com/fleetbroker/fleetbroker/internal/pki/expiry"
	"github.com/fleetbroker/fleetbroker/internal/server"
	"github.com/fleetbroker/fleetbroker/internal/ui"
)

// operatorsPort is plain on the loopback interface; elsewhere it is TLS, and
// shows who asks no more than what certificate or token allow.
func (o *runOptions) operatorsPort(d *daemon, certs *pki.Files) (server.Port, error) {
	board := d.dashboard(certs, func(commit string) string { return forge.CommitPage(forge.Kind(o.forge.kind), o.url, commit) },
		func(n int) string { return forge.PullPage(forge.Kind(o.forge.kind), o.url, n) })
	handle := server.Operators{
		Metrics: d.metrics, Market: d.market, Profiling: o.profiling,
		Ready:     []server.Check{{Name: "fleet", Run: d.loop.Ready}, {Name: "state", Run: d.state.Err}, {Name: "market", Run: d.storeUp}, {Name: "market-writes", Run: d.storeTakes}, {Name: "leader-lease", Run: func() error { return d.election.Refused() }}, {Name: "pushes", Run: o.pushes.Err}, {Name: "advertised", Run: d.shared.Reachable}},
		Agents:    []server.Check{{Name: "market", Run: d.storeUp}, {Name: "fleet", Run: d.useful}},
		Dashboard: board,
		Trust:     func() wire.Trust { return d.loop.View().Trust },
		Sources:   d.sources.Status,
	}
	if err := d.metrics.Register(o.collectors(d, handle, board)...); err != nil {
		return server.Port{}, fmt.Errorf("serve operators: %w", err)
	}
	port := server.Port{Name: "operators", Address: o.operators}
	if !onLoopback(o.operators) {
		if certs == nil {
			return port, usagef("--operators-address %s is not on the loopback interface and needs --cert-path for TLS", o.operators)
		}
		config, err := process.Reviewer(o.operatorsKubeconfig)
		if err != nil {
			return port, fmt.Errorf("review tokens: %w", err)
		}
		if config == nil {
			d.log.Warn("no cluster reviews tokens: the operators' port takes certificates alone", "remedy", "run in a cluster, or give --operators-kubeconfig")
		}
		if handle.Guard, err = server.NewGuard(config, &d.revocations, o.streams.Now, d.log); err != nil {
			return port, err
		}
		pages := d.signIn(board)
		handle.Guard.Show = pages.Show
		if handle.Guard.Login, err = o.login.Open(pages); err != nil {
			return port, usagef("%v", err)
		}
		board.ShareTokens(handle.Guard.Login.Derived("tokens of pages"))
		port.TLS = server.GuardTLS(certs, d.log)
	} else if o.login.Set() {
		return port, usagef("--oidc-issuer needs an --operators-address that is not on the loopback interface, where everybody sees everything")
	}
	port.Handler = server.NewOperators(handle)
	return port, nil
}

// collectors are the figures beside those that rooms count.
func (o *runOptions) collectors(d *daemon, handle server.Operators, board *ui.UI) []prometheus.Collector {
	certificates := expiry.New("broker")
	if d.certs != nil {
		certificates.Follow("", d.certs)
	}
	return append(slices.Concat(process.StoreCollectors(func() *process.Shared { return d.shared }), process.LeaderCollectors(func() *process.Election { return d.election }), d.traces.Collectors("fleetbroker_trace_spans_total")), certificates,
		server.TrustCollector(handle.Trust), server.SourceCollector(handle.Sources), server.PushesCollector(o.pushes.Figures), ui.Collector(board),
		process.RemoteCollector(func() time.Duration { return d.loop.RemoteOut() }), process.RefusedCollector(func() map[string]int { return d.delivery.Refused() }),
		server.ContractsCollector{States: func() []wire.ContractState { return d.loop.View().States() }},
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "fleetbroker_inputs_unverified", Help: "Files of the inputs of which the newest version is not acted on, because no authorised account has signed it.",
		}, func() float64 { return float64(len(d.loop.View().Unverified())) }),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "fleetbroker_state_unwritten", Help: "Files of the state directory that cannot be written at present; /readyz has the reasons.",
		}, func() float64 { return float64(d.state.Failing()) }))
}

// onLoopback reports whether an address can be reached from this machine alone.
// A name is looked up by who binds it, and is not taken for one here.
func onLoopback(address string) bool {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return false
	}
	ip := net.ParseIP(host)
	return host == "localhost" || (ip != nil && ip.IsLoopback())
}
