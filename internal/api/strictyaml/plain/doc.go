// Package plain reads the plain part of YAML into the nodes that go.yaml.in/yaml/v3 makes
// of it, several times faster: a daemon that starts reads a million files that people and
// programs wrote, almost all of them in this part.
//
// The part is: ASCII; block maps with plain keys; block lists; scalars that are plain or
// quoted without escapes, on one line; flow maps and lists on one line; comments.
//
// # Invariants
//
//   - What it reads, the general parser reads too, into nodes of the same kind, value,
//     style and place. Comments and tags are not set: package strictyaml reads neither.
//   - Whatever is not surely of that part, and every document with a mistake, is not read:
//     the general parser's answer is the one that counts. Fuzzing holds the two against
//     each other.
//   - The work is linear in the text, and nesting is bounded.
//
// Package strictyaml calls it. Safe for concurrent use.
package plain
