package pods

import (
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/rowlock/rowlock/codecs/json/scan"
	"github.com/rowlock/rowlock/server/kinds"
)

// specAside has writes of the status leave the spec alone, which is most of a Pod. What is asked for most
// stays: its node, by those who let nodes write about their own Pods alone, and whether containers that
// have ended start again.
var specAside = &kinds.Aside{Cut: cutSpec, Join: joinSpec, Fill: fillSpec, Looks: looksAtSpec}

// specOf is where the spec stands in the text of a Pod; from is -1 if it is not there.
func specOf(text []byte) (from, to int) {
	from = -1
	scan.Loose.Members(text, scan.Space(text, 0), func(name scan.Name, at int) (int, bool) {
		end := scan.Skip(text, at)
		if string(name.In(text)) != "spec" {
			return end, true
		}
		from, to = at, end
		return end, false
	})
	if from < 0 || to < 0 {
		return -1, -1
	}
	return from, to
}

func cutSpec(stored []byte) []byte {
	from, to := specOf(stored)
	if from < 0 {
		return stored
	}
	cut := make([]byte, 0, len(stored)-(to-from)+64)
	cut = append(append(cut, stored[:from]...), '{')
	empty := len(cut)
	scan.Loose.Members(stored[from:to], 0, func(name scan.Name, at int) (int, bool) {
		end := scan.Skip(stored[from:to], at)
		switch string(name.In(stored[from:to])) {
		case "nodeName", "restartPolicy":
			if end < 0 {
				break
			}
			if len(cut) > empty {
				cut = append(cut, ',')
			}
			cut = append(cut, stored[from+name.At:from+end]...)
		}
		return end, true
	})
	return append(append(cut, '}'), stored[to:]...)
}

func joinSpec(cut, stored []byte) ([]byte, bool) {
	from, to := specOf(cut)
	first, last := specOf(stored)
	if from < 0 || first < 0 {
		return nil, false
	}
	whole := make([]byte, 0, len(cut)-(to-from)+last-first)
	whole = append(append(whole, cut[:from]...), stored[first:last]...)
	return append(whole, cut[to:]...), true
}

func fillSpec(whole kinds.Object, into ...kinds.Object) {
	for _, obj := range into {
		whole.(*corev1.Pod).Spec.DeepCopyInto(&obj.(*corev1.Pod).Spec)
	}
}

// looksAtSpec is where validateStatus compares with the spec: annotations name containers, or want a
// node, an init container has ended, or something is said of claims, devices or users. Annotations are those of before:
// a patch that spares the spec names none, and for who changes them in admission the spec is filled in.
func looksAtSpec(obj, old kinds.Object) bool {
	pod, was := obj.(*corev1.Pod), old.(*corev1.Pod)
	if was.DeletionTimestamp != nil || len(pod.Status.ResourceClaimStatuses) > 0 {
		return true
	}
	for k := range pod.Annotations {
		if k == corev1.MirrorPodAnnotationKey || strings.HasPrefix(k, appArmorKey) {
			return true
		}
	}
	return looksAtContainers(&pod.Status) || looksAtContainers(&was.Status)
}

func looksAtContainers(s *corev1.PodStatus) bool {
	for kind, list := range [...][]corev1.ContainerStatus{s.InitContainerStatuses, s.ContainerStatuses, s.EphemeralContainerStatuses} {
		for i := range list {
			if c := &list[i]; kind == 0 && c.State.Terminated != nil || c.User != nil || len(c.AllocatedResourcesStatus) > 0 {
				return true
			}
		}
	}
	return false
}
