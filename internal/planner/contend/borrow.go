package contend

// What others leave of their quotas a tenant may borrow (package account), last:
// every intent has its turn within its tenant's quota before any has one beyond
// it. When an intent within its own tenant's quota fits nowhere else, contracts of
// tenants above their quota that hold what they borrowed give way to it, of any
// priority, with their grace, the least disturbing first (displace.go). No intent
// preempts or reclaims in order to borrow: that would go round in circles.
