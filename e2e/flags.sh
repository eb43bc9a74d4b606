# How what is checked is compiled; read by the scripts beside this one, so that they share it.
# Nobody runs a debugger on it, and the compiler seldom collects garbage: together that saves a
# quarter of its time. What is released is built otherwise, and its code is the same.
export CGO_ENABLED=0 GOFLAGS="-trimpath -tags=grpcnotrace -gcflags=all=-dwarf=false '-toolexec=env GOGC=400'"
