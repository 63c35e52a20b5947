// Package celenv compiles and evaluates the CEL expressions of a fleet repo:
// an intent's placement.where and the fleet's policies.
//
// An expression sees three variables, whose fields are those of the kinds'
// spec under their JSON names, so a misspelt field is a mistake when the file
// is read and not when a placement is decided:
//
//	intent   name, tenant, labels, annotations and every field of the spec
//	flavor   name, provider and every field of the spec; gpu.count is the
//	         capacity in units, gpu.memoryGi the marketed size in GiB,
//	         price.hourly the on-demand price of one replica (see hourly)
//	cluster  name and every field of the spec of the provider's cluster
//
// Money and ratios are doubles, quantities are Kubernetes quantities (compare
// them with quantity("80Gi") and its functions), durations and times are CEL's
// own. What is absent is empty, not an error: flavor.gpu.model of a flavor
// without GPUs is "", a resource that capacity does not list is 0, and the
// price of an unpriced flavor is infinite. has() tells the difference. A
// missing key of a map of labels is an error, which fails the candidate.
//
// The functions are CEL's standard ones, its string extension, and Kubernetes'
// quantity, regex and list libraries. Source length and cost are bounded, because
// expressions come from pull requests: the worst case when it is compiled, by how
// large what it looks at may be, and the same number again while it is evaluated
// (cost.go). Patterns are written out, and bounded by what they stand for (patterns.go).
//
// The reader of fleet repos compiles, the planner evaluates. A Program always answers alike
// and is safe for concurrent use; what it is evaluated by is let go where there are many
// others, and made again (kept.go).
package celenv
