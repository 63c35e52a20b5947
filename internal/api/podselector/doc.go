// Package podselector gives a podSelector of an intent the form in which admission reads
// it, an annotation of the namespace, and reads that form.
//
// Admission policies cannot read JSON, so that a selector is terms between commas, all of
// which must hold for a pod's labels:
//
//	key=value      the label has this value                 matchLabels, In
//	key=a|b        the label has one of these values        In
//	key=*          the label is there                       Exists
//	!key=a|b       not one of these values, or no label     NotIn
//	!key=*         the label is not there                   DoesNotExist
//
// None of the marks may be in a label's key or value.
//
// Invariants:
//   - Matches is what policies intent-tolerations and intent-guard of package manifests
//     compute in CEL (a test of package admission/rule compares them), so that a pod gets
//     what the guard lets it have.
//   - A selector of matchLabels alone is written as before there were others, and what an
//     older reader does not know holds for no pod there.
//   - What cannot be said in terms (an operator that does not exist, In without values)
//     holds for no pod.
//
// Packages manifests, admission/rule, howto and fleet call it. Pure functions, safe for
// concurrent use.
package podselector
