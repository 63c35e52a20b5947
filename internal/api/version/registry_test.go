package version

import "testing"

// The registry is what the value names, else it is known of releases on github.com alone, and
// nothing but an account's name gets into it.
func TestRegistry(t *testing.T) {
	for releases, want := range map[string]string{
		"https://github.com/acme/fleetbroker/releases/download":      "ghcr.io/acme",
		"https://github.com/Acme-GPU/fleetbroker/releases/download":  "ghcr.io/acme-gpu",
		"https://GitHub.com/acme/fleetbroker":                        "ghcr.io/acme",
		"https://github.com/acme":                                    "",
		"https://github.com/":                                        "",
		"https://github.com/a~b/x/releases/download":                 "",
		"https://github.com/-a/x/releases/download":                  "",
		"https://github.com/../x/releases/download":                  "",
		"https://github.com:8443/acme/x":                             "",
		"https://github.com.evil.example/acme/x":                     "",
		"https://git.example.org/acme/fleetbroker/releases/download": "",
		"http://github.com/acme/x":                                   "",
		"https://dl.example.org/x#registry.example.org:5000/tools/":  "registry.example.org:5000/tools",
		"https://github.com/acme/fleetbroker#registry.example.org":   "registry.example.org",
		"https://dl.example.org/x#":                                  "",
		"":                                                           "",
	} {
		if got := Registry(releases); got != want {
			t.Errorf("%q: got %q, want %q", releases, got, want)
		}
	}
}

func TestURL(t *testing.T) {
	for releases, want := range map[string]string{
		"https://dl.example.org/x/":                            "https://dl.example.org/x",
		"https://dl.example.org/x/#registry.example.org/tools": "https://dl.example.org/x",
		"": "",
	} {
		if got := URL(releases); got != want {
			t.Errorf("%q: got %q, want %q", releases, got, want)
		}
	}
}
