package podspec

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// wholeBytes warns of fractions of a byte.
func (a *adviser) wholeBytes(list corev1.ResourceList, p *field.Path, child string) {
	if len(list) > 0 {
		a.wholeByte(list, corev1.ResourceMemory, p, child)
		a.wholeByte(list, corev1.ResourceEphemeralStorage, p, child)
	}
}

func (a *adviser) containerBytes(r *corev1.ResourceRequirements, w where) {
	for _, n := range [...]corev1.ResourceName{corev1.ResourceMemory, corev1.ResourceEphemeralStorage} {
		if fractional(r.Limits, n) || fractional(r.Requests, n) {
			p := w.path(a.spec).Child("resources")
			a.wholeByte(r.Limits, n, p, "limits")
			a.wholeByte(r.Requests, n, p, "requests")
		}
	}
}

func fractional(list corev1.ResourceList, n corev1.ResourceName) bool {
	q, ok := list[n]
	return ok && q.MilliValue()%1000 != 0
}

func (a *adviser) wholeByte(list corev1.ResourceList, n corev1.ResourceName, p *field.Path, child string) {
	if q, ok := list[n]; ok && fractional(list, n) {
		a.warnf(p.Child(child).Key(string(n)), "fractional byte value %q is invalid, must be an integer", q.String())
	}
}
