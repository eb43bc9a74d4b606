package embed_test

import (
	"context"
	"fmt"
	"log"

	v1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/rowlock/rowlock/server/embed"
)

// Boat is a kind of a program's own.
type Boat struct {
	v1.TypeMeta   `json:",inline"`
	v1.ObjectMeta `json:"metadata"`
	Spec          BoatSpec   `json:"spec"`
	Status        BoatStatus `json:"status,omitempty"`
}

type BoatSpec struct {
	Seats int32  `json:"seats"`
	Cox   string `json:"cox,omitempty"`
}

type BoatStatus struct {
	Rowers []string `json:"rowers,omitempty"`
}

// A program with a control plane of its own: one kind, one rule, all in memory.
func Example() {
	ctx, stop := context.WithCancel(context.Background())
	cp, err := embed.New(ctx, embed.Options{
		Kinds: []embed.Kind{{Group: "rowing.example", Version: "v1", Object: Boat{}}},
		Admission: []embed.Admission{{Name: "seats", Validate: func(_ context.Context, w *embed.Write) error {
			if w.Kind.Kind != "Boat" || w.Operation == "DELETE" {
				return nil
			}
			boat := &Boat{}
			content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(w.Object)
			if err == nil {
				err = runtime.DefaultUnstructuredConverter.FromUnstructured(content, boat)
			}
			if err == nil && boat.Spec.Seats > 8 {
				err = fmt.Errorf("nobody has a boat with %d seats", boat.Spec.Seats)
			}
			return err
		}}},
	})
	if err != nil {
		log.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cp.Run(ctx) }()
	if err := cp.Ready(ctx); err != nil {
		log.Fatal(err)
	}

	client, err := dynamic.NewForConfig(cp.Config())
	if err != nil {
		log.Fatal(err)
	}
	boats := client.Resource(schema.GroupVersionResource{Group: "rowing.example", Version: "v1", Resource: "boats"}).Namespace("default")
	made, err := boats.Create(ctx, boat("octuple", 8), v1.CreateOptions{})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(made.GetKind(), made.GetName(), made.GetGeneration())
	_, err = boats.Create(ctx, boat("galley", 170), v1.CreateOptions{})
	fmt.Println(err)

	stop()
	fmt.Println(<-ended)
	// Output:
	// Boat octuple 1
	// boats.rowing.example "galley" is forbidden: nobody has a boat with 170 seats
	// <nil>
}

func boat(name string, seats int32) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "rowing.example/v1", "kind": "Boat", "metadata": map[string]any{"name": name}, "spec": map[string]any{"seats": int64(seats)},
	}}
}
