package env

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"time"

	"github.com/fleetbroker/fleetbroker/test/tools"
)

// GiteaServer is a real Gitea on the loopback interface, its data in sqlite. It has
// one user, an administrator.
type GiteaServer struct {
	*Program
	// URL of its pages, without a slash at the end.
	URL string
	// Admin and Password are its administrator's.
	Admin, Password string

	port *port
}

// giteaConfig lets it call webhooks on this machine, and leaves out what needs
// the network or a mail server. Its pages come from the module's own files.
const giteaConfig = `APP_NAME = fleetbroker's tests
RUN_MODE = prod
RUN_USER = %[1]s
I_AM_BEING_UNSAFE_RUNNING_AS_ROOT = true
WORK_PATH = %[2]s
[database]
DB_TYPE = sqlite3
PATH = %[2]s/gitea.db
[server]
HTTP_ADDR = 127.0.0.1
HTTP_PORT = %[3]d
ROOT_URL = http://127.0.0.1:%[3]d/
STATIC_ROOT_PATH = %[4]s
DISABLE_SSH = true
OFFLINE_MODE = true
[webhook]
ALLOWED_HOST_LIST = loopback
[security]
INSTALL_LOCK = true
SECRET_KEY = of-a-test
INTERNAL_TOKEN = eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJuYmYiOjE3MDAwMDAwMDB9.b2YtYS10ZXN0
[service]
DISABLE_REGISTRATION = true
[indexer]
ISSUE_INDEXER_TYPE = db
[actions]
ENABLED = false
[cron.update_checker]
ENABLED = false
[log]
LEVEL = Warn
`

// BuildGitea makes sure that Gitea is there, building it if need be, which
// takes minutes the first time.
func BuildGitea(ctx context.Context, progress io.Writer) error {
	_, err := tools.Find(ctx, "gitea", progress)
	return err
}

// StartGitea starts one whose data lie in a directory.
func StartGitea(ctx context.Context, dir string) (*GiteaServer, error) {
	g, err := startGitea(ctx, dir)
	if err != nil {
		return nil, fmt.Errorf("start gitea: %w", err)
	}
	return g, nil
}

func startGitea(ctx context.Context, dir string) (*GiteaServer, error) {
	path, err := tools.Find(ctx, "gitea", nil)
	if err != nil {
		return nil, err
	}
	static, err := tools.ModuleDir(ctx, "gitea", "code.gitea.io/gitea")
	if err != nil {
		return nil, err
	}
	who, err := user.Current()
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	g := &GiteaServer{Admin: "root-of-tests", Password: "a password of tests only"}
	if g.port, err = reservePort(); err != nil {
		return nil, err
	}
	g.URL = fmt.Sprintf("http://127.0.0.1:%d", g.port.number)
	config := filepath.Join(dir, "app.ini")
	if err := os.WriteFile(config, fmt.Appendf(nil, giteaConfig, who.Username, dir, g.port.number, static), 0o600); err != nil {
		g.port.release()
		return nil, err
	}
	for _, args := range [][]string{
		{"migrate"},
		{"admin", "user", "create", "--admin", "--username", g.Admin, "--password", g.Password, "--email", "root@example.org", "--must-change-password=false"},
	} {
		cmd := exec.CommandContext(ctx, path, append(args, "--config", config)...)
		cmd.Env = gitEnviron()
		if out, err := cmd.CombinedOutput(); err != nil {
			g.port.release()
			return nil, fmt.Errorf("gitea %s: %w: %s", args[0], err, lastLine(out))
		}
	}
	if g.Program, err = StartProgramWith([]string{SeldomCollected}, "gitea", dir, path, "web", "--config", config); err != nil {
		g.port.release()
		return nil, err
	}
	if err := g.await(ctx); err != nil {
		return nil, errors.Join(err, g.Stop())
	}
	return g, nil
}

// await waits until it answers.
func (g *GiteaServer) await(ctx context.Context) error {
	for {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, g.URL+"/api/healthz", nil)
		if err != nil {
			return err
		}
		if resp, err := http.DefaultClient.Do(req); err == nil {
			_ = resp.Body.Close()
			if resp.StatusCode == http.StatusOK {
				return nil
			}
		}
		select {
		case <-g.Done():
			return g.Failure()
		case <-ctx.Done():
			return fmt.Errorf("it does not answer: %w; its log is %s", ctx.Err(), g.LogFile())
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// Stop ends it.
func (g *GiteaServer) Stop() error {
	defer g.port.release()
	return g.Program.Stop()
}

func lastLine(out []byte) []byte {
	lines := bytes.Split(bytes.TrimSpace(out), []byte("\n"))
	return lines[len(lines)-1]
}
