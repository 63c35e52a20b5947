// Package version says which build a program is: what a release stamped it with, else
// what Go wrote into the binary.
//
// Both programs print it, show it as the metric fleetbroker_build_info, and `init` pins
// it in the CI files that it makes. It is never empty and does not change while a
// program runs; any goroutine may ask.
package version

import (
	"runtime"
	"runtime/debug"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
)

// stamp is set by a release's build: -ldflags "-X …/internal/api/version.stamp=v0.1.0".
var stamp string

// releases is set by a release's build too: where releases are.
var releases string

// Releases is where the archives, the chart and the images of each version are, as URL and
// Registry take it apart; "" in builds that no release made.
func Releases() string { return releases }

// Revision is the commit of the build, in full; "" where it is not known or files differed
// from it.
func Revision() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return ""
	}
	revision := ""
	for _, s := range info.Settings {
		switch {
		case s.Key == "vcs.revision":
			revision = s.Value
		case s.Key == "vcs.modified" && s.Value == "true":
			return ""
		}
	}
	return revision
}

// Text is the version: v0.1.0, or devel-<commit> of a build from a checkout.
var Text = sync.OnceValue(func() string {
	if stamp != "" {
		return stamp
	}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	v := info.Main.Version
	if v == "" || v == "(devel)" {
		v = "devel"
		for _, s := range info.Settings {
			if s.Key == "vcs.revision" && len(s.Value) >= 7 {
				v += "-" + s.Value[:7]
			}
		}
	}
	return v
})

// Released is the version that a release stamped, empty in other builds.
func Released() string { return stamp }

// Platform is what the program was built for: linux/amd64.
func Platform() string { return runtime.GOOS + "/" + runtime.GOARCH }

// Info is the metric fleetbroker_build_info of a program: 1, with the version as a label.
func Info(program string) prometheus.Collector {
	return prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name:        "fleetbroker_build_info",
		Help:        "Version that runs, as labels; always 1.",
		ConstLabels: prometheus.Labels{"program": program, "version": Text(), "goversion": runtime.Version()},
	}, func() float64 { return 1 })
}
