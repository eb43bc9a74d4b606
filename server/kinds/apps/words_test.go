package apps_test

import (
	"testing"

	appsv1beta1 "k8s.io/api/apps/v1beta1"
	extensionsv1beta1 "k8s.io/api/extensions/v1beta1"

	"github.com/rowlock/rowlock/server/kinds"
	"github.com/rowlock/rowlock/server/kinds/apps"
)

// TestFirstWords holds the words of columns to those of the versions in which the kinds were first shown.
func TestFirstWords(t *testing.T) {
	replicas, daemons, deployments := extensionsv1beta1.ReplicaSetStatus{}.SwaggerDoc(), extensionsv1beta1.DaemonSetStatus{}.SwaggerDoc(), extensionsv1beta1.DeploymentStatus{}.SwaggerDoc()
	for _, c := range []struct {
		of    kinds.Columns
		words map[string]string
	}{
		{apps.ReplicaSetColumns, map[string]string{
			"Desired": extensionsv1beta1.ReplicaSetSpec{}.SwaggerDoc()["replicas"], "Current": replicas["replicas"], "Ready": "The number of ready replicas for this replica set.",
			"Selector": extensionsv1beta1.ReplicaSetSpec{}.SwaggerDoc()["selector"],
		}},
		{apps.DeploymentColumns, map[string]string{
			"Up-to-date": deployments["updatedReplicas"], "Available": deployments["availableReplicas"], "Selector": extensionsv1beta1.DeploymentSpec{}.SwaggerDoc()["selector"],
		}},
		{apps.DaemonSetColumns, map[string]string{
			"Desired": daemons["desiredNumberScheduled"], "Current": daemons["currentNumberScheduled"], "Ready": daemons["numberReady"],
			"Up-to-date": daemons["updatedNumberScheduled"], "Available": daemons["numberAvailable"], "Selector": extensionsv1beta1.DaemonSetSpec{}.SwaggerDoc()["selector"],
		}},
		{apps.ControllerRevisionColumns, map[string]string{"Revision": appsv1beta1.ControllerRevision{}.SwaggerDoc()["revision"]}},
	} {
		for _, column := range c.of.Definitions {
			if want, ok := c.words[column.Name]; ok && (column.Description != want || want == "") {
				t.Errorf("%s: %q, want %q", column.Name, column.Description, want)
			}
			delete(c.words, column.Name)
		}
		if len(c.words) > 0 {
			t.Errorf("no columns for %v", c.words)
		}
	}
}
