#!/bin/sh
# k8s.io/mount-utils v0.37.2 (the kubelet and CSI drivers read the node's mounts with it), compared with github.com/moby/sys/mountinfo v0.7.2 (containerd, runc).
#
# Seen: a mount may have an empty source: Linux writes two blanks for it into mountinfo, and begins the line of /proc/mounts with a blank. mount-utils splits
# at any number of blanks, counts one field too few and returns an error instead of all mounts. It does not undo the kernel's \040 either,
# so that a mount at "/srv/my data" is not among the mounts of this path. moby's library reads both.
# Expected: one odd mount is one odd entry; "mount -t tmpfs '' /mnt" is all that it takes, and tools with the mount system call write "" often.
# Who is hurt: nodes on which any program has made such a mount: GetMountRefs and List fail with "wrong number of fields", and with them the unmount
# and detach of volumes that have nothing to do with it, until somebody finds that mount.
set -eu
dir=$(mktemp -d); trap 'rm -rf "$dir"' EXIT; cd "$dir"
# The lines are those of Linux 6.18 after mount -t tmpfs "" /srv/cache and mount /dev/sdb "/srv/my data".
cat >mounts <<'EOF'
/dev/sda / ext4 rw,relatime 0 0
 /srv/cache tmpfs rw,relatime 0 0
/dev/sdb /srv/my\040data ext4 rw,relatime 0 0
EOF
cat >mountinfo <<'EOF'
43 1 8:0 / / rw,relatime shared:1 - ext4 /dev/sda rw
63 43 0:39 / /srv/cache rw,relatime shared:2 - tmpfs  rw
64 43 8:16 / /srv/my\040data rw,relatime shared:3 - ext4 /dev/sdb rw
EOF
grep -v cache mounts >mounts-2
grep -v cache mountinfo >mountinfo-2
cat >main.go <<'EOF'
package main

import (
	"fmt"
	"os"

	"github.com/moby/sys/mountinfo"
	"k8s.io/mount-utils"
)

func main() {
	for _, with := range []string{"", "-2"} {
		points, err := mount.ListProcMounts("mounts" + with)
		fmt.Printf("mounts%s: mount-utils %v\n", with, err)
		for _, point := range points {
			fmt.Printf("  %q\n", point.Path)
		}
		infos, err := mount.ParseMountInfo("mountinfo" + with)
		fmt.Printf("mountinfo%s: mount-utils %v\n", with, err)
		for _, info := range infos {
			fmt.Printf("  %q of %q\n", info.MountPoint, info.Source)
		}
		file, err := os.Open("mountinfo" + with)
		if err != nil {
			panic(err)
		}
		moby, err := mountinfo.GetMountsFromReader(file, nil)
		fmt.Printf("mountinfo%s: moby %v\n", with, err)
		for _, info := range moby {
			fmt.Printf("  %q of %q\n", info.Mountpoint, info.Source)
		}
	}
}
EOF
go mod init finding 2>/dev/null
go get k8s.io/mount-utils@v0.37.2 github.com/moby/sys/mountinfo@v0.7.2 2>/dev/null
go run -mod=mod . | tee out
cat >want <<'EOF'
mounts: mount-utils wrong number of fields (expected 6, got 5)
mountinfo: mount-utils expect 3 fields in 63 43 0:39 / /srv/cache rw,relatime shared:2 - tmpfs  rw, got 2
mountinfo: moby <nil>
  "/" of "/dev/sda"
  "/srv/cache" of ""
  "/srv/my data" of "/dev/sdb"
mounts-2: mount-utils <nil>
  "/"
  "/srv/my\\040data"
mountinfo-2: mount-utils <nil>
  "/" of "/dev/sda"
  "/srv/my\\040data" of "/dev/sdb"
mountinfo-2: moby <nil>
  "/" of "/dev/sda"
  "/srv/my data" of "/dev/sdb"
EOF
diff want out
