// Package images holds the end-to-end tests of the container images: built as a release
// builds them, pushed to a registry, pulled, and run as the install bases run them.
package images
