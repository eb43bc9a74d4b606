# sh curl.sh URL TOKEN CA: see h2clients_test.go.
set -eu
path=$1/api/v1/namespaces/default/configmaps
ask() { curl --http2 -sSN --cacert "$ca" -H "Authorization: Bearer $token" "$@"; }
token=$2 ca=$3
{
	printf '{"metadata":{"name":"large"},"data":{"a":"'
	head -c 1000000 /dev/zero | tr '\0' x
	printf '"}}'
} | ask -o /dev/null -w 'created %{http_code}\n' -H 'Content-Type: application/json' --data-binary @- "$path"
list=$(mktemp)
trap 'rm -f "$list"' EXIT
said=$(ask -o "$list" -w 'listed %{http_code} %{http_version}' "$path")
if [ "$said" = 'listed 200 2' ] && grep -Eq 'x{1000}' "$list" && [ "$(wc -c <"$list")" -gt 1000000 ]; then
	echo 'listed 200 true'
else
	echo "failed $said"
fi
ask -w 'code %{http_version}\n' "$path?watch=true&fieldSelector=metadata.name%3Dsmall" |
	sed -u -n 's/.*"type":"\([A-Z]*\)".*"data":{"a":"\([^"]*\)".*/event \1 \2/p; s/^code 2$/drained true/p'
