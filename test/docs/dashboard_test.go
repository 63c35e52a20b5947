package docs

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestDashboardPage_NamesWhatIsInstalled: ports and roles on the dashboard's page are those
// of the install base, roles with the fleet's id as init writes them, and what a command asks
// for by TLS is a name that the daemon's certificate has.
func TestDashboardPage_NamesWhatIsInstalled(t *testing.T) {
	read := func(name string) string {
		b, err := os.ReadFile("../../fleet-repo-template/" + name)
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	page, service, rbac := read("docs/dashboard.md"), read("install/broker/service.yaml"), read("install/broker/rbac.yaml")
	ports := []string{"8080"} // of the loopback interface
	for _, m := range regexp.MustCompile(`\{name: operators, port: (\d+)`).FindAllStringSubmatch(service, -1) {
		ports = append(ports, m[1])
	}
	seen := 0
	for _, m := range regexp.MustCompile(`[a-z0-9]:(8\d{3})\b`).FindAllStringSubmatch(page, -1) {
		seen++
		if !slices.Contains(ports, m[1]) {
			t.Errorf("the page names port %s; the operators' are %s", m[1], strings.Join(ports, " and "))
		}
	}
	for _, m := range regexp.MustCompile("ClusterRole `([^`]+)`|--clusterrole \"([^\"]+)\"").FindAllStringSubmatch(page, -1) {
		seen++
		name := strings.ReplaceAll(m[1]+m[2], "$ID", "<id>")
		plain, has := strings.CutPrefix(name, "fleetbroker-<id>-")
		if !has || !strings.Contains(rbac, "name: fleetbroker-"+plain+"\n") {
			t.Errorf("the page names ClusterRole %s; init writes those of install/broker/rbac.yaml as fleetbroker-<id>-NAME", name)
		}
	}
	if seen < 8 {
		t.Errorf("only %d ports and roles were found", seen)
	}
	certificate := regexp.MustCompile(`--role server .*?--host (\S+)`).FindStringSubmatch(read("docs/install.md"))
	if certificate == nil {
		t.Fatal("docs/install.md issues no certificate for the daemon")
	}
	for _, m := range regexp.MustCompile(`https://([a-z.]+):8444`).FindAllStringSubmatch(page, -1) {
		if m[1] != certificate[1] {
			t.Errorf("the page asks https://%s:8444; the certificate of docs/install.md names %s", m[1], certificate[1])
		}
	}
	for _, account := range regexp.MustCompile(`create token (\w+)`).FindAllStringSubmatch(page, -1) {
		if !strings.Contains(page, "create serviceaccount "+account[1]+"\n") {
			t.Errorf("the page asks for a token of %s, which no command makes", account[1])
		}
	}
}
