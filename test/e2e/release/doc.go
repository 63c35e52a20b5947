// Package release tries what `make release` makes, for one platform, as somebody who takes
// it from where it is published. It has tests alone, with build tag e2e.
package release
