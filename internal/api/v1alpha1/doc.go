// Package v1alpha1 holds the kinds that people and the daemon write into a
// fleet repo (ResourceIntent, Flavor, PriceTable, Cluster, Tenant, Fleet) and
// the ledger's own (Contract, IntentState, Spend), and the value types they are
// made of.
//
// Invariants kept by the types: capacity is an integer (Amount: milli-CPU,
// bytes or whole units, named by Resources' keys), money is an exact decimal
// (Decimal), and neither converts silently into the other. A value that
// decoded is in canonical form: encoding it again gives the same bytes on
// every machine.
//
// The package knows nothing of git, clusters or clocks and imports no other
// room. Values are plain data: safe to share between goroutines as long as
// nobody writes to them, which nobody does once they were read (copy first).
package v1alpha1
