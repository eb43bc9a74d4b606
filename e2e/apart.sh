#!/bin/sh
# Prints the packages below the folders of e2e/apart.txt that need no tests now: neither they, nor a package of
# this module that they or their tests import directly, nor go.mod, have changed since the base. The base is
# the merge base with main, or on main itself the previous commit; ROWLOCK_CHECK_BASE names another one.
# Uncommitted files count as changed. Without a base, or with ROWLOCK_CHECK_ALL=1, it prints nothing.
set -eu
cd "$(dirname "$0")/.."
[ -z "${ROWLOCK_CHECK_ALL:-}" ] || exit 0
base=${ROWLOCK_CHECK_BASE:-}
if [ -z "$base" ]; then
	head=$(git rev-parse --verify -q HEAD 2>/dev/null) || exit 0
	for main in origin/main main; do
		base=$(git merge-base HEAD "$main" 2>/dev/null) && break
	done
	[ -n "$base" ] && [ "$base" != "$head" ] || base=$(git rev-parse --verify -q HEAD~1) || exit 0
fi
files=$(git diff --name-only "$base" && git ls-files --others --exclude-standard) || exit 0
! echo "$files" | grep -q -x -E 'go\.(mod|sum)' || exit 0
# Test data belong to the package above them.
changed=$(echo "$files" | sed -n 's|/[^/]*$||p' | sed 's|/testdata\(/.*\)\{0,1\}$||' | sort -u)
module=$(go list -m)
for folder in $(grep -v '^#' e2e/apart.txt); do
	go list -f '{{.ImportPath}} {{.ImportPath}}{{range .Imports}} {{.}}{{end}}{{range .TestImports}} {{.}}{{end}}{{range .XTestImports}} {{.}}{{end}}' "./$folder/..."
done | while read -r package uses; do
	for used in $uses; do
		! echo "$changed" | grep -q -x -F -- "${used#"$module"/}" || continue 2
	done
	echo "./${package#"$module"/}"
done
