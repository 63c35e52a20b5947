package ui

import (
	"github.com/fleetbroker/fleetbroker/internal/ui/view"
)

// page is one address of the dashboard.
type page struct {
	// path below Root, as a pattern; nav is the entry of the navigation that it is under.
	path, nav, template string
	title               func(*call) string
	// answer is of the type that data gives, for the description of the JSON.
	answer any
	data   func(*call) (any, error)
}

// api is the page's path below APIRoot.
func (p *page) api() string {
	if p.path == "/{$}" {
		return "/fleet"
	}
	return p.path
}

// shown is the page's data for a query that the page understands.
func (p *page) shown(c *call) (any, error) {
	if err := c.query.CheckState(p.template); err != nil {
		return nil, badQuery(err)
	}
	return p.data(c)
}

func called(title string) func(*call) string { return func(*call) string { return title } }

// named titles a page by what it shows.
func named(what string, keys ...string) func(*call) string {
	return func(c *call) string {
		text := what + " "
		for i, k := range keys {
			if i > 0 {
				text += "/"
			}
			text += c.PathValue(k)
		}
		return text
	}
}

// found is a page, or that there is none: also of what exists and is not shown to who
// asks.
func found[T any](p *T, what string) (any, error) {
	if p == nil {
		return nil, notFound("There is no such " + what + ", or it is of a tenant that is not shown to you.")
	}
	return p, nil
}

// pages are all of them.
var pages = []page{
	{"/{$}", "fleet", "fleet", called("Fleet"), FleetAnswer{}, fleetPage},
	{"/intents", "intents", "intents", called("Intents"), view.List[view.IntentRow]{}, func(c *call) (any, error) { return c.model.Intents(c.sight, c.query), nil }},
	{"/intents/{tenant}/{name}", "intents", "intent", named("Intent", "tenant", "name"), IntentAnswer{}, intentPage},
	{"/intents/{tenant}/{name}/offers", "intents", "offers", named("Offers for", "tenant", "name"), OffersAnswer{}, offersPage},
	{"/queue", "queue", "queue", called("Queue"), view.List[view.QueueRow]{}, func(c *call) (any, error) { return c.model.Queue(c.sight, c.query), nil }},
	{"/contracts", "contracts", "contracts", called("Contracts"), view.List[view.ContractRow]{}, func(c *call) (any, error) { return c.model.Contracts(c.sight, c.query), nil }},
	{"/contracts/{name}", "contracts", "contract", named("Contract", "name"), ContractAnswer{}, contractPage},
	{"/flavors", "flavors", "flavors", called("Flavors"), view.List[view.FlavorRow]{}, func(c *call) (any, error) { return c.model.Flavors(c.query), nil }},
	{"/flavors/{provider}/{name}", "flavors", "flavor", named("Flavor", "provider", "name"), FlavorAnswer{}, flavorPage},
	{"/providers", "providers", "providers", called("Clusters"), view.List[view.ProviderRow]{}, func(c *call) (any, error) { return c.model.Providers(c.sight, c.query), nil }},
	{"/providers/{name}", "providers", "provider", named("Cluster", "name"), ProviderAnswer{}, providerPage},
	{"/tenants", "tenants", "tenants", called("Tenants"), view.List[view.TenantRow]{}, func(c *call) (any, error) { return c.model.Tenants(c.sight, c.query), nil }},
	{"/tenants/{name}", "tenants", "tenant", named("Tenant", "name"), TenantAnswer{}, tenantPage},
	{"/peerings", "peerings", "peerings", called("Peerings"), view.List[view.Peering]{}, func(c *call) (any, error) { return c.model.PeeringsOf(c.sight, c.query), nil }},
	{"/peerings/{consumer}/{provider}", "peerings", "peering", named("Peering", "consumer", "provider"), PeeringAnswer{}, peeringPage},
	{"/calendar", "calendar", "calendar", called("Calendar"), view.CalendarPage{}, func(c *call) (any, error) {
		if !c.URL.Query().Has("size") {
			c.query.Size = calendarSize
		}
		p := c.model.Calendar(c.sight, c.query)
		return &p, nil
	}},
	{"/cost", "cost", "cost", called("Cost"), view.CostPage{}, func(c *call) (any, error) {
		p, err := c.model.Cost(c.sight, c.query)
		if err != nil {
			return nil, badQuery(err)
		}
		return &p, nil
	}},
	{"/commits", "commits", "commits", called("History"), CommitsAnswer{}, commitsPage},
	{"/audit", "audit", "audit", called("Audit"), AuditAnswer{}, auditPage},
	{capacityPath, "capacity", "capacity", called("Capacity"), CapacityAnswer{}, capacityPage},
	{capacityPath + "/{id}", "capacity", "simulation", called("Simulation"), CapacityJobAnswer{}, capacityJobPage},
}

// FleetAnswer is the fleet's page with the newest commits.
type FleetAnswer struct {
	view.FleetPage

	Commits []view.Commit `json:"commits"`
}

// recent is how many commits pages of one thing show, and looked is among how many.
const (
	recent = 15
	looked = 2000
)

func fleetPage(c *call) (any, error) {
	commits, _, err := c.commits(recent, nil)
	return &FleetAnswer{c.model.FleetPage(c.sight), commits}, err
}

// Past is what the repository tells of a thing: the commits of the ledger that changed its
// contracts, and the history of its files.
type Past struct {
	Commits []view.Commit `json:"commits"`
	// Looked is among how many of the newest commits.
	Looked int           `json:"commitsSearched"`
	Files  []FileHistory `json:"files"`
	// Pull is the number of the pull request that brought what is acted on, as the words of
	// the merge have it; 0 where none is known.
	Pull int `json:"pull,omitempty"`
}

// past of a thing, by the names of its contracts and its paths.
func (c *call) past(names map[string]bool, paths ...string) (p Past, err error) {
	p.Files = c.filesOf(paths...)
	p.Commits, p.Looked, err = c.commits(recent, names)
	return p, err
}

// IntentAnswer is an intent's page with its past.
type IntentAnswer struct {
	view.IntentPage
	Past
}

func intentPage(c *call) (any, error) {
	p := c.model.Intent(c.sight, c.PathValue("tenant"), c.PathValue("name"))
	if p == nil {
		return found(p, "intent")
	}
	names := map[string]bool{}
	for i := range p.Contracts {
		names[p.Contracts[i].Name] = true
	}
	out := &IntentAnswer{IntentPage: *p}
	var err error
	out.Past, err = c.past(names, p.Path)
	out.Pull = pullOf(out.Files, p.Commit)
	return out, err
}

// ContractAnswer is a contract's page with its past.
type ContractAnswer struct {
	view.ContractPage
	Past
}

func contractPage(c *call) (any, error) {
	p := c.model.Contract(c.sight, c.PathValue("name"))
	if p == nil {
		return found(p, "contract")
	}
	out := &ContractAnswer{ContractPage: *p}
	var err error
	out.Past, err = c.past(map[string]bool{p.Name: true}, p.Contract.Spec.Intent.Path)
	out.Pull = pullOf(out.Files, p.Contract.Spec.Intent.Commit)
	return out, err
}

// FlavorAnswer is a flavor's page with its past.
type FlavorAnswer struct {
	view.FlavorPage
	Past
}

func flavorPage(c *call) (any, error) {
	provider, name := c.PathValue("provider"), c.PathValue("name")
	p := c.model.Flavor(c.sight, provider, name)
	if p == nil {
		return found(p, "flavor")
	}
	out := &FlavorAnswer{FlavorPage: *p}
	var err error
	out.Past, err = c.past(c.model.Named(func(r *view.ContractRow) bool { return r.Provider == provider && r.Flavor == name }), "flavors/"+provider, "prices")
	return out, err
}

// ProviderAnswer is a cluster's page with its past.
type ProviderAnswer struct {
	view.ProviderPage
	Past
}

func providerPage(c *call) (any, error) {
	name := c.PathValue("name")
	p := c.model.Provider(c.sight, name)
	if p == nil {
		return found(p, "cluster")
	}
	out := &ProviderAnswer{ProviderPage: *p}
	var err error
	out.Past, err = c.past(c.model.Named(func(r *view.ContractRow) bool { return r.Provider == name || r.Consumer == name }), "clusters/"+name+".yaml", "flavors/"+name, "overlays/"+name)
	return out, err
}

// calendarSize is how many flavors a page of the calendar has.
const calendarSize = 25

// PeeringAnswer is a pair of clusters with its past.
type PeeringAnswer struct {
	view.PeeringPage
	Past
}

func peeringPage(c *call) (any, error) {
	consumer, provider := c.PathValue("consumer"), c.PathValue("provider")
	p := c.model.Peering(c.sight, consumer, provider)
	if p == nil {
		return nil, notFound("No contract that is shown to you needs this pair of clusters.")
	}
	out := &PeeringAnswer{PeeringPage: *p}
	var err error
	out.Past, err = c.past(c.model.Named(func(r *view.ContractRow) bool { return r.Consumer == consumer && r.Provider == provider }), "clusters/"+consumer+".yaml", "clusters/"+provider+".yaml")
	return out, err
}

// TenantAnswer is a tenant's page with its past.
type TenantAnswer struct {
	view.TenantPage
	Past
}

func tenantPage(c *call) (any, error) {
	name := c.PathValue("name")
	p := c.model.Tenant(c.sight, name)
	if p == nil {
		return found(p, "tenant")
	}
	out := &TenantAnswer{TenantPage: *p}
	var err error
	out.Past, err = c.past(c.model.Named(func(r *view.ContractRow) bool { return r.Tenant == name }), "tenants/"+name+".yaml", "intents/"+name)
	return out, err
}

// CommitsAnswer is a part of the ledger's history.
type CommitsAnswer struct {
	Commits []view.Commit `json:"commits"`
	Looked  int           `json:"commitsSearched"`
	// Query that was searched for.
	Query string `json:"query,omitempty"`
}

func commitsPage(c *call) (any, error) {
	out := &CommitsAnswer{Query: c.query.Text}
	var err error
	out.Commits, out.Looked, err = c.searched(c.query)
	return out, err
}
