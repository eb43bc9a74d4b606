"""client.py URL TOKEN CA: see h2clients_test.go."""
import json
import sys

import httpx

url, token, ca = sys.argv[1:]
path = "/api/v1/namespaces/default/configmaps"
with httpx.Client(http1=False, http2=True, verify=ca, base_url=url, timeout=None, headers={"authorization": "Bearer " + token}) as client:
    created = client.post(path, json={"metadata": {"name": "large"}, "data": {"a": "x" * 1000000}})
    print("created", created.status_code, flush=True)
    listed = client.get(path)
    whole = any(i["metadata"]["name"] == "large" and len(i["data"]["a"]) == 1000000 for i in listed.json()["items"])
    print("listed", listed.status_code, str(whole and listed.http_version == "HTTP/2").lower(), flush=True)
    with client.stream("GET", path, params={"watch": "true", "fieldSelector": "metadata.name=small"}) as watch:
        for line in watch.iter_lines():
            if line.strip():
                event = json.loads(line)
                print("event", event["type"], event["object"]["data"]["a"], flush=True)
    print("drained", "true", flush=True)
