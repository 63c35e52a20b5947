// Package genyaml writes and reads the YAML of generated files: contracts,
// states, spends and market trees.
//
// Marshal writes one plain form of YAML, always the same for the same value:
// block style, two spaces, keys in byte order, every string that could be
// mistaken for something else in double quotes. Unmarshal reads that form
// line by line, several times faster than a YAML parser does: a daemon reads a
// hundred thousand of these files when it starts. Whatever is not exactly of
// that form, and every file with a mistake, is left to sigs.k8s.io/yaml, whose
// answer is the one that counts; tests hold the two against each other.
//
// It is for files that programs write. What people write goes through
// internal/api/strictyaml, which says where a mistake stands.
//
// Functions are safe for concurrent use.
package genyaml
