package monitoring

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/ambient-code/agentic-operator/test/rig"
)

// The environment variables of pictures. A Go module of Prometheus has no built files of its page,
// so that the page is empty unless the first one names a folder that has them.
const (
	// PageVariable names a folder called prometheus that holds them in web/ui/static.
	PageVariable = "PROMETHEUS_PAGE"
	// PicturesVariable names the folder for pictures of the page; none are made without it.
	PicturesVariable = "PROMETHEUS_PICTURES"
)

const prometheusModule = "github.com/prometheus/prometheus"

// Page finds the files of the page: in the folder that PageVariable names, else where
// hack/screenshot keeps those that it built out of source, which is told too. folder need not be
// there.
func Page(ctx context.Context) (folder, source string, err error) {
	if given := os.Getenv(PageVariable); given != "" {
		return given, "", nil
	}
	root, err := rig.Root()
	if err != nil {
		return "", "", err
	}
	pinned := filepath.Join(root, "hack", "devcluster", "components", "prometheus")
	if _, err := goCommand(ctx, pinned, "mod", "download", prometheusModule); err != nil {
		return "", "", err
	}
	told, err := goCommand(ctx, pinned, "list", "-m", "-f", "{{.Version}} {{.Dir}}", prometheusModule)
	if err != nil {
		return "", "", err
	}
	version, source, _ := strings.Cut(told, " ")
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", "", fmt.Errorf("no folder for the page of Prometheus (%w): set %s to one", err, PageVariable)
	}
	return filepath.Join(cache, "agentic-operator", "prometheus-page", version, "prometheus"), source, nil
}

// HasPage says that a folder has the files of the page.
func HasPage(folder string) bool {
	_, err := os.Stat(filepath.Join(folder, "web", "ui", "static", "mantine-ui", "index.html"))
	return err == nil
}

// Graph is the address of the page that draws expressions over the last minutes, one below the
// other.
func (p *Prometheus) Graph(minutes int, expressions ...string) string {
	values := url.Values{}
	for i, expression := range expressions {
		values.Set(fmt.Sprintf("g%d.expr", i), expression)
		values.Set(fmt.Sprintf("g%d.tab", i), "graph")
		values.Set(fmt.Sprintf("g%d.show_exemplars", i), "0")
		values.Set(fmt.Sprintf("g%d.range_input", i), fmt.Sprintf("%dm", minutes))
	}
	return p.URL + "/query?" + values.Encode()
}

// Picture has headless Chromium draw a page into a PNG file.
func Picture(ctx context.Context, address, file string, width, height int) error {
	cmd := exec.CommandContext(ctx, "chromium", "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars",
		fmt.Sprintf("--window-size=%d,%d", width, height), "--virtual-time-budget=20000", "--screenshot="+file, address)
	if output, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("drawing %s: %w: %s", address, err, output)
	}
	return nil
}
