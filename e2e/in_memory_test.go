package e2e

import (
	"bufio"
	"context"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/rowlock/rowlock/e2e/harness"
)

// TestInMemory: a server that keeps everything in memory is used by the kubeconfig that it
// names, writes no file while it runs, and leaves none.
func TestInMemory(t *testing.T) {
	t.Parallel()
	bin, err := harness.Binary()
	if err != nil {
		t.Fatal(err)
	}
	port, err := harness.FreePort()
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, bin, "serve", "--in-memory", "--bind-address", "127.0.0.1", "--secure-port", strconv.Itoa(port))
	cmd.Dir, cmd.Env = folder, append(os.Environ(), "HOME="+folder, "TMPDIR="+folder)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var path string
	var output []string
	for lines := bufio.NewScanner(out); path == "" && lines.Scan(); {
		output = append(output, lines.Text())
		path, _ = strings.CutPrefix(lines.Text(), "export KUBECONFIG=")
		if path == lines.Text() {
			path = ""
		}
	}
	if text := strings.Join(output, "\n"); path == "" || !strings.Contains(text, "store: memory; nothing is kept") {
		t.Fatalf("the server said %q", text)
	}
	config, err := clientcmd.BuildConfigFromFlags("", path)
	if err != nil {
		t.Fatal(err)
	}
	api := kubernetes.NewForConfigOrDie(config)
	maps := api.CoreV1().ConfigMaps("default")
	for {
		_, err := maps.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "a"}, Data: map[string]string{"a": "b"}}, metav1.CreateOptions{})
		if err == nil || apierrors.IsAlreadyExists(err) {
			break
		}
		if ctx.Err() != nil {
			t.Fatal(err)
		}
		time.Sleep(10 * time.Millisecond)
	}
	if got, err := maps.Get(ctx, "a", metav1.GetOptions{}); err != nil || got.Data["a"] != "b" {
		t.Errorf("the object is %v, %v", got, err)
	}
	if runtime.GOOS == "linux" { // elsewhere keys are in a folder for temporary files
		wantNoFiles(t, folder)
	}
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("the server ended with %v", err)
	}
	wantNoFiles(t, folder)
	if text, err := os.ReadFile(path); err == nil {
		t.Errorf("the kubeconfig is still there: %d bytes", len(text))
	}
}

func wantNoFiles(t *testing.T, folder string) {
	t.Helper()
	err := filepath.WalkDir(folder, func(path string, _ fs.DirEntry, err error) error {
		if path != folder {
			t.Errorf("there is %s", path)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}
