package podspec

import (
	"fmt"
	"slices"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// linuxSignals returns the signals that can stop a container, in the order of messages.
var linuxSignals = sync.OnceValue(func() []corev1.Signal {
	var list []corev1.Signal
	for name := range strings.FieldsSeq("ABRT ALRM BUS CHLD CLD CONT FPE HUP ILL INT IO IOT KILL PIPE POLL PROF PWR QUIT SEGV STKFLT STOP SYS " +
		"TERM TRAP TSTP TTIN TTOU URG USR1 USR2 VTALRM WINCH XCPU XFSZ RTMIN RTMAX") {
		list = append(list, corev1.Signal("SIG"+name))
	}
	for i := 1; i <= 15; i++ {
		list = append(list, corev1.Signal(fmt.Sprintf("SIGRTMIN+%d", i)))
		if i < 15 {
			list = append(list, corev1.Signal(fmt.Sprintf("SIGRTMAX-%d", i)))
		}
	}
	slices.Sort(list)
	return list
})

var windowsSignals = []corev1.Signal{corev1.SIGKILL, corev1.SIGTERM}

// stopSignal checks the signal that stops a container, which depends on its operating system.
func (c *checker) stopSignal(signal corev1.Signal, os *corev1.PodOS, p *field.Path) {
	switch {
	case os == nil:
		c.forbidden(p, "may not be set for containers with empty `spec.os.name`")
	case os.Name == corev1.Windows:
		oneOf(c, p, "", signal, windowsSignals)
	case os.Name == corev1.Linux:
		oneOf(c, p, "", signal, linuxSignals())
	}
}
