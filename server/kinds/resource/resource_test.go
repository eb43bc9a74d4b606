package resource_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	resourcev1alpha3 "k8s.io/api/resource/v1alpha3"
	resourcev1beta1 "k8s.io/api/resource/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/rowlock/rowlock/server/kinds/resource"
	"github.com/rowlock/rowlock/server/release"
)

func only(gates ...string) func(string) bool {
	return func(gate string) bool { return strings.Contains(strings.Join(gates, " "), gate) }
}

// claim asks for one device with access of an administrator, and has got it.
func claim() *resourcev1beta1.ResourceClaim {
	yes := true
	c := &resourcev1beta1.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Name: "c", Namespace: "ns"}}
	c.Spec.Devices.Requests = []resourcev1beta1.DeviceRequest{{Name: "r", DeviceClassName: "gpu.example.com", AdminAccess: &yes}}
	c.Status.Allocation = &resourcev1beta1.AllocationResult{Devices: resourcev1beta1.DeviceAllocationResult{
		Results: []resourcev1beta1.DeviceRequestAllocationResult{{Request: "r", Driver: "gpu.example.com", Pool: "p", Device: "d", AdminAccess: &yes}},
	}}
	c.Status.Devices = []resourcev1beta1.AllocatedDeviceStatus{{Driver: "gpu.example.com", Pool: "p", Device: "d"}}
	return c
}

// TestGatesOfClaims: fields whose gates are off go, unless the claim has them.
func TestGatesOfClaims(t *testing.T) {
	ctx := context.Background()
	for _, c := range []struct {
		gates        []string
		old          *resourcev1beta1.ResourceClaim // nil: the claim is new
		admin, state bool
	}{
		{nil, nil, false, false},
		{nil, &resourcev1beta1.ResourceClaim{}, false, false},
		{nil, claim(), true, true},
		{[]string{"DRAAdminAccess"}, nil, true, false},
		{[]string{"DRAAdminAccess"}, &resourcev1beta1.ResourceClaim{}, true, false},
		{[]string{"DRAResourceClaimDeviceStatus"}, &resourcev1beta1.ResourceClaim{}, false, true},
	} {
		on, got := only(c.gates...), claim()
		if c.old == nil {
			s := resource.Of(release.Oldest, on).Claim
			s.PrepareForCreate(ctx, got)
			if got.Status.Allocation != nil || len(got.Status.Devices) > 0 {
				t.Errorf("%v: a new claim has a status: %+v", c.gates, got.Status)
			}
		} else {
			whole := resource.Of(release.Oldest, on).Claim
			status := whole.Status
			whole.PrepareForUpdate(ctx, got, c.old.DeepCopy())
			written := claim()
			status.PrepareForUpdate(ctx, written, c.old.DeepCopy())
			if state := len(written.Status.Devices) > 0; state != c.state {
				t.Errorf("%v, old %v: the state of devices is kept: %t", c.gates, len(c.old.Name) > 0, state)
			}
			if admin := written.Status.Allocation.Devices.Results[0].AdminAccess != nil; admin != c.admin {
				t.Errorf("%v, old %v: access of administrators is kept in results: %t", c.gates, len(c.old.Name) > 0, admin)
			}
		}
		if admin := got.Spec.Devices.Requests[0].AdminAccess != nil; admin != c.admin {
			t.Errorf("%v: access of administrators is kept: %t", c.gates, admin)
		}
	}
}

// TestStateOfDevicesGoes: when a claim loses its devices, how they are is forgotten.
func TestStateOfDevicesGoes(t *testing.T) {
	s := resource.Of(release.Oldest, only("DRAResourceClaimDeviceStatus")).Claim.Status
	old, now := claim(), claim()
	now.Status.Allocation = nil
	s.PrepareForUpdate(context.Background(), now, old)
	if len(now.Status.Devices) > 0 {
		t.Errorf("kept %+v", now.Status.Devices)
	}
	if errs := s.ValidateUpdate(context.Background(), now, old); len(errs) > 0 {
		t.Error(errs)
	}
}

func class(expressions ...string) *resourcev1beta1.DeviceClass {
	c := &resourcev1beta1.DeviceClass{ObjectMeta: metav1.ObjectMeta{Name: "c"}}
	for _, e := range expressions {
		c.Spec.Selectors = append(c.Spec.Selectors, resourcev1beta1.DeviceSelector{CEL: &resourcev1beta1.CELDeviceSelector{Expression: e}})
	}
	return c
}

func TestSelectors(t *testing.T) {
	const each = `device.attributes["a.example.com"]`
	for expression, want := range map[string]string{
		`device.driver == "gpu.example.com"`:                                        "",
		`device.attributes["a.example.com"].version.isGreaterThan(semver("1.0.0"))`: "",
		`device.capacity["a.example.com"].memory.compareTo(quantity("1Gi")) >= 0`:   "",
		`cel.bind(a, device.attributes["a.example.com"], a.on && a.model == "x")`:   "",
		`device.driver`: "must evaluate to bool or the unknown type, not string",
		`device.`:       "compilation failed",
		`"` + strings.Repeat("a", resourcev1beta1.CELSelectorExpressionMaxLength) + `" == ""`:           "may not be more than 10240 bytes",
		each + `.all(a, ` + each + `.all(b, ` + each + `.all(c, ` + each + `.all(d, a + b + c != d))))`: "too complex, exceeds cost limit",
	} {
		errs := resource.Of(release.Oldest, only()).Class.Validate(context.Background(), class(expression))
		switch {
		case want == "" && len(errs) > 0:
			t.Errorf("%.80s: %v", expression, errs)
		case want != "" && (len(errs) != 1 || !strings.Contains(errs[0].Error(), want) || errs[0].Field != "spec.selectors[0].cel.expression"):
			t.Errorf("%.80s: %v, want %s", expression, errs, want)
		}
	}
}

// TestRepeatedPoolConditions: a repeated condition of a request is reported as an item of the list as well.
func TestRepeatedPoolConditions(t *testing.T) {
	c := metav1.Condition{Type: "Complete", Status: metav1.ConditionTrue, Reason: "Done", LastTransitionTime: metav1.Now()}
	r := &resourcev1alpha3.ResourcePoolStatusRequest{Status: &resourcev1alpha3.ResourcePoolStatusRequestStatus{PoolCount: new(int32), Conditions: []metav1.Condition{c, c}}}
	var got []string
	for _, err := range resource.Of(release.Newest, only()).PoolRequest.Status.ValidateUpdate(t.Context(), r, &resourcev1alpha3.ResourcePoolStatusRequest{}) {
		got = append(got, err.Field+" "+string(err.Type))
	}
	if diff := cmp.Diff([]string{"status.conditions[1].type " + string(field.ErrorTypeDuplicate), "status.conditions[1] " + string(field.ErrorTypeDuplicate)}, got); diff != "" {
		t.Error(diff)
	}
}

// TestPoolGeneration: a pool in the status of a request has a generation, which starts at one.
func TestPoolGeneration(t *testing.T) {
	status := resource.Of(release.Newest, only()).PoolRequest.Status
	for generation, want := range map[int64]string{
		-1: "status.pools[0].generation: Invalid value: -1: must be greater than or equal to 0",
		0:  "status.pools[0].generation: Required value",
		1:  "",
	} {
		r := &resourcev1alpha3.ResourcePoolStatusRequest{Status: &resourcev1alpha3.ResourcePoolStatusRequestStatus{
			PoolCount: new(int32(1)), Pools: []resourcev1alpha3.PoolStatus{{Driver: "gpu.example.com", PoolName: "p", Generation: generation}},
		}}
		got := ""
		if errs := status.ValidateUpdate(t.Context(), r, &resourcev1alpha3.ResourcePoolStatusRequest{}); len(errs) > 0 {
			got = errs.ToAggregate().Error()
		}
		if got != want {
			t.Errorf("generation %d: %q, want %q", generation, got, want)
		}
	}
}

// TestSelectorsEndWithTheRequest: expressions of a canceled request are not compiled.
func TestSelectorsEndWithTheRequest(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	var expressions []string
	for i := range 32 {
		expressions = append(expressions, fmt.Sprintf("device.driver == %q", fmt.Sprint(i)))
	}
	errs := resource.Of(release.Oldest, only()).Class.Validate(ctx, class(expressions...))
	if len(errs) != len(expressions) || !strings.Contains(errs[0].Error(), "the request ended") {
		t.Errorf("%d errors, the first %v", len(errs), errs[0])
	}
}

// TestExpressionsAreBounded: of a body full of expressions few are compiled.
func TestExpressionsAreBounded(t *testing.T) {
	c := claim()
	long := strings.Repeat(" ", 10000)
	for i := range 32 {
		r := resourcev1beta1.DeviceRequest{Name: fmt.Sprint("r", i), DeviceClassName: "gpu.example.com", AllocationMode: resourcev1beta1.DeviceAllocationModeAll}
		r.Selectors = class(fmt.Sprintf("%d == %d%s", i, i, long)).Spec.Selectors
		c.Spec.Devices.Requests = append(c.Spec.Devices.Requests[:i], r)
	}
	s := resource.Of(release.Oldest, only()).Claim
	errs := s.Validate(context.Background(), c)
	if len(errs) != 6 || !strings.Contains(errs[0].Error(), "too complex, the expressions of one object may have 262144 bytes together") {
		t.Errorf("%d errors: %v", len(errs), errs)
	}
	if errs := s.ValidateUpdate(context.Background(), c, c.DeepCopy()); len(errs) > 0 {
		t.Errorf("what did not change is checked again: %v", errs)
	}
}

// FuzzSelector: whatever an expression is, it is accepted or refused, the same each time,
// and one that is stored may stay.
func FuzzSelector(f *testing.F) {
	for _, e := range []string{`device.driver == "x"`, `device.attributes["a"].b`, `[1].map(x, x)`, `"`, `device.capacity["a"].all(k, true)`, "\x00", `semver("1.x")`} {
		f.Add(e)
	}
	f.Fuzz(func(t *testing.T, expression string) {
		ctx := context.Background()
		errs := resource.Of(release.Oldest, only()).Class.Validate(ctx, class(expression, expression))
		if len(errs) != 0 && len(errs) != 2 {
			t.Fatalf("%q twice: %v", expression, errs)
		}
		if again := resource.Of(release.Oldest, only()).Class.Validate(ctx, class(expression, expression)); len(again) != len(errs) {
			t.Fatalf("%q: %v, and then %v", expression, errs, again)
		}
		if len(errs) > 0 {
			return
		}
		if errs := resource.Of(release.Oldest, only()).Class.ValidateUpdate(ctx, class(expression), class(expression)); len(errs) > 0 {
			t.Fatalf("%q is stored: %v", expression, errs)
		}
	})
}
