package demo

import "context"

// Stage is a fleet on which the story is told: clusters paris and milan give, rome takes,
// team vision commits to the fleet repo.
type Stage interface {
	// Opening says what is about to start, and what of it is simulated.
	Opening() []string
	// Up starts clusters and git server, and returns where the fleet repo is.
	Up(ctx context.Context) (repo string, err error)
	// Join starts daemon and agents, and waits until the daemon is ready.
	Join(ctx context.Context) error
	// Failure is why the daemon ended, nil while it runs.
	Failure() error
	// End stops everything.
	End() error

	// Fleetbroker runs a command on the team's clone and the daemon's market.
	Fleetbroker(ctx context.Context, args ...string) (string, error)

	// Commit writes files on a new branch of the team's clone.
	Commit(ctx context.Context, branch, subject string, files map[string]string) error
	// Merge merges the branch into the inputs and pushes them; the daemon is called.
	Merge(ctx context.Context, branch, subject string) error
	// Remove deletes a file of the inputs and pushes that; the daemon is called.
	Remove(ctx context.Context, subject, file string) error
	// Ledger fetches, and returns the commits of the ledger, the newest first; none
	// before the first.
	Ledger(ctx context.Context) ([]Commit, error)
	// Files are the names of the ledger's files, and File the content of one.
	Files(ctx context.Context) ([]string, error)
	File(ctx context.Context, name string) (string, error)

	// Objects are the VirtualNodes, ResourceSlices and NamespaceOffloadings of rome, as
	// kubectl prints them; "" for none.
	Objects(ctx context.Context) (string, error)
	// Nodes of rome, and Pods of a namespace of any cluster, as kubectl prints them.
	Nodes(ctx context.Context) (string, error)
	Pods(ctx context.Context, cluster, namespace string) (string, error)
	// Deploy applies a manifest to rome.
	Deploy(ctx context.Context, manifest string) error
}

// Commit of the ledger. Hash is short; Date is in ISO form.
type Commit struct{ Hash, Author, Date, Message string }
