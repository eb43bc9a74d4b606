package pgtest

import "syscall"

// endWithTest: a test binary that is killed must not leave its server behind.
func endWithTest(attr *syscall.SysProcAttr) { attr.Pdeathsig = syscall.SIGKILL }
