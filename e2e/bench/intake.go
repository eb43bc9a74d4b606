package main

import (
	"database/sql"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/rowlock/rowlock/e2e/harness"
)

// measureImport measures the duration and the peak memory of importing kine databases with -objects objects and
// with a tenth of them.
func measureImport(e *env) error {
	for _, n := range []int{e.objects, 10 * e.objects} {
		if err := e.intake(n); err != nil {
			return err
		}
	}
	return nil
}

func (e *env) intake(n int) error {
	dir, err := os.MkdirTemp("", "rowlock-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	source := filepath.Join(dir, "state.db")
	if err := kineOf(source, n); err != nil {
		return err
	}
	store, err := e.newStore(dir)
	if err != nil {
		return err
	}
	bin, err := harness.Binary()
	if err != nil {
		return err
	}
	began := time.Now()
	cmd := exec.CommandContext(e.ctx, bin, "import", source, "--store", store, "--data-dir", filepath.Join(dir, "data"))
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("import: %w\n%s", err, out)
	}
	took := time.Since(began)
	e.report(fmt.Sprintf("import %d", n), "%.1f s, %.0f objects/s, at most %d MB of memory, %.1f s of processor time",
		took.Seconds(), float64(n)/took.Seconds(), mostMemory(cmd), (cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()).Seconds())
	return nil
}

// kineOf creates a kine database with Pods, ConfigMaps and Deployments of about 2 KB.
func kineOf(path string, n int) error {
	db, err := sql.Open("sqlite", "file:"+path+"?_pragma=journal_mode(off)&_pragma=synchronous(off)")
	if err != nil {
		return err
	}
	db.SetMaxOpenConns(1)
	defer db.Close()
	for _, statement := range []string{
		`CREATE TABLE kine (id INTEGER PRIMARY KEY AUTOINCREMENT, name INTEGER, created INTEGER, deleted INTEGER, create_revision INTEGER, prev_revision INTEGER, lease INTEGER, value BLOB, old_value BLOB)`,
		`CREATE INDEX kine_name_id_index ON kine (name, id)`, `BEGIN`,
	} {
		if _, err := db.Exec(statement); err != nil {
			return err
		}
	}
	for i := range n {
		key, obj := objectOf(i)
		value, err := stored(obj)
		if err != nil {
			return err
		}
		if _, err := db.Exec(`INSERT INTO kine (name, created, deleted, create_revision, prev_revision, lease, value) VALUES (?, 1, 0, 0, 0, 0, ?)`, key, value); err != nil {
			return err
		}
	}
	_, err = db.Exec("COMMIT")
	return err
}

// message is implemented by generated types.
type message interface {
	runtime.Object
	Marshal() ([]byte, error)
}

// stored encodes an object as a stock server stores it.
func stored(obj message) ([]byte, error) {
	raw, err := obj.Marshal()
	if err != nil {
		return nil, err
	}
	apiVersion, kind := obj.GetObjectKind().GroupVersionKind().ToAPIVersionAndKind()
	envelope := runtime.Unknown{TypeMeta: runtime.TypeMeta{APIVersion: apiVersion, Kind: kind}, Raw: raw}
	value, err := envelope.Marshal()
	return append([]byte("k8s\x00"), value...), err
}

func objectOf(i int) (key string, obj message) {
	name, namespace := fmt.Sprintf("object-%07d", i), fmt.Sprintf("namespace-%03d", i%200)
	meta := metav1.ObjectMeta{
		Name: name, Namespace: namespace, UID: types.UID(name), Generation: 1, CreationTimestamp: metav1.NewTime(time.Unix(1_700_000_000, 0)), Labels: map[string]string{"app": name},
		ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "kubectl", Operation: "Update", FieldsType: "FieldsV1", FieldsV1: &metav1.FieldsV1{Raw: []byte(`{"f:data":{".":{},"f:text":{}}}`)}}},
	}
	pod := corev1.PodSpec{NodeName: "node", Containers: []corev1.Container{{Name: "main", Image: "registry.example/app:1.2.3", Env: []corev1.EnvVar{{Name: "TEXT", Value: strings.Repeat("v", 600)}}}}}
	switch i % 3 {
	case 0:
		return "/registry/pods/" + namespace + "/" + name, &corev1.Pod{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}, ObjectMeta: meta, Spec: pod}
	case 1:
		return "/registry/configmaps/" + namespace + "/" + name, &corev1.ConfigMap{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"}, ObjectMeta: meta, Data: map[string]string{"text": strings.Repeat("x", 1200)}}
	}
	d := &appsv1.Deployment{TypeMeta: metav1.TypeMeta{APIVersion: "apps/v1", Kind: "Deployment"}, ObjectMeta: meta}
	d.Spec.Selector = &metav1.LabelSelector{MatchLabels: meta.Labels}
	d.Spec.Template = corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: meta.Labels}, Spec: pod}
	return "/registry/deployments/" + namespace + "/" + name, d
}

// mostMemory returns the peak memory of a process that has ended, in MB.
func mostMemory(cmd *exec.Cmd) int64 {
	usage, ok := cmd.ProcessState.SysUsage().(*syscall.Rusage)
	if !ok {
		return 0
	}
	return usage.Maxrss >> 10
}
