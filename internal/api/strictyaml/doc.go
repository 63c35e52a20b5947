// Package strictyaml decodes the YAML documents that people write into the
// kinds of a fleet repo, and says of every mistake where it stands and what to
// write instead.
//
// It reads a document once into a node tree (which knows lines and columns),
// walks the tree beside the Go type it is meant for, and hands the JSON
// decoder what it found. Walking beside the type is what makes it strict:
//
//   - an unknown field, a duplicate key, a missing required field and a value of
//     the wrong kind are problems with a place, and all of a document's problems
//     are reported, not only the first;
//   - a plain scalar that YAML 1.1 (Kubernetes' YAML) reads as something other
//     than what was meant is refused: `country: NO` is a boolean there, `1e3` a
//     float, `010` the number eight;
//   - aliases, nesting, documents and size are bounded, so that a small file
//     cannot become a large one.
//
// What is accepted means the same to sigs.k8s.io/yaml; a test holds the two
// against each other.
//
// A required field is one whose JSON tag has neither omitempty nor omitzero. A
// null counts as absent.
//
// Functions are safe for concurrent use; a Document belongs to one goroutine.
package strictyaml
