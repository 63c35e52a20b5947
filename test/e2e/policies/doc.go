// Package policies tries the admission policies that are rendered for a
// consumer on a real API server, case by case: who gets which tolerations, and
// what is refused to whom. The policies are applied as a team without the
// daemon would, with `kubectl apply -k` of the rendered tree.
package policies
