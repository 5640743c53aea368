"""Makes a container in Azurite, which nothing in the object store crate can do: container.py PORT NAME"""

import base64
import hashlib
import hmac
import sys
import urllib.request
from email.utils import formatdate

ACCOUNT = "devstoreaccount1"
# Azurite's own account: everybody knows this key.
KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="

port, name = sys.argv[1:]
headers = {"x-ms-date": formatdate(usegmt=True), "x-ms-version": "2021-08-06"}
canonical = "".join(f"{key}:{value}\n" for key, value in sorted(headers.items()))
to_sign = "PUT" + "\n" * 12 + canonical + f"/{ACCOUNT}/{ACCOUNT}/{name}\nrestype:container"
signature = hmac.new(base64.b64decode(KEY), to_sign.encode(), hashlib.sha256).digest()
headers["Authorization"] = f"SharedKey {ACCOUNT}:{base64.b64encode(signature).decode()}"
url = f"http://127.0.0.1:{port}/{ACCOUNT}/{name}?restype=container"
request = urllib.request.Request(url, method="PUT", headers=headers, data=None)
with urllib.request.urlopen(request) as response:
    assert response.status == 201, response.status
