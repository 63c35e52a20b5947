// Package server is everything the daemon says over HTTP.
//
//	agents    ──mTLS 1.3──►  agents' port    reports, reservations, instructions, the market
//	operators ──guarded───►  operators' port metrics, health, readiness, the market
//	forges    ──HMAC──────►  webhooks' port  "fetch now", nothing else
//
// Invariants: on the agents' port a certificate speaks for its own cluster
// alone; a revoked or expired one is refused at each request, however long its
// connection lives, and a revocation cuts the connections there are; an
// identity has a share of requests, bytes and connections, however many it
// opens, so that one noisy agent delays nobody else; no body is held beyond its
// limit, also when it was packed (a few kilobytes of gzip make gigabytes); what
// a webhook carries is never used; without TLS nothing is served beyond the
// loopback interface, and there the operators' port shows nothing without a
// certificate or a token (Guard).
//
// The cli makes handlers (NewAgents, NewOperators, NewWebhooks), binds them
// with Listen and runs them until a context ends. The small interfaces and
// functions it takes are declared here and implemented by market, reconciler
// and gitrepo. Everything is safe for concurrent use.
//
// # Routes
//
// Package routes describes them for programs (OpenAPI); a test holds that none is left out.
//
//   - agents: PUT /api/v2/clusters/{id}/flavors; takes a cluster's list of flavors;
//     header Fleetbroker-Generation: <epoch>.<n>; body JSON {"flavors": […]}, plain or
//     gzip, at most 8 MiB unpacked; no body: nothing has changed; answers 204, 412
//     UnknownBase, 409 StaleEpoch with last, 429 while another report of the cluster is
//     being read, 429 Paced where the store gathers what changes (the provider counts as
//     reporting), 503 Unavailable where the store is out of reach
//   - agents: POST /api/v1/advertisements, GET /api/v1/advertisements/{id}; the Liqo
//     resource agent's report, as one flavor called cluster
//   - agents: GET /api/v2/clusters/{id}/instructions?since=…&after=…&wait=30s; what
//     the ledger says of the cluster, once it is of another version than since and this
//     replica has read the ledger up to the number after; 304 else
//   - agents: POST /api/replicas/v1/reservations, …/releases, …/told; other replicas
//     of the daemon (role server) hand on what they were asked for; 503 Standby by one
//     that does not decide
//   - agents: POST /api/replicas/v1/simulations; other replicas ask for the dashboard's
//     simulations that run here (internal/simulate/handed), for people whom they know
//   - agents: GET /api/v2/clusters/{id}/manifests?since=…&wait=30s; delivery: agent:
//     what the cluster's agent applies, once it is of another version; 304 else, 409
//     NotDelivered where it is not the agent's task
//   - agents: GET /api/v2/clusters/{id}/manifests/root; their hash in the repository
//     now: asked before anything is corrected
//   - agents: PUT /api/v2/clusters/{id}/observations; what the agent sees of them
//   - agents, operators: GET /market?provider=…&class=…&region=…&since=…&wait=30s;
//     all flavors, or those of a provider, a class (model of GPU, or cpu) and a region, as
//     a YAML stream, or JSON on Accept: application/json; header Fleetbroker-Market:
//     <tree>; with since, once that part may be another than at that tree; 304 else
//   - agents, operators: GET /pods; pods on contracts' virtual nodes, by consumer, and
//     when each was heard (wire.PodsReport); an agent is shown its own cluster's, a
//     reader nothing
//   - agents, operators: GET /healthz; alive
//   - operators: GET /readyz; each check with its reason; 503 while one fails
//   - operators: GET /metrics; Prometheus
//   - operators: GET /ui/…, GET /api/ui/…; the dashboard and its JSON (internal/ui):
//     every tenant to an operator's certificate, a token whose holder may list /ui/, and
//     on loopback; to other tokens the tenants that list one of their groups; to a
//     reader's certificate totals and offers; to who signed in (login) the tenants that
//     list one of their groups
//   - operators: POST /ui/capacity, POST /ui/capacity/{id}/cancel, POST /api/ui/capacity,
//     DELETE /api/ui/capacity/{id}; begin and end a simulation (internal/ui), of who is
//     shown every tenant, with a CSRF token; a token's holder needs these verbs
//   - operators: GET /ui/login, GET /ui/callback, POST /ui/logout; sign in by OpenID
//     Connect and out again (internal/server/login)
//   - webhooks: POST /hooks/{github,gitlab,gitea,generic}; asks for a fetch,
//     whatever the payload says
//
// Each identity may send 500 requests and 1 MiB of bodies (as unpacked) a second, in
// bursts of 2 and 16 seconds' worth, 256 requests, 16 long polls and 128 connections at
// once; more is answered 429 RateLimited with Retry-After. A connection has at most 64
// requests under way, 32 KiB of headers each and 128 KiB of bodies that nobody reads yet;
// bodies of all requests take 128 MiB at most, of which no identity's first 256 KiB are
// part. The port takes 20,000 connections (--agents-connections), half of them kept for
// addresses that showed a certificate in force within the last hour; a handshake may take
// 10 s. The other ports take 1,024 connections with 16 requests under way each. A request
// counts until its answer is taken (package finish). A revoked certificate, and one without a known role, ends at the handshake. JSON
// is read strictly (api/strictjson): a key twice, a key in another case beside itself,
// characters nobody sees, absurd numbers and depths are refused and counted.
//
// The operators' port is plain on the loopback interface. Elsewhere it is TLS and opens
// for a certificate with the role operator or reader, and for a token that the daemon's
// cluster reviews and whose holder may get the path (nonResourceURLs). Probes need neither
// and are told yes or no.
//
// A cluster that is not in the fleet is answered 403 NotEnrolled with what to add; with
// enrollment: open it is proposed as clusters/<id>.yaml on the branch enroll/<id>, once, for a
// person to merge (EnrollmentPending, then EnrollmentProposed): as a provider when it reports flavors, as a consumer when it
// reports that it has none or asks for capacity.
//
// A certificate's role stands in its SAN URI: an agent speaks for its own cluster alone,
// an operator reads what any cluster is told, a reader reads the market, and a server is
// another replica of the daemon, which hands on requests in clusters' names.
//
// Errors are JSON, {"error": "…", "reason": "MachineReadable"}.
package server
