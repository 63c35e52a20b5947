package advice

import "strings"

// otherArchitectures are names of CPU architectures that others use, with the label's of
// Kubernetes.
var otherArchitectures = map[string]string{
	"x86_64": "amd64", "x86-64": "amd64", "x64": "amd64", "x86": "amd64", "intel": "amd64",
	"aarch64": "arm64", "armv8": "arm64", "graviton": "arm64", "grace": "arm64",
}

// Architecture is what Kubernetes calls a CPU architecture that others name so, "" where no
// other name of one is known.
func Architecture(name string) string { return otherArchitectures[strings.ToLower(name)] }
